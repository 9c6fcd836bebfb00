"""The shape of a network, as plain data that can be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HeadWidths = Mapping[str, int]


@dataclass(frozen=True)
class Architecture:
    """Everything needed to build a network except its weights."""

    bodies: Mapping[str, HeadWidths]
    """The heads of each body and their widths, for example ``{"shared": {"classes": 5, "novelty": 10}}``."""
    n_features: int
    hidden: int
    dropout: float
    members: int = 1
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The kind of heads of a body, a key of ``openset.learn.heads.HEAD_KINDS``; linear if absent."""
    body_kinds: Mapping[str, str] = field(default_factory=dict)
    """The kind of a body on features, a key of ``openset.learn.bodies.BODY_KINDS``; "relu" if absent."""
