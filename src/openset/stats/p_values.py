"""p-values of single rows, and which rows to call novel at a false discovery rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset._utils.params import check_number


def conformal_p_values(source_scores: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
    """For every score, the probability that a new source row scores as high: (1 + #{source ≥ s}) / (n + 1).

    Valid for rows drawn like the n exchangeable *source* rows: at most u with probability at most u.

    >>> conformal_p_values([1.0, 2.0, 3.0], [0.0, 2.0, 9.0]).tolist()
    [1.0, 0.75, 0.25]
    """
    ordered = np.sort(np.asarray(source_scores, dtype=np.float64))
    below = np.searchsorted(ordered, np.asarray(scores, dtype=np.float64), side="left")
    return (1 + len(ordered) - below) / (len(ordered) + 1)


def benjamini_hochberg(p_values: ArrayLike, fdr: float, *, max_density_ratio: float = 1.0) -> NDArray[np.bool_]:
    """Mark the rows to call novel so that, on average, at most a share ``fdr`` of them is known.

    Guaranteed for conformal p-values of one score if known target rows are drawn like source
    (``max_density_ratio=1``; Bates et al., 2023). Known rows that became up to B times as common have small
    p-values up to B times as often: ``max_density_ratio=B`` multiplies every p-value by B, and finds fewer rows.

    >>> benjamini_hochberg([0.001, 0.02, 0.5, 0.9], fdr=0.05).tolist()
    [True, True, False, False]
    >>> benjamini_hochberg([0.001, 0.02, 0.5, 0.9], fdr=0.05, max_density_ratio=12).tolist()
    [True, False, False, False]
    """
    p = np.asarray(p_values, dtype=np.float64)
    values, counts = np.unique(p, return_counts=True)
    return p <= largest_p_value(values, counts, fdr, max_density_ratio=max_density_ratio)


def largest_p_value(values: ArrayLike, counts: ArrayLike, fdr: float, *, max_density_ratio: float = 1.0) -> float:
    """The largest p-value that :func:`benjamini_hochberg` still calls novel; 0 where it calls none novel.

    Takes the distinct p-values and how often each occurs. Conformal p-values have few distinct values, however
    many rows there are.

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


def smallest_fdr(
    values: ArrayLike, counts: ArrayLike | None = None, *, max_density_ratio: float = 1.0
) -> float | None:
    """The smallest false discovery rate at which :func:`benjamini_hochberg` calls a row novel; None if none does.

    Takes p-values, or the distinct ones and how often each occurs.

    >>> smallest_fdr([0.001, 0.5, 0.9]), smallest_fdr([0.001, 0.5], [1, 2])
    (0.003, 0.003)
    """
    p = np.asarray(values, dtype=np.float64)
    n = np.ones(len(p)) if counts is None else np.asarray(counts, dtype=np.float64)
    if not len(p):
        return None
    order = np.argsort(p)
    rates = max_density_ratio * p[order] * n.sum() / np.cumsum(n[order])
    smallest = float(rates.min())
    return smallest if smallest < 1 else None
