"""Problems of Gaussian subtypes with a known truth, for benchmarks of the verdict.

Every problem is a mixture of subtypes with known shares. So the density ratio of known rows, target over source,
has an exact bound, and the best score (the ratio of the true densities) tells how separable the new class is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from openset.stats.metrics import auprc

CLASSES, SUBTYPES, SPREAD = 3, 3, 6.0


@dataclass(frozen=True)
class Setting:
    """The parameters of one problem."""

    group: str
    seed: int
    rows: int
    features: int
    fraction: float
    ratio: float
    distance: float


@dataclass(frozen=True)
class Problem:
    """Source and target rows, and the truth that a method must not see."""

    X: np.ndarray
    y: np.ndarray
    X_target: np.ndarray
    is_new: np.ndarray
    density_ratio: float
    oracle_auprc: float


def settings(group: str, number: int, first: int) -> list[Setting]:
    """The problems of one group, one per seed."""
    made = []
    for seed in range(first, first + number):
        random = np.random.default_rng([seed, len(group)])
        rows, features = int(random.choice([500, 1000, 2000])), int(random.choice([10, 20, 50]))
        fraction, ratio = float(random.choice([0.02, 0.05, 0.1, 0.2, 0.3])), float(random.choice([1, 3, 8, 12]))
        distance = float(random.uniform(2, 8))
        if group == "no new class":
            fraction, ratio = 0.0, float(random.choice([4, 8, 12]))
        elif group in ("strong", "small"):
            rows, ratio, distance = 2000, 12.0, float(random.uniform(5.5, 9))
            fraction = {"strong": 0.1, "small": 0.05}[group]
        made.append(Setting(group, seed, rows, features, fraction, ratio, distance))
    return made


def draw(setting: Setting) -> Problem:
    """A problem whose known rows have a density ratio of at most ``setting.ratio``, and usually just that."""
    random = np.random.default_rng([setting.seed, len(setting.group), 1])

    def directions(*shape: int) -> np.ndarray:
        d = random.standard_normal((*shape, setting.features))
        return d / np.linalg.norm(d, axis=-1, keepdims=True)

    centres = (SPREAD * directions(CLASSES, 1) + SPREAD * directions(CLASSES, SUBTYPES)).reshape(
        -1, setting.features
    )
    novel = centres[random.integers(len(centres))] + setting.distance * directions()
    source_mix = 0.9 * random.dirichlet(np.ones(len(centres))) + 0.1 / len(centres)
    target_mix = random.dirichlet(np.full(len(centres), 0.5))
    largest = (target_mix / source_mix).max()
    keep = min(
        1.0, (setting.ratio - 1) / (largest - 1)
    )  # share of the target's own mix; the rest is the source's mix
    target_mix = keep * target_mix + (1 - keep) * source_mix

    def known(n: int, mix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        subtype = random.choice(len(mix), size=n, p=mix)
        return centres[subtype] + random.standard_normal((n, setting.features)), subtype // SUBTYPES

    def new(n: int) -> np.ndarray:
        return novel + random.standard_normal((n, setting.features))

    def ratio_of_densities(rows: np.ndarray) -> np.ndarray:
        distances = ((rows[:, None] - centres) ** 2).sum(axis=-1)
        return -0.5 * ((rows - novel) ** 2).sum(axis=-1) - logsumexp(
            -0.5 * distances + np.log(target_mix), axis=1
        )

    X, y = known(setting.rows, source_mix)
    n_new = random.binomial(setting.rows, setting.fraction)
    order = random.permutation(setting.rows)
    X_target = np.concatenate([known(setting.rows - n_new, target_mix)[0], new(n_new)])[order]
    is_new = order >= setting.rows - n_new
    fresh, fresh_new = known(4000, target_mix)[0], new(444)  # one in ten, whatever the fraction
    truth = np.repeat([False, True], [len(fresh), len(fresh_new)])
    best = auprc(truth, ratio_of_densities(np.concatenate([fresh, fresh_new])))
    return Problem(X, y, X_target, is_new, float((target_mix / source_mix).max()), float(best))
