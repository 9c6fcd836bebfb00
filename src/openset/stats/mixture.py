"""The novel fraction as a mixture proportion: four estimators from scores of source and target rows.

All take *knownness*, higher = more like source, of rows that trained nothing, and return the share α of target
rows that are novel; the prior that PU learning wants is π = 1 − α. Except for the last one they assume that
known rows score alike in source and target. A background shift breaks that: BBE then reads almost any α as large.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter1d, median_filter
from scipy.optimize import isotonic_regression
from scipy.special import expit

from openset.stats.proportions import NOT_IDENTIFIED, ProportionEstimate, binomial_interval

_CELL = 0.01
_LARGEST_LOGIT = 40.0
_TRIVIAL = 0.01


def best_bin_fraction(
    source_known: ArrayLike,
    target_known: ArrayLike,
    *,
    delta: float = 0.1,
    gamma: float = 0.01,
    legacy: bool = False,
) -> ProportionEstimate:
    """BBE: the novel fraction from the purest top bin of knownness scores.

    With F_S(c), F_T(c) the shares of source and target rows that score at least c, the bin c minimises
    F_T/F_S + (1 + γ)·(√(log(1/δ)/2n_S) + √(log(1/δ)/2n_T)) / F_S over the distinct target scores, and
    α = 1 − F_T(c)/F_S(c), clipped to [0, 1]. The interval is that slack on both sides. A bin needs two rows of
    each side. ``legacy`` counts target rows from zero, as the authors' code does, and skips the last score.

    Garg, Wu, Smola, Balakrishnan and Lipton (2021), Mixture proportion estimation and PU learning.

    >>> z = np.linspace(0, 1, 500)
    >>> best_bin_fraction(z + 2, np.concatenate([z + 2, z])).value  # half the target is below all source
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
        return ProportionEstimate(1.0, 0.0, 1.0, 1.0, "BBE")
    share_source, share_target = in_source[usable] / len(source), in_target[usable] / len(target)
    ratio = share_target / share_source
    log_term = np.log(1 / delta) / 2
    slack = (1 + gamma) * (np.sqrt(log_term / len(source)) + np.sqrt(log_term / len(target))) / share_source
    # of equally good bins the largest, which is the lowest cut
    best = int((ratio + slack).argmin())
    known, margin = float(ratio[best]), float(slack[best])
    low, value, high = (float(np.clip(1 - p, 0, 1)) for p in (known + margin, known, known - margin))
    return ProportionEstimate(value, low, high, 1 - delta, "BBE")


def elkan_noto_fraction(source_known: ArrayLike, target_known: ArrayLike) -> ProportionEstimate:
    """EN ratio: α = 1 − mean_T q / mean_S q for q(x) = P(source | x), probabilities in [0, 1].

    Right if q is constant on known rows and 0 on novel ones; it has no interval of its own.

    Elkan and Noto (2008), Learning classifiers from only positive and unlabeled data.

    >>> elkan_noto_fraction([0.5, 0.5], [0.5, 0.5, 0.5, 0.0]).value
    0.25
    """
    source, target = _flat(source_known), _flat(target_known)
    if not len(source) or not len(target) or not source.mean() > 0:
        return NOT_IDENTIFIED
    return _without_interval(1 - target.mean() / source.mean(), "EN")


def dedpul_fraction(
    source_known: ArrayLike,
    target_known: ArrayLike,
    *,
    target_bandwidth: float = 0.05,
    source_bandwidth: float = 0.1,
    max_iterations: int = 1000,
    tol: float = 1e-5,
) -> ProportionEstimate:
    """DEDPUL: the novel fraction from the density ratio of one-dimensional scores; takes *logits* of knownness.

    r(z) = f_S(z) / f_T(z) by kernel density estimates on logits, smoothed by a rolling median over n_T/20 rows
    and made monotone in z by least squares. EM then looks for α = mean_T max(0, 1 − (1 − α)·r), from α = 0. Where
    it ends at 0 or 1 the largest second difference of that mean minus α, on a grid of .001, is taken instead.

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
    # with a mean ratio below 1 there is no fixed point but α = 1, however slowly EM gets there
    if ratio.mean() <= 1 or not _TRIVIAL < alpha < 1 - _TRIVIAL:
        grid = np.linspace(0, 1, 1001)
        error = np.array([posterior_mean(a) for a in grid]) - grid
        alpha = float(grid[1:-1][np.diff(error, 2).argmax()])
    return _without_interval(alpha, "DEDPUL")


def pure_bin_fraction(
    source_known: ArrayLike, target_known: ArrayLike, *, fpr: float = 0.01, confidence: float = 0.95
) -> ProportionEstimate:
    """The share of target rows that look less known than all but so few source rows: anchored at source FPR.

    The cut lets k source rows below it, k the largest number whose upper Clopper–Pearson limit stays under
    ``fpr`` (0 if none does). It needs no prior, and known rows may shift as long as they stay above the cut;
    novel rows that do not lie below it are missed, so it errs downwards. The interval takes ``fpr`` off its lower
    end.
    """
    source, target = np.sort(_flat(source_known)), _flat(target_known)
    if not len(source) or not len(target):
        return NOT_IDENTIFIED
    allowed = 0
    # the one-sided limit is the upper end of a two-sided interval of twice the error
    while allowed + 1 < len(source) and (
        binomial_interval(allowed + 1, len(source), 1 - 2 * (1 - confidence))[1] <= fpr
    ):
        allowed += 1
    below = int((target < source[allowed]).sum())
    value = below / len(target)
    low, high = binomial_interval(below, len(target), confidence)
    return ProportionEstimate(value, min(value, max(0.0, low - fpr)), high, confidence, "pure bin at source FPR")


Estimator = Callable[[NDArray[np.float64], NDArray[np.float64]], ProportionEstimate]

FROM_LOGITS: dict[str, Estimator] = {
    "bbe": best_bin_fraction,
    "en": lambda source, target: elkan_noto_fraction(expit(source), expit(target)),
    "dedpul": dedpul_fraction,
}
"""The estimators of a class prior by name, each from logits of knownness."""


def _flat(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64).ravel()


def _without_interval(value: float, method: str) -> ProportionEstimate:
    """An estimate that says nothing about its own error."""
    return ProportionEstimate(float(np.clip(value, 0, 1)), 0.0, 1.0, 1.0, method)


def _density(
    sample: NDArray[np.float64], at: NDArray[np.float64], low: float, high: float, bandwidth: float
) -> NDArray[np.float64]:
    """Gaussian kernel density on a grid of cells much narrower than the bandwidth: linear in the rows."""
    cells = int(np.ceil((high - low) / _CELL)) + 1
    counts = np.bincount(np.rint((sample - low) / _CELL).astype(np.intp), minlength=cells)
    smooth = gaussian_filter1d(counts.astype(np.float64), bandwidth / _CELL, mode="constant", truncate=6)
    return np.asarray(smooth[np.rint((at - low) / _CELL).astype(np.intp)] / (len(sample) * _CELL))
