"""Beyond one machine: parts on any file system, shards, Ray; a scorer for other engines.

>>> from openset.cluster import Scorer  # loads a run by path, and scores tables
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openset.cluster.ids import check_ids
    from openset.cluster.score import PartsAnswer, score_parts
    from openset.cluster.scorer import Scorer

_HOME = {
    "PartsAnswer": "openset.cluster.score",
    "Scorer": "openset.cluster.scorer",
    "check_ids": "openset.cluster.ids",
    "score_parts": "openset.cluster.score",
}
__all__ = ["PartsAnswer", "Scorer", "check_ids", "score_parts"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'openset.cluster' has no attribute {name!r}")
