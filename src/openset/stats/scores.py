"""Novelty scores from class logits (over the last axis; higher = more novel), and a scale shared by members.

All compute in float64. Rows that a softmax would round to the same value stay apart: 1 − max p is computed as a
sum of the small terms, never as one minus a number near one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from openset._utils.params import check_number


def msp_score(logits: ArrayLike, temperature: float = 1.0) -> NDArray[np.float64]:
    """1 − max softmax probability, exact to the smallest floats.

    >>> msp_score([[3, 1, 0], [1, 1, 1]]).round(6)
    array([0.156205, 0.666667])
    >>> float(msp_score([100.0, 0.0]))  # one minus a softmax would be 0
    3.720075976020836e-44
    """
    weights, _ = _others(logits, temperature)
    rest = weights.sum(axis=-1)
    return rest / (1 + rest)


def entropy_score(logits: ArrayLike, temperature: float = 1.0) -> NDArray[np.float64]:
    """−Σ p log p of the softmax, in nats, exact to the smallest floats.

    >>> entropy_score([[3, 1, 0], [1, 1, 1]]).round(6)
    array([0.524267, 1.098612])
    """
    weights, gaps = _others(logits, temperature)
    rest = weights.sum(axis=-1)
    return np.log1p(rest) + (weights * gaps).sum(axis=-1) / (1 + rest)


def normalised_entropy_score(logits: ArrayLike, temperature: float = 1.0) -> NDArray[np.float64]:
    """Entropy divided by that of the uniform distribution: from 0 to 1; 0 if there is one class.

    >>> normalised_entropy_score([[3, 1, 0], [1, 1, 1]]).round(6)
    array([0.477208, 1.      ])
    """
    entropy = entropy_score(logits, temperature)
    n_classes = np.shape(logits)[-1]
    return entropy / np.log(n_classes) if n_classes > 1 else entropy


def mls_score(logits: ArrayLike) -> NDArray[np.float64]:
    """−max logit.

    >>> mls_score([[3, 1, 0], [0, 2, 1.9]])
    array([-3., -2.])
    """
    return -np.asarray(logits, dtype=np.float64).max(axis=-1)


def energy_score(logits: ArrayLike, temperature: float = 1.0) -> NDArray[np.float64]:
    """The free energy −T·log Σ exp(logit / T); it tends to −max logit as T tends to 0.

    >>> energy_score([[3, 1, 0], [1, 1, 1]]).round(6)
    array([-3.169846, -2.098612])
    """
    tempered = _tempered(logits, temperature)
    return np.asarray(-temperature * logsumexp(tempered, axis=-1))


def rank_log_odds(reference: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
    """Scores on a scale shared by all members: the log-odds of their rank among ``reference`` rows.

    Between reference scores the rank is interpolated. Beyond them the log-odds go on rising in proportion to the
    score, so the map is increasing and rows above every reference row keep their order.

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


def _tempered(logits: ArrayLike, temperature: float) -> NDArray[np.float64]:
    check_number("temperature", temperature, open_low=True)
    return np.asarray(logits, dtype=np.float64) / temperature


def _others(logits: ArrayLike, temperature: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """exp(−gap) and gap of every class to the top class; the top class itself gets 0 in the first."""
    z = _tempered(logits, temperature)
    top = z.argmax(axis=-1)[..., None]
    gaps = np.take_along_axis(z, top, axis=-1) - z
    weights = np.exp(-gaps)
    np.put_along_axis(weights, top, 0.0, axis=-1)
    return weights, gaps
