"""Thresholds on a novelty score that keep a false-positive rate on source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class SourceThreshold:
    """A threshold, the level asked for, and the level that the rows at hand can keep."""

    value: float
    asked: float
    kept: float
    n_rows: int

    @property
    def is_met(self) -> bool:
        """Whether the level asked for is kept."""
        return self.kept <= self.asked


def conformal_threshold(source_scores: ArrayLike, fpr: float) -> SourceThreshold:
    """The smallest held-out score that a fresh source row exceeds with probability at most ``fpr``.

    With n exchangeable held-out source rows the k-th smallest score, k = ⌈(n + 1)(1 − fpr)⌉, is exceeded
    by a further source row with probability at most 1 − k / (n + 1). With n < 1/fpr − 1 rows no score is
    high enough: the largest one is returned, and ``kept`` says that only 1 / (n + 1) holds.
    The promise is for rows drawn like *source*; shifted target rows are not.

    >>> conformal_threshold(range(99), fpr=0.01)
    SourceThreshold(value=98.0, asked=0.01, kept=0.01, n_rows=99)
    >>> conformal_threshold(range(9), fpr=0.01).kept
    0.1
    """
    scores = np.sort(np.asarray(source_scores, dtype=np.float64))
    n = len(scores)
    if n == 0:
        raise ValueError("no held-out source rows: a threshold needs at least one.")
    # The tiny slack keeps (n + 1)(1 - fpr) from being rounded up past an integer.
    k = min(int(np.ceil((n + 1) * (1 - fpr) - 1e-9)), n)
    kept = max((n + 1 - k) / (n + 1), 1 / (n + 1))
    return SourceThreshold(float(scores[k - 1]), fpr, float(round(kept, 12)), n)


def conformal_p_values(source_scores: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
    """For each score the probability that a fresh source row scores as high: (1 + #{source ≥ s}) / (n + 1).

    Valid, that is at most u with probability at most u, for rows drawn like the n exchangeable *source* rows.

    >>> conformal_p_values([1.0, 2.0, 3.0], [0.0, 2.0, 9.0]).tolist()
    [1.0, 0.75, 0.25]
    """
    ordered = np.sort(np.asarray(source_scores, dtype=np.float64))
    below = np.searchsorted(ordered, np.asarray(scores, dtype=np.float64), side="left")
    return (1 + len(ordered) - below) / (len(ordered) + 1)


def share_above(scores: ArrayLike, threshold: float) -> float:
    """Share of rows scoring strictly above a threshold."""
    values = np.asarray(scores, dtype=np.float64)
    return float((values > threshold).mean()) if len(values) else float("nan")


def rank_log_odds(reference: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
    """Place scores on one scale shared by all members: log odds of their rank among ``reference`` rows.

    Between reference scores the rank is interpolated; beyond them it approaches 0 and 1 exponentially, so
    the map is strictly increasing and rows above every reference row keep their order.

    >>> rank_log_odds([0.0, 1.0, 2.0], [1.0])
    array([0.])
    """
    anchors = np.unique(np.asarray(reference, dtype=np.float64))
    s = np.asarray(scores, dtype=np.float64)
    if not len(anchors):
        return s.copy()
    n = len(np.asarray(reference))
    ordered = np.sort(np.asarray(reference, dtype=np.float64))
    below = np.searchsorted(ordered, anchors, side="left")
    up_to = np.searchsorted(ordered, anchors, side="right")
    rank = (below + up_to + 1) / (2 * (n + 1))
    inner = np.interp(s, anchors, np.log(rank) - np.log1p(-rank))
    scale = float(np.std(ordered)) or 1.0
    return inner + np.clip(s - anchors[-1], 0, None) / scale + np.clip(s - anchors[0], None, 0) / scale
