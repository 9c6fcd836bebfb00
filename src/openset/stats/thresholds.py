"""Thresholds on a novelty score that keep a false-positive rate on source rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from openset._utils.params import check_integer, check_number


@dataclass(frozen=True)
class SourceThreshold:
    """A threshold, the false-positive rate asked for, and the rate that the given rows can guarantee."""

    value: float
    asked: float
    kept: float
    n_rows: int

    @property
    def is_met(self) -> bool:
        """Whether the rate asked for is guaranteed."""
        return self.kept <= self.asked


def conformal_threshold(source_scores: ArrayLike, fpr: float) -> SourceThreshold:
    """The smallest validation score that a new source row exceeds with probability at most ``fpr``.

    With n exchangeable source rows, a further source row exceeds the k-th smallest score with probability at
    most 1 − k / (n + 1); k = ⌈(n + 1)(1 − fpr)⌉. With n < 1/fpr − 1 rows no score is high enough: the largest
    one is returned, and ``kept`` is the rate that holds, 1 / (n + 1).
    The guarantee is for rows drawn like *source*, not for shifted target rows.

    >>> conformal_threshold(range(99), fpr=0.01)
    SourceThreshold(value=98.0, asked=0.01, kept=0.01, n_rows=99)
    >>> conformal_threshold(range(9), fpr=0.01).kept
    0.1
    """
    scores = _sorted_scores(source_scores)
    n = len(scores)
    # The tiny slack keeps (n + 1)(1 - fpr) from being rounded up past an integer.
    k = min(int(np.ceil((n + 1) * (1 - fpr) - 1e-9)), n)
    kept = max((n + 1 - k) / (n + 1), 1 / (n + 1))
    return SourceThreshold(float(scores[k - 1]), fpr, float(round(kept, 12)), n)


def threshold_after_choice(
    source_scores: ArrayLike, fpr: float, *, n_compared: int = 1, confidence: float = 0.95
) -> SourceThreshold:
    """The smallest validation score that source rows exceed at a rate of at most ``fpr``, for a chosen head.

    For a head fixed in advance, :func:`conformal_threshold` is enough. Here the same rows may have chosen the
    head among ``n_compared``. The rate is bounded for all of them at once (each gets an equal part of the error),
    so the bound holds for the chosen head with the given confidence. ``kept`` is that bound.

    >>> [threshold_after_choice(range(999), 0.01, n_compared=heads).value for heads in (1, 10)]
    [994.0, 996.0]
    """
    check_integer("n_compared", n_compared)
    check_number("confidence", confidence, high=1, open_low=True, open_high=True)
    scores = _sorted_scores(source_scores)
    n = len(scores)
    error = (1 - confidence) / n_compared
    above = np.arange(n)
    # P(at most x of n rows above | rate fpr): the rate is bounded by fpr where that is within the error
    chance = betainc(n - above, above + 1.0, 1 - fpr)
    allowed = int(np.searchsorted(chance, error, side="right")) - 1
    kept = fpr if allowed >= 0 else float(1 - error ** (1 / n))
    return SourceThreshold(float(scores[n - 1 - max(allowed, 0)]), fpr, kept, n)


def rows_for_threshold_after_choice(fpr: float, *, n_compared: int = 1, confidence: float = 0.95) -> int:
    """The fewest source validation rows with which :func:`threshold_after_choice` guarantees ``fpr``.

    With that few rows, none of them may score above the threshold.

    >>> rows_for_threshold_after_choice(0.01, n_compared=360)
    884
    """
    return math.ceil(math.log((1 - confidence) / n_compared) / math.log1p(-fpr))


def share_above(scores: ArrayLike, threshold: float) -> float:
    """Share of rows that score strictly above a threshold; NaN where there are no rows."""
    values = np.asarray(scores, dtype=np.float64)
    return float((values > threshold).mean()) if len(values) else float("nan")


def _sorted_scores(source_scores: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    scores = np.sort(np.asarray(source_scores, dtype=np.float64))
    if not len(scores):
        raise ValueError("no source validation rows: a threshold needs at least one.")
    return scores
