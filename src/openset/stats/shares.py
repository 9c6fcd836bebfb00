"""Estimates of the novel share: which part of the target rows belongs to a new class.

All four estimators take scores of validation rows, and assume that known rows score alike in source and target.
A background shift breaks that assumption: BBE then returns a large share for almost any true one.
:func:`anchored_share` takes novelty scores and a threshold. The others come from PU learning and take
*knownness*, higher = more like source. They estimate the share α of novel rows; PU learning's prior is π = 1 − α.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter1d, median_filter
from scipy.optimize import isotonic_regression
from scipy.special import expit
from scipy.stats import beta

_CELL = 0.01
_LARGEST_LOGIT = 40.0
_TRIVIAL = 0.01


@dataclass(frozen=True)
class ShareEstimate:
    """A share with its interval, the confidence of the interval, and the method that produced it.

    If a bound on the background shift was assumed, ``max_density_ratio`` is that bound, ``profile`` has the lower
    end for several bounds (as text, for JSON), and ``assumptions`` says what both ends rely on. An upper end that
    nothing supports is 1, with ``high_identified`` false.
    """

    value: float
    low: float
    high: float
    confidence: float
    method: str
    max_density_ratio: float | None = None
    profile: dict[str, float] = field(default_factory=dict)
    assumptions: str = ""
    high_identified: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.value <= self.high <= 1:
            raise ValueError(f"need 0 <= low <= value <= high <= 1, got {self}")

    def __str__(self) -> str:
        if not self.high_identified:
            return f"at least {self.low:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


NOT_IDENTIFIED = ShareEstimate(0.0, 0.0, 1.0, 1.0, "not identified", high_identified=False)


def binomial_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact two-sided interval of a binomial probability (Clopper–Pearson).

    >>> low, high = binomial_interval(0, 10)
    >>> round(low, 4), round(high, 4)
    (0.0, 0.3085)
    """
    if trials <= 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(beta.ppf(tail, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, successes + 1, trials - successes))
    return low, high


def unmixed_share(above: float, known_above: float) -> float:
    """The novel share (R − F) / (1 − F), clipped to [0, 1], if all novel rows score above the threshold.

    R is the share of target rows above it, F that of known rows.

    >>> unmixed_share(0.28, 0.1)
    0.2
    """
    if known_above >= 1:
        return 0.0
    return float(np.clip((above - known_above) / (1 - known_above), 0, 1))


def anchored_share(
    source_scores: ArrayLike, target_scores: ArrayLike, threshold: float, *, confidence: float = 0.95
) -> ShareEstimate:
    """The novel share, if known target rows exceed the threshold as rarely as source rows.

    Let R be the share of target validation rows above the threshold and F that of source validation rows. Then
    R = α·P(novel above) + (1 − α)·P(known above). If all novel rows lie above it, and known target rows exceed it
    at the rate F, then α = (R − F) / (1 − F). The interval combines two Clopper–Pearson intervals, each with half
    the error. It covers sampling error only, not a background shift that lifts known rows above the threshold.
    """
    source, target = np.asarray(source_scores), np.asarray(target_scores)
    if not len(source) or not len(target):
        return NOT_IDENTIFIED
    each = 1 - (1 - confidence) / 2
    false, called = int((source > threshold).sum()), int((target > threshold).sum())
    f_low, f_high = binomial_interval(false, len(source), each)
    r_low, r_high = binomial_interval(called, len(target), each)
    value = unmixed_share(called / len(target), false / len(source))
    low, high = unmixed_share(r_low, f_high), unmixed_share(r_high, f_low)
    return ShareEstimate(value, min(low, value), max(high, value), confidence, "anchored at source FPR")


def best_bin_share(
    source_known: ArrayLike,
    target_known: ArrayLike,
    *,
    delta: float = 0.1,
    gamma: float = 0.01,
    legacy: bool = False,
) -> ShareEstimate:
    """BBE: the novel share from the purest top bin of knownness scores.

    F_S(c) and F_T(c) are the shares of source and target rows that score at least c. The bin c minimises
    F_T/F_S + (1 + γ)·(√(log(1/δ)/2n_S) + √(log(1/δ)/2n_T)) / F_S over the distinct target scores, and
    α = 1 − F_T(c)/F_S(c), clipped to [0, 1]. The second term is the slack; the interval adds it on both sides. A
    bin needs two rows of each side. ``legacy`` counts target rows from zero, as the authors' code does, and skips
    the last score.

    Garg, Wu, Smola, Balakrishnan and Lipton (2021), Mixture proportion estimation and PU learning.

    >>> z = np.linspace(0, 1, 500)
    >>> best_bin_share(z + 2, np.concatenate([z + 2, z])).value  # half the target is below all source
    0.5
    """
    source, target = np.sort(_flat(source_known)), np.sort(_flat(target_known))
    if len(source) < 2 or len(target) < 2:
        return NOT_IDENTIFIED
    cuts = np.unique(target)
    in_source = len(source) - np.searchsorted(source, cuts, side="left")
    in_target = len(target) - np.searchsorted(target, cuts, side="left")
    usable = (in_source >= 2) & (in_target >= 2)
    if legacy:
        usable[0] &= len(cuts) == 1
        in_target = in_target - 1
    if not usable.any():
        return ShareEstimate(1.0, 0.0, 1.0, 1.0, "BBE")
    share_source, share_target = in_source[usable] / len(source), in_target[usable] / len(target)
    ratio = share_target / share_source
    log_term = np.log(1 / delta) / 2
    slack = (1 + gamma) * (np.sqrt(log_term / len(source)) + np.sqrt(log_term / len(target))) / share_source
    # of equally good bins take the largest, which has the lowest cut
    best = int((ratio + slack).argmin())
    known, margin = float(ratio[best]), float(slack[best])
    low, value, high = (float(np.clip(1 - p, 0, 1)) for p in (known + margin, known, known - margin))
    return ShareEstimate(value, low, high, 1 - delta, "BBE")


