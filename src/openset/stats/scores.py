"""Novelty scores that are functions of class logits alone; higher is more novel, over the last axis.

They compute in float64 and keep apart what a softmax would round together: the doubt of a sure row is a sum of
the small terms themselves, never one minus something near one.
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
    """Entropy over that of the uniform distribution: from 0 to 1, and 0 where there is one class.

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


def _tempered(logits: ArrayLike, temperature: float) -> NDArray[np.float64]:
    check_number("temperature", temperature, open_low=True)
    return np.asarray(logits, dtype=np.float64) / temperature


def _others(logits: ArrayLike, temperature: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """exp(−gap) and gap of every class to the top one, whose own entry of the first is 0."""
    z = _tempered(logits, temperature)
    top = z.argmax(axis=-1)[..., None]
    gaps = np.take_along_axis(z, top, axis=-1) - z
    weights = np.exp(-gaps)
    np.put_along_axis(weights, top, 0.0, axis=-1)
    return weights, gaps
