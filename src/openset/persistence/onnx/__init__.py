"""Export of fitted networks as ONNX graphs, for programs without Python."""

from __future__ import annotations

from openset.persistence.onnx.export import to_onnx

__all__ = ["to_onnx"]
