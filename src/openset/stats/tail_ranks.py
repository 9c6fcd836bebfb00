"""Tail ranks: scores of different kinds on one scale, by how few reference rows score as high."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_POINTS = 512
"""Largest number of points of a curve; half of them are the highest scores, the rest are spread in log rank."""


@dataclass(frozen=True, eq=False)
class TailRank:
    """A score as −log of the share of reference rows that score at least as high.

    ``points`` and ``heights`` are a curve, straight between its points. Below the first point it is 0; beyond the
    last it rises by ``slope``, so rows above all reference rows are still ranked.
    """

    points: NDArray[np.float64]
    heights: NDArray[np.float64]
    slope: float

    def apply(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the tail ranks of scores."""
        values = np.asarray(scores, dtype=np.float64)
        beyond = np.maximum(values - self.points[-1], 0.0)
        return np.asarray(np.interp(values, self.points, self.heights) + self.slope * beyond)


def fit_tail_rank(scores: ArrayLike) -> TailRank:
    """Return the tail rank among reference rows with these scores.

    >>> rank = fit_tail_rank([0.0, 1.0, 2.0, 3.0])
    >>> np.exp(-rank.apply([0.0, 2.0, 3.0])).tolist()
    [1.0, 0.5, 0.25]
    """
    values = np.asarray(scores, dtype=np.float64)
    if not len(values):
        raise ValueError("there are no scores to rank among.")
    points, first = np.unique(np.sort(values), return_index=True)
    heights = -np.log((len(values) - first) / len(values))
    if len(points) > _POINTS:
        from_top = np.geomspace(_POINTS // 2, len(points) - 1, _POINTS // 2).astype(np.intp)
        kept = len(points) - 1 - np.unique(np.concatenate([np.arange(_POINTS // 2), from_top]))[::-1]
        points, heights = points[kept], heights[kept]
    return TailRank(points, heights, 1.0 / float(np.std(values) or 1.0))
