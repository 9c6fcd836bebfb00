"""Fitted models on disk: safetensors and JSON, never pickle; and as ONNX graphs."""

from __future__ import annotations

from openset.persistence.model import load, save

__all__ = ["load", "save"]
