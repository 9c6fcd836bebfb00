"""What counts above a threshold prove about the novel fraction if the background shift is bounded.

Let A be "the score is above a threshold" that was fixed before looking at the rows. If the density of known rows
in the target is at most B times that of source,
    P_T(A) = α·P_novel(A) + (1 − α)·P_known(A) ≤ α + (1 − α)·B·P_S(A).
Large counts in target beside small ones in source therefore prove α > 0. Nothing else is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import bdtrc, gammaln, xlog1py, xlogy
from scipy.stats import binom

from openset.stats.held_out import HeldOutScores, Scores
from openset.stats.proportions import binomial_interval

_RATES = 40
_NUISANCE_ERROR = 1e-4
_NEVER = 1e-9
_CAUTION = 3.0
_TAIL, _FEWEST_IN_TAIL = 0.02, 5
_PRECISION = 1e-5


@dataclass(frozen=True)
class Counts:
    """How many of the held-out rows lie above the thresholds that other rows chose."""

    source_above: int
    n_source: int
    target_above: int
    n_target: int


@dataclass(frozen=True)
class Cut:
    """A head and a threshold on its score."""

    head: int
    threshold: float


def novelty_p_value(counts: Counts, max_density_ratio: float, fraction: float = 0.0) -> float:
    """The p-value of "the novel fraction is at most ``fraction``", if known rows shift by at most that ratio.

    An exact test of two binomial counts: pairs of counts are ordered by the standardised excess of target over
    what the hypothesis allows, and the probability of a pair at least as extreme is the largest over all source
    rates within an interval of confidence 1 − γ, plus γ (Berger and Boos, 1994). It is much sharper than two
    confidence limits, since what is unlikely on both sides at once need not be allowed for.

    >>> round(novelty_p_value(Counts(0, 2000, 60, 2000), 12), 4)
    0.0062
    >>> novelty_p_value(Counts(5, 2000, 60, 2000), 12) > 0.5
    True
    """
    n, m = counts.n_source, counts.n_target
    if not n or not m:
        return 1.0
    excess = float(_excess(counts.source_above, counts.target_above, n, m, max_density_ratio, fraction))
    if excess <= 0:
        return 1.0
    low, high = binomial_interval(counts.source_above, n, 1 - _NUISANCE_ERROR)
    # source counts that have any chance at those rates; all below count as extreme
    first, last = int(binom.ppf(_NEVER, n, low)), int(binom.ppf(1 - _NEVER, n, high))
    source = np.arange(first, last + 1)
    least = _least_extreme(source, excess, n, m, max_density_ratio, fraction)

    def chance(roots: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of a pair at least as extreme, at source rates given by their roots."""
        rates = roots[:, None] ** 2
        allowed = np.minimum(fraction + (1 - fraction) * max_density_ratio * rates, 1.0)
        tail = np.where(least > m, 0.0, bdtrc(np.minimum(least, m) - 1.0, m, allowed))
        return (_binomial(source, n, rates) * tail).sum(axis=1)

    roots = np.linspace(np.sqrt(low), np.sqrt(high), _RATES)
    coarse = chance(roots)
    top = int(coarse.argmax())
    fine = chance(np.linspace(roots[max(top - 1, 0)], roots[min(top + 1, _RATES - 1)], _RATES // 2))
    return float(min(1.0, max(coarse.max(), fine.max()) + _NUISANCE_ERROR + _NEVER))


def fraction_lower_bound(counts: Counts, max_density_ratio: float, confidence: float = 0.95) -> float:
    """The largest fraction that :func:`novelty_p_value` rejects: α is at least that with the confidence stated.

    >>> round(fraction_lower_bound(Counts(0, 2000, 200, 2000), 12), 3)
    0.082
    """
    error = 1 - confidence
    share = counts.target_above / max(counts.n_target, 1)
    if novelty_p_value(counts, max_density_ratio) > error:
        return 0.0

    def beyond(fraction: float) -> float:
        return float(np.log(novelty_p_value(counts, max_density_ratio, fraction) / error))

    return float(brentq(beyond, 0.0, share, xtol=_PRECISION))


def cautious_cut(source: Scores, target: Scores, max_density_ratio: float) -> Cut:
    """The head and threshold that promise the largest lower bound, from (rows, heads) of both sides.

    The promise is R − B·F − 3 sd for the shares R and F above the threshold. Beyond the largest source scores F
    is not 0: it is at least that of an exponential tail through the highest 2 % of source scores, and half a row.
    Without that tail, thresholds fall just above a source score, where the next sample has a few rows.
    """
    return _best_cut(source, target, _smooth_tail, max_density_ratio, _CAUTION)


def dense_cut(source: Scores, target: Scores, max_density_ratio: float) -> Cut:
    """The largest R − B·F: target rows are B times as dense as source rows down to this threshold, not below."""
    return _best_cut(source, target, _share_above, max_density_ratio, 0.0)


ChooseCut = Callable[[Scores, Scores, float], Cut]


def cross_fitted_cuts(
    held_out: HeldOutScores, max_density_ratio: float, choose: ChooseCut = cautious_cut
) -> tuple[Cut, ...]:
    """For every part the cut that the rows of all *other* parts choose, so that its own rows can test it."""
    return tuple(choose(*held_out.without(k), max_density_ratio) for k in range(held_out.n_members))


def count_above(held_out: HeldOutScores, cuts: Sequence[Cut]) -> Counts:
    """The rows of every part above its cut, pooled."""

    def above(parts: tuple[Scores, ...]) -> int:
        return sum(int((part[:, cut.head] > cut.threshold).sum()) for part, cut in zip(parts, cuts, strict=True))

    return Counts(above(held_out.source), held_out.n_source, above(held_out.target), held_out.n_target)


def _best_cut(
    source: Scores,
    target: Scores,
    false_positives: Callable[[Scores, Scores], Scores],
    ratio: float,
    caution: float,
) -> Cut:
    """Over all heads and all scores as thresholds, the best of what is promised."""
    n, m = max(len(source), 1), max(len(target), 1)
    best, cut = -np.inf, Cut(0, np.inf)
    for head in range(source.shape[1]):
        s, t = np.sort(source[:, head]), np.sort(target[:, head])
        cuts = np.unique(np.concatenate([s, t]))
        false, recall = false_positives(s, cuts), _share_above(t, cuts)
        spread = np.sqrt(recall * (1 - recall) / m + ratio**2 * false / n)
        promise = recall - ratio * false - caution * spread
        if len(cuts) and promise.max() > best:
            best, cut = float(promise.max()), Cut(head, float(cuts[promise.argmax()]))
    return cut


def _share_above(ordered: Scores, cuts: Scores) -> Scores:
    return np.asarray((len(ordered) - np.searchsorted(ordered, cuts, side="right")) / max(len(ordered), 1))


def _smooth_tail(ordered: Scores, cuts: Scores) -> Scores:
    """Share above each cut, not below an exponential tail through the highest scores, and half a row more."""
    n, share = len(ordered), _share_above(ordered, cuts)
    k = max(_FEWEST_IN_TAIL, int(_TAIL * n))
    if k >= n:
        return share + 1 / max(n, 1)
    start = ordered[-k - 1]
    mean_excess = max(float(np.mean(ordered[-k:] - start)), 1e-12)
    tail = k / n * np.exp(-np.maximum(cuts - start, 0) / mean_excess)
    return np.where(cuts > start, np.maximum(share, tail), share) + 0.5 / n


def _binomial(counts: NDArray[np.intp], n: int, rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each count, without the checks that make scipy's own slow."""
    ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    return np.exp(ways + xlogy(counts, rates) + xlog1py(n - counts, -rates))


def _excess(
    source: ArrayLike, target: ArrayLike, n: int, m: int, ratio: float, fraction: float
) -> NDArray[np.float64]:
    """Target share above the threshold beyond what is allowed, in standard deviations under the hypothesis."""
    x, y = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    slope = (1 - fraction) * ratio
    # the source rate if all of the target count beyond the fraction is of known rows
    rate = np.minimum((x + np.maximum(y - fraction * m, 0)) / (n + slope * m), 1.0)
    allowed = np.minimum(fraction + slope * rate, 1.0)
    variance = allowed * (1 - allowed) / m + slope**2 * rate * (1 - rate) / n
    return (y / m - fraction - slope * x / n) / np.sqrt(np.maximum(variance, 1e-12))


def _least_extreme(
    source: NDArray[np.intp], excess: float, n: int, m: int, ratio: float, fraction: float
) -> NDArray[np.intp]:
    """For every source count the smallest target count with at least that excess; m + 1 if there is none."""
    low, high = np.zeros(len(source), np.intp), np.full(len(source), m + 1)
    while (low < high).any():
        middle = (low + high) // 2
        enough = _excess(source, middle, n, m, ratio, fraction) >= excess - 1e-9
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        low = np.minimum(low, high)
    return low
