"""Two groups of numbers, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class TwoMeans:
    """The centres of two groups of numbers; a number is of the upper group where it is above ``split``."""

    low: float
    high: float

    @property
    def split(self) -> float:
        """Half-way between the centres."""
        return self.low + (self.high - self.low) / 2


def two_means(values: ArrayLike) -> TwoMeans:
    """The best 2-means of numbers: least squared distance to two centres, found exactly by sorting.

    Where all numbers are equal both centres are that number, and none is above the split.

    >>> two_means([1, 9, 0, 10, 2])
    TwoMeans(low=1.0, high=9.5)
    >>> two_means([3, 3]).split
    3.0
    """
    x = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if not len(x) or not np.isfinite(x).all():
        raise ValueError(f"two_means needs at least one number, all of them finite; got {len(x)}.")
    if x[0] == x[-1]:
        return TwoMeans(float(x[0]), float(x[0]))
    offset = x.mean()
    count = np.arange(1, len(x))
    below = np.cumsum(x - offset)[:-1]  # what is above sums to the negative
    # n₁n₂/n (m₁ − m₂)² is n s²/(n₁n₂) for sums ±s about the mean: the most between groups is the least within
    between = below**2 / (count * (len(x) - count))
    between[x[:-1] == x[1:]] = -np.inf  # equal numbers stay together
    cut = int(between.argmax()) + 1
    return TwoMeans(float(x[:cut].mean()), float(x[cut:].mean()))
