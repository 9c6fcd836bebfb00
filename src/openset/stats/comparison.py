"""Comparing methods on paired splits: an exact signed-rank test, Holm's correction, and numbers of wins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

_EQUAL_DECIMALS = 12
"""Differences that agree to this many decimals are ties: beyond that is rounding error of the subtraction."""


def signed_rank_test(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test on pairs, exact under ties.

    Pairs without a difference are dropped (Wilcoxon's own rule); if no pair is left, the p-value is 1. The null
    distribution gives the observed ranks random signs. It is computed exactly, by convolution.

    >>> signed_rank_test([3, 4, 5, 6, 7], [2, 2, 2, 2, 2])  # five wins of five: 2 / 2⁵
    0.0625
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"need two lists of the same length, got shapes {a.shape} and {b.shape}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("values must be finite: drop pairs with a missing value.")
    difference = np.round(a - b, _EQUAL_DECIMALS)
    difference = difference[difference != 0]
    if not len(difference):
        return 1.0
    twice_ranks = np.rint(2 * rankdata(np.abs(difference))).astype(np.int64)  # mid-ranks are halves
    chance = np.ones(1)
    for rank in twice_ranks:
        grown = np.zeros(len(chance) + rank)
        grown[: len(chance)] += chance / 2
        grown[rank:] += chance / 2
        chance = grown
    positive = int(twice_ranks[difference > 0].sum())
    tail = min(chance[: positive + 1].sum(), chance[positive:].sum())
    return float(min(1.0, 2 * tail))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down correction: adjusted p-values that control the chance of any false rejection.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p_values={p_values!r} is not valid: expected a list of numbers in [0, 1].")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def shared_wins(values: ArrayLike) -> NDArray[np.int64]:
    """On how many splits (rows) each method (column) has the highest value; ties all win, NaN never wins.

    >>> shared_wins([[0.9, 0.9, 0.1], [0.2, 0.3, float("nan")]]).tolist()
    [1, 2, 0]
    """
    table = np.asarray(values, np.float64)
    if table.ndim != 2:
        raise ValueError(f"values has shape {table.shape}: expected splits × methods.")
    best = np.where(np.isnan(table), -np.inf, table).max(axis=1, keepdims=True, initial=-np.inf)
    return (table == best).sum(axis=0, dtype=np.int64)
