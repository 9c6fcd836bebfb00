"""The ranking learnt from answers: the model's own evidence, corrected by a Gaussian process on the answers.

A row's logit of being new is ``prior + correction``. The prior is the novelty score of the fit, which saw all
rows and no answer. The correction is small far from every answer, so what the unlabelled rows told is never
forgotten; and it may scale the prior down where answers contradict it. Answers can be wrong: one that stands
alone against the prior and its neighbours counts little (decision 29 has what was measured).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from openset.stats.neighbours import evenly_spaced

DIMENSIONS = 64
"""Principal components that rows are compared in."""
WRONG_ANSWERS = 5.0
MOST_WRONG, FEWEST_WRONG = 0.2, 0.05
"""Answers that may be wrong: five, but no larger and no smaller share. Among few answers one alone moves no whole
region; among many they win over the prior."""
LOWEST, HIGHEST = -4.0, 2.0
"""Logits of the prior: rows in the middle of the target, and rows far above the threshold."""
_SPREAD = 6.0
_LINEAR = 0.5
_BIAS = 1.0
_TRUST = 0.5
"""Variances of the correction: near answers, along directions, for all rows alike, and of the prior's weight."""
_SAMPLE = 5000
_STEPS = 20
_FLATTEST = 0.01
_BLOCK = 8192

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of the target rows without an answer: where they lie, and the prior logit of each.

    ``source_rows`` are some rows of the source, and ``source_points`` where they lie.
    """

    points: Floats
    prior: Floats
    source_rows: Rows
    source_points: Floats


def gather_evidence(
    X: NDArray[np.floating], X_target: NDArray[np.floating], score: Floats, threshold: float
) -> Evidence:
    """Standardised principal components of the target's rows, at a mean squared length of 1, and their prior."""
    source, target = (np.asarray(part).reshape(len(part), -1) for part in (X, X_target))
    source_rows = evenly_spaced(len(source), _SAMPLE)
    some = np.concatenate([source[source_rows], target[evenly_spaced(len(target), _SAMPLE)]]).astype(np.float64)
    mean, sd = some.mean(axis=0), some.std(axis=0)
    sd[sd == 0] = 1.0
    directions = np.eye(some.shape[1])
    if some.shape[1] > DIMENSIONS:
        standard = (some - mean) / sd
        _, vectors = np.linalg.eigh(standard.T @ standard)
        directions = vectors[:, ::-1][:, :DIMENSIONS]
    blocks = range(0, len(target), _BLOCK)
    points = np.concatenate([((target[i : i + _BLOCK] - mean) / sd) @ directions for i in blocks])
    length = max(float(np.sqrt((points**2).sum(axis=1).mean())), 1e-12)
    known = ((source[source_rows] - mean) / sd) @ directions
    return Evidence(points / length, prior_logit(score, threshold), source_rows, known / length)


def prior_logit(score: Floats, threshold: float) -> Floats:
    """Scores as logits: 0 at the threshold, :data:`LOWEST` at the median.

    A threshold that calls almost nothing or a third of all rows new is moved to where some are.

    >>> prior_logit(np.arange(101.0), 90.0)[[0, 50, 90, 100]].tolist()
    [-4.0, -4.0, 0.0, 1.0]
    """
    median = float(np.median(score))
    cut = float(np.clip(threshold, np.quantile(score, 0.7), np.quantile(score, 0.98)))
    width = max((cut - median) / -LOWEST, 1e-12)
    return np.asarray(np.clip((score - cut) / width, LOWEST, HIGHEST))


def learn_ranking(evidence: Evidence, rows: Rows, is_new: NDArray[np.bool_]) -> Floats:
    """Logit of being new of every target row, after answers for some rows.

    A Gaussian process for the correction, and answers through a logistic curve that allows for wrong ones, at
    their most likely: soft answers are how probably each is right, then a Newton step, in turn.
    """
    if not len(rows):
        return evidence.prior
    at, prior = evidence.points[rows], evidence.prior[rows]
    K = _kernel(at, prior, at, prior)
    answer = np.where(is_new, 1.0, -1.0)
    wrong = max(FEWEST_WRONG, min(MOST_WRONG, WRONG_ANSWERS / len(rows)))
    correction, weights = np.zeros(len(rows)), np.zeros(len(rows))
    for _ in range(_STEPS):
        p = expit(prior + correction)
        agrees = expit(answer * (prior + correction))
        right = (1 - wrong) * agrees / ((1 - wrong) * agrees + wrong * (1 - agrees))
        soft = np.where(is_new, right, 1 - right)
        curvature = np.maximum(p * (1 - p), _FLATTEST)
        wanted = correction + (soft - p) / curvature
        weights = np.linalg.solve(K + np.diag(1 / curvature), wanted)
        correction = K @ weights
    found = evidence.prior.copy()
    for start in range(0, len(found), _BLOCK):
        part = slice(start, start + _BLOCK)
        found[part] += _kernel(evidence.points[part], evidence.prior[part], at, prior) @ weights
    return found


def _kernel(a: Floats, prior_a: Floats, b: Floats, prior_b: Floats) -> Floats:
    inner = a @ b.T
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * inner
    near = _SPREAD * np.exp(-np.maximum(squared, 0) / 2)
    kernel: Floats = near + _LINEAR * inner + _BIAS + _TRUST * np.outer(prior_a, prior_b)
    return kernel
