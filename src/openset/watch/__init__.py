"""Batches in order of time against one labelled source. In Python: ``openset.Watch(run)``."""

from __future__ import annotations

from openset.watch.watch import Watch

__all__ = ["Watch"]