def elkan_noto_share(source_known: ArrayLike, target_known: ArrayLike) -> ShareEstimate:
    """EN ratio: α = 1 − mean_T q / mean_S q for q(x) = P(source | x), probabilities in [0, 1].

    Correct if q is constant on known rows and 0 on novel ones. It has no interval of its own.

    Elkan and Noto (2008), Learning classifiers from only positive and unlabeled data.

    >>> elkan_noto_share([0.5, 0.5], [0.5, 0.5, 0.5, 0.0]).value
    0.25
    """
    source, target = _flat(source_known), _flat(target_known)
    if not len(source) or not len(target) or not source.mean() > 0:
        return NOT_IDENTIFIED
    return _without_interval(1 - target.mean() / source.mean(), "EN")


def dedpul_share(
    source_known: ArrayLike,
    target_known: ArrayLike,
    *,
    target_bandwidth: float = 0.05,
    source_bandwidth: float = 0.1,
    max_iterations: int = 1000,
    tol: float = 1e-5,
) -> ShareEstimate:
    """DEDPUL: the novel share from the density ratio of one-dimensional scores; takes *logits* of knownness.

    r(z) = f_S(z) / f_T(z) by kernel density estimates on logits, smoothed by a rolling median over n_T/20 rows
    and made monotone in z by least squares. EM then solves α = mean_T max(0, 1 − (1 − α)·r), starting from α = 0.
    If EM ends at 0 or 1, α is instead the point of a grid of step .001 at which that mean minus α has its largest
    second difference.

    Ivanov (2020), DEDPUL: difference-of-estimated-densities-based positive-unlabeled learning.
    """
    source, target = (
        np.clip(_flat(z), -_LARGEST_LOGIT, _LARGEST_LOGIT) for z in (source_known, np.sort(_flat(target_known)))
    )
    if len(source) < 2 or len(target) < 2:
        return NOT_IDENTIFIED
    low, high = min(source.min(), target.min()), max(source.max(), target.max())
    mixed = _density(target, target, low, high, target_bandwidth)
    ratio = _density(source, target, low, high, source_bandwidth) / np.maximum(mixed, np.finfo(float).tiny)
    ratio = median_filter(ratio, size=max(1, len(target) // 20), mode="nearest")
    ratio = np.asarray(isotonic_regression(ratio).x)

    def posterior_mean(alpha: float) -> float:
        return float(np.maximum(0.0, 1 - (1 - alpha) * ratio).mean())

    alpha = 0.0
    for _ in range(max_iterations):
        before, alpha = alpha, posterior_mean(alpha)
        if abs(alpha - before) < tol:
            break
    # with a mean ratio of at most 1 the only fixed point is α = 1, however slowly EM gets there
    if ratio.mean() <= 1 or not _TRIVIAL < alpha < 1 - _TRIVIAL:
        grid = np.linspace(0, 1, 1001)
        error = np.array([posterior_mean(a) for a in grid]) - grid
        alpha = float(grid[1:-1][np.diff(error, 2).argmax()])
    return _without_interval(alpha, "DEDPUL")


Estimator = Callable[[NDArray[np.float64], NDArray[np.float64]], ShareEstimate]

SHARE_FROM_LOGITS: dict[str, Estimator] = {
    "bbe": best_bin_share,
    "en": lambda source, target: elkan_noto_share(expit(source), expit(target)),
    "dedpul": dedpul_share,
}
"""The PU estimators by name; each takes logits of knownness of source and of target rows."""


def _flat(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64).ravel()


def _without_interval(value: float, method: str) -> ShareEstimate:
    """An estimate whose interval is all of [0, 1], because its error is not known."""
    return ShareEstimate(float(np.clip(value, 0, 1)), 0.0, 1.0, 1.0, method)


def _density(
    sample: NDArray[np.float64], at: NDArray[np.float64], low: float, high: float, bandwidth: float
) -> NDArray[np.float64]:
    """Gaussian kernel density on a grid much finer than the bandwidth; takes time linear in the rows."""
    cells = int(np.ceil((high - low) / _CELL)) + 1
    counts = np.bincount(np.rint((sample - low) / _CELL).astype(np.intp), minlength=cells)
    smooth = gaussian_filter1d(counts.astype(np.float64), bandwidth / _CELL, mode="constant", truncate=6)
    return np.asarray(smooth[np.rint((at - low) / _CELL).astype(np.intp)] / (len(sample) * _CELL))
