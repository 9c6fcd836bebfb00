"""The shape of a network, as plain data that can be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HeadWidths = Mapping[str, int]


@dataclass(frozen=True)
class Architecture:
    """What it takes to build a network again: sizes only, no weights."""

    bodies: Mapping[str, HeadWidths]
    """For each body its heads and their widths, e.g. ``{"shared": {"classes": 5, "novelty": 10}}``."""
    n_features: int
    hidden: int
    dropout: float
    members: int = 1
    kinds: Mapping[str, str] = field(default_factory=dict)
    """For a body whose heads are not linear, the name of their kind in ``openset.learn.heads.HEAD_KINDS``."""
    body_kinds: Mapping[str, str] = field(default_factory=dict)
    """For a body on features that is not the usual one, the name of its kind in
    ``openset.learn.bodies.BODY_KINDS``."""
