"""The known classes in the target, without labels: their shares, and the accuracy of the classifier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset._utils.params import check_number

Floats = NDArray[np.float64]

_TOLERANCE, _MOST_STEPS = 1e-7, 1000
_RESAMPLES = 200


@dataclass(frozen=True)
class AccuracyEstimate:
    """The classifier's accuracy on known target rows with its interval, and on source validation rows."""

    value: float
    low: float
    high: float
    source_accuracy: float
    confidence: float


def target_class_shares(
    source_probabilities: ArrayLike,
    y: ArrayLike,
    target_probabilities: ArrayLike,
    novel_weight: ArrayLike | None = None,
) -> Floats:
    """The share of every known class among the known target rows, corrected for a changed class mix.

    EM for the class priors (Saerens, Latinne and Decaestecker, 2002). Takes the class probabilities (rows,
    classes) of source validation rows, the class index of each, and the probabilities of target rows.
    ``novel_weight`` is how likely each target row is novel; the row counts with one minus this weight. Correct if
    only the mix of classes changed; a shift within classes leaves an error.

    >>> sure = np.eye(2)
    >>> target_class_shares(sure, [0, 1], sure[[0, 0, 0, 1]]).round(3).tolist()
    [0.75, 0.25]
    >>> target_class_shares(sure, [0, 1], sure[[0, 0, 0, 1]], novel_weight=[1, 1, 0, 0]).round(3).tolist()
    [0.5, 0.5]
    """
    source, labels, target, weight = _checked(source_probabilities, y, target_probabilities, novel_weight)
    prior = np.bincount(labels, minlength=source.shape[1]) / len(labels)
    return _shifted_prior(target, weight, prior)


def estimate_target_accuracy(
    source_probabilities: ArrayLike,
    y: ArrayLike,
    target_probabilities: ArrayLike,
    novel_weight: ArrayLike | None = None,
    *,
    confidence: float = 0.9,
    seed: int = 0,
) -> AccuracyEstimate:
    """The classifier's accuracy on known target rows, from its confidence alone.

    Average thresholded confidence (Garg et al., 2022). The threshold is the confidence that as many source
    validation rows exceed as are classified correctly. The estimate is the share of target rows above it. The
    interval comes from resampling both sides. Both ends are then widened by half the estimated drop, because
    a shift within classes shows only partly in the confidence.
    """
    check_number("confidence", confidence, high=1, open_low=True, open_high=True)
    source, labels, target, weight = _checked(source_probabilities, y, target_probabilities, novel_weight)
    right = source.argmax(axis=1) == labels
    sure, target_sure = source.max(axis=1), target.max(axis=1)
    value, random = _thresholded_confidence(sure, right, target_sure, weight), np.random.default_rng(seed)
    resampled = []
    for _ in range(_RESAMPLES):
        s, t = random.integers(len(sure), size=len(sure)), random.integers(len(weight), size=len(weight))
        if weight[t].sum() > 0:
            resampled.append(_thresholded_confidence(sure[s], right[s], target_sure[t], weight[t]))
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    accuracy = float(right.mean())
    unseen = abs(accuracy - value) / 2
    low, high = max(0.0, min(low, value) - unseen), min(1.0, max(high, value) + unseen)
    return AccuracyEstimate(value, float(low), float(high), accuracy, confidence)


def _shifted_prior(target: Floats, weight: Floats, prior: Floats) -> Floats:
    shares = prior
    for _ in range(_MOST_STEPS):
        joint = target * np.divide(shares, prior, out=np.zeros_like(prior), where=prior > 0)
        total = joint.sum(axis=1, keepdims=True)
        posterior = np.divide(joint, total, out=np.tile(shares, (len(joint), 1)), where=total > 0)
        before, shares = shares, weight @ posterior / weight.sum()
        if np.abs(shares - before).max() < _TOLERANCE:
            break
    return np.asarray(shares)


def _thresholded_confidence(sure: Floats, right: NDArray[np.bool_], target_sure: Floats, weight: Floats) -> float:
    wrong = int((~right).sum())
    # as many source rows lie below the threshold as are classified incorrectly
    threshold = np.sort(sure)[wrong] if wrong < len(sure) else np.inf
    return float(weight @ (target_sure >= threshold) / weight.sum())


def _checked(
    source: ArrayLike, y: ArrayLike, target: ArrayLike, novel_weight: ArrayLike | None
) -> tuple[Floats, NDArray[np.intp], Floats, Floats]:
    s, t = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    labels = np.asarray(y, dtype=np.intp)
    if s.ndim != 2 or t.ndim != 2 or s.shape[1] != t.shape[1] or len(s) != len(labels) or not len(s):
        raise ValueError(
            f"probabilities have shapes {s.shape} (source, {len(labels)} labels) and {t.shape} (target): "
            "expected (rows, classes) of the same classes, and a label for every source row."
        )
    novel = np.zeros(len(t)) if novel_weight is None else np.asarray(novel_weight, dtype=np.float64)
    if novel.shape != (len(t),) or not ((novel >= 0) & (novel <= 1)).all():
        raise ValueError("novel_weight must be a number from 0 to 1 for every target row.")
    if not len(t) or not (novel < 1).any():
        raise ValueError("every target row is novel: nothing can be said about the known classes.")
    return s, labels, t, 1 - novel
