"""Choosing among heads and settings without a single target label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta


def paper_key(fpr: ArrayLike, recall: ArrayLike, budget: float) -> NDArray[np.float64]:
    """Algorithm 1 as one number per (evaluation point, head): the highest wins, ties to the first.

    Feasible pairs (source-validation FPR strictly below the budget) rank by target-validation recall, above
    all infeasible ones, which rank by low FPR. Because it is one number per pair, the training loop can
    keep only the best network so far and still choose over all of training.

    >>> int(paper_key(fpr=[0.02, 0.0, 0.009], recall=[0.9, 0.1, 0.2], budget=0.01).argmax())
    2
    """
    f, r = np.asarray(fpr, dtype=np.float64), np.asarray(recall, dtype=np.float64)
    return np.where(f < budget, 1 + r, -f)


def is_feasible(key: ArrayLike) -> NDArray[np.bool_]:
    """Whether a :func:`paper_key` belongs to a pair within the budget."""
    return np.asarray(np.asarray(key) >= 1)


def bounded_recall(
    source_scores: ArrayLike, target_scores: ArrayLike, *, ratio: float = 10.0, confidence: float = 0.95
) -> float:
    """How much target mass a score separates from source, judged without labels.

    The maximum over thresholds t of P_target(s > t) − ratio · UCB[P_source(s > t)], at least 0, where UCB is
    the one-sided Clopper–Pearson bound. A score that merely follows a background shift of density ratio up
    to ``ratio`` gains nothing by it.
    """
    source = np.sort(np.asarray(source_scores, dtype=np.float64))
    target = np.sort(np.asarray(target_scores, dtype=np.float64))
    n, m = len(source), len(target)
    if not n or not m:
        return 0.0
    thresholds = np.unique(source)
    above_source = n - np.searchsorted(source, thresholds, side="right")
    above_target = (m - np.searchsorted(target, thresholds, side="right")) / m
    upper = beta.ppf(confidence, above_source + 1, n - above_source)
    return float(max(0.0, (above_target - ratio * upper).max()))
