"""Choosing among heads and settings without any target label."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import beta


def paper_key(fpr: ArrayLike, recall: ArrayLike, budget: float) -> NDArray[np.float64]:
    """Algorithm 1 as one number per (evaluation point, head): the highest wins, ties go to the first.

    Feasible pairs (source-validation FPR strictly below the budget) rank by target-validation recall. They rank
    above all infeasible pairs, which rank by low FPR. Because a pair has one number, the training loop needs to
    keep only the best network so far, and still chooses over all of training.

    >>> int(paper_key(fpr=[0.02, 0.0, 0.009], recall=[0.9, 0.1, 0.2], budget=0.01).argmax())
    2
    """
    f, r = np.asarray(fpr, dtype=np.float64), np.asarray(recall, dtype=np.float64)
    return np.where(f < budget, 1 + r, -f)


def is_feasible(key: ArrayLike) -> NDArray[np.bool_]:
    """Whether a :func:`paper_key` is that of a feasible pair."""
    return np.asarray(np.asarray(key) >= 1)


def bounded_recall(
    source_scores: ArrayLike, target_scores: ArrayLike, *, ratio: float = 10.0, confidence: float = 0.95
) -> float:
    """The share of target rows that a score separates from source, computed without labels.

    The maximum over thresholds t of P_target(s > t) − ratio · UCB[P_source(s > t)], at least 0, where UCB is
    the one-sided Clopper–Pearson bound. A score gains nothing by following a background shift whose density ratio
    is at most ``ratio``.
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


_EDGES = np.linspace(-40, 40, 4001)


@cache
def _at_offsets() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """σ and softplus of every bin centre plus every offset, (offsets, bins)."""
    moved = (_EDGES[1:] + _EDGES[:-1]) / 2 + np.linspace(-6, 4, 21)[:, None]
    return expit(moved), np.logaddexp(0, moved)


def penalised_recall(source_logits: ArrayLike, target_logits: ArrayLike, ratio: float) -> float:
    """The share of target rows that a head separates from source, by the losses that it was trained with.

    The maximum over offsets b of mean_target σ(h + b) − ratio/2 · mean_source softplus(h + b). At h + b = 0 the
    two slopes balance where the target is ``ratio`` times as dense as the source, so known rows that became up to
    that many times as common gain nothing. The value is smooth in every row and varies much less than
    :func:`bounded_recall`, which depends on the few source rows that score highest. Calling nothing novel has
    value 0.

    >>> source, target = [-9.0] * 90, [-9.0] * 90 + [9.0] * 10
    >>> round(penalised_recall(source, target, ratio=12), 3)
    0.1
    """
    # shares of rows in narrow bins do not depend on the order of the rows, and need one pass for all offsets
    source, target = (
        np.histogram(np.clip(np.asarray(logits, dtype=np.float64), -39.9, 39.9), _EDGES)[0] / np.size(logits)
        for logits in (source_logits, target_logits)
    )
    sigmoid, softplus = _at_offsets()
    return float((sigmoid @ target - ratio / 2 * (softplus @ source)).max())
