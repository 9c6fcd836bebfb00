"""Which rows to call novel, with a promise: for rows drawn like source, or up to a bounded shift."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc

from openset._utils.params import check_integer, check_number
from openset.stats.thresholds import SourceThreshold


def cross_conformal_p_values(held_source: Sequence[ArrayLike], scores: ArrayLike) -> NDArray[np.float64]:
    """p-values of rows under an ensemble: each member ranks a row among the source rows it held out itself.

    p = (1 + Σ_k #{held-out source of k ≥ s_k(x)}) / (n + 1) with n the held-out rows of the members that count.
    ``scores`` is (members, rows), NaN where a member trained on the row: it does not count there. Valid for rows
    drawn like *source*: up to a factor of 2 in theory (Barber et al., 2021), nearly exactly in practice.

    >>> cross_conformal_p_values([[1.0, 2.0], [10.0, 20.0]], [[1.5, 9.0], [5.0, np.nan]]).tolist()
    [0.8, 0.3333333333333333]
    """
    members = np.asarray(scores, dtype=np.float64)
    if members.ndim != 2 or len(members) != len(held_source):
        raise ValueError(
            f"scores have shape {members.shape} for {len(held_source)} members: expected (members, rows)."
        )
    as_high, compared = np.zeros(members.shape[1]), np.zeros(members.shape[1])
    for own, held in zip(members, held_source, strict=True):
        ordered, counts = np.sort(np.asarray(held, dtype=np.float64)), ~np.isnan(own)
        # NaN sorts last, as if no source row were as high
        as_high += np.where(counts, len(ordered) - np.searchsorted(ordered, own, side="left"), 0)
        compared += np.where(counts, len(ordered), 0)
    return (1 + as_high) / (1 + compared)


def threshold_after_choice(
    source_scores: ArrayLike, fpr: float, *, n_compared: int = 1, confidence: float = 0.95
) -> SourceThreshold:
    """The smallest held-out score that source rows exceed at a rate of at most ``fpr``, chosen head or not.

    Were the head fixed, :func:`~openset.stats.thresholds.conformal_threshold` would do. Here the same rows may
    have chosen among ``n_compared`` heads: the rate is bounded for all of them at once (each at its share of the
    error), so that with the confidence stated it is for the chosen one. ``kept`` is that bound.

    >>> [threshold_after_choice(range(999), 0.01, n_compared=heads).value for heads in (1, 10)]
    [994.0, 996.0]
    """
    check_integer("n_compared", n_compared)
    check_number("confidence", confidence, high=1, open_low=True, open_high=True)
    scores = np.sort(np.asarray(source_scores, dtype=np.float64))
    n = len(scores)
    if n == 0:
        raise ValueError("no held-out source rows: a threshold needs at least one.")
    error = (1 - confidence) / n_compared
    above = np.arange(n)
    # P(at most x of n rows above | rate fpr): the rate is bounded by fpr where that is within the error
    chance = betainc(n - above, above + 1.0, 1 - fpr)
    allowed = int(np.searchsorted(chance, error, side="right")) - 1
    kept = fpr if allowed >= 0 else float(1 - error ** (1 / n))
    return SourceThreshold(float(scores[n - 1 - max(allowed, 0)]), fpr, kept, n)


def rows_for_threshold_after_choice(fpr: float, *, n_compared: int = 1, confidence: float = 0.95) -> int:
    """How many held-out source rows :func:`threshold_after_choice` needs to keep ``fpr``, if none may exceed it.

    >>> rows_for_threshold_after_choice(0.01, n_compared=360)
    884
    """
    return math.ceil(math.log((1 - confidence) / n_compared) / math.log1p(-fpr))


def benjamini_hochberg(p_values: ArrayLike, fdr: float, *, max_density_ratio: float = 1.0) -> NDArray[np.bool_]:
    """The rows to call novel so that at most a share ``fdr`` of them is known, on average.

    Guaranteed for conformal p-values of one score if known rows of the target are drawn like source
    (``max_density_ratio=1``; Bates et al., 2023). Known rows that are up to B times as dense have small p-values
    up to B times as often: with ``max_density_ratio=B`` every p-value counts B-fold, which finds fewer rows.

    >>> benjamini_hochberg([0.001, 0.02, 0.5, 0.9], fdr=0.05).tolist()
    [True, True, False, False]
    >>> benjamini_hochberg([0.001, 0.02, 0.5, 0.9], fdr=0.05, max_density_ratio=12).tolist()
    [True, False, False, False]
    """
    p = np.asarray(p_values, dtype=np.float64)
    values, counts = np.unique(p, return_counts=True)
    return p <= largest_p_value(values, counts, fdr, max_density_ratio=max_density_ratio)


def largest_p_value(values: ArrayLike, counts: ArrayLike, fdr: float, *, max_density_ratio: float = 1.0) -> float:
    """The p-value up to which :func:`benjamini_hochberg` calls rows novel, 0 where it calls none.

    Takes every p-value that occurs and how often: conformal ones are few, however many the rows.

    >>> largest_p_value([0.5, 0.001], [1000, 10], fdr=0.2)
    0.001
    """
    check_number("fdr", fdr, high=1, open_low=True, open_high=True)
    check_number("max_density_ratio", max_density_ratio, low=1)
    p, n = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    order = np.argsort(p)
    p, n = p[order], n[order]
    kept = p[max_density_ratio * p * n.sum() <= fdr * np.cumsum(n)]
    return float(kept[-1]) if len(kept) else 0.0
