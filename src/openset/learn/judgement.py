"""What the loop shows a method at an evaluation point, and what the method says to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEEP_LATEST = math.inf
"""The key of a method that makes no choice: every evaluation point replaces the one before."""


@dataclass(frozen=True)
class HeldOut:
    """Head outputs of one member on rows that it does not train on."""

    source: Mapping[str, NDArray[np.float32]]
    y: NDArray[np.intp]
    target: Mapping[str, NDArray[np.float32]]
    multipliers: NDArray[np.float64]
    member: int
    step: int
    max_steps: int


@dataclass(frozen=True)
class Judgement:
    """How good a network is at one evaluation point; the loop keeps the one with the highest key."""

    key: float
    metrics: Mapping[str, float]
    head: int = 0
    heads: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Columns of the head table, one entry a head."""


@dataclass(frozen=True)
class Choice:
    """The evaluation point and head that a member kept."""

    step: int
    head: int
    key: float
