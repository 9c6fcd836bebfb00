"""What counts above a threshold prove about the novel share α, if the background shift is bounded.

Let A be the event "the score is above a threshold" that was fixed before looking at the rows. If the density of
known rows in the target is at most B times that of source rows,
    P_T(A) = α·P_novel(A) + (1 − α)·P_known(A) ≤ α + (1 − α)·B·P_S(A).
So a large count in target with a small count in source proves α > 0. Nothing else is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import bdtrc, gammaln, xlog1py, xlogy
from scipy.stats import binom

from openset.stats.shares import binomial_interval
from openset.stats.validation_scores import Scores, ValidationScores

_RATES = 40
_NUISANCE_ERROR = 1e-4
_NEVER = 1e-9
_CAUTION = 3.0
_TAIL, _FEWEST_IN_TAIL = 0.02, 5
_PRECISION = 1e-5


@dataclass(frozen=True)
class Counts:
    """How many validation rows lie above the thresholds; each threshold was chosen on other rows."""

    source_above: int
    n_source: int
    target_above: int
    n_target: int


@dataclass(frozen=True)
class Cut:
    """A head and a threshold on its score."""

    head: int
    threshold: float


def novelty_p_value(counts: Counts, max_density_ratio: float, share: float = 0.0) -> float:
    """The p-value of "the novel share is at most ``share``", if known rows shift by at most that ratio.

    An exact test of two binomial counts. Pairs of counts are ordered by how far the target count exceeds what the
    hypothesis allows, in standard deviations. The p-value is the probability of a pair at least as extreme: the
    largest over all source rates within an interval of confidence 1 − γ, plus γ (Berger and Boos, 1994). This is
    much sharper than two separate confidence limits, which also allow that both counts are extreme at once.

    >>> round(novelty_p_value(Counts(0, 2000, 60, 2000), 12), 4)
    0.0062
    >>> novelty_p_value(Counts(5, 2000, 60, 2000), 12) > 0.5
    True
    """
    n, m = counts.n_source, counts.n_target
    if not n or not m:
        return 1.0
    excess = float(_excess(counts.source_above, counts.target_above, n, m, max_density_ratio, share))
    if excess <= 0:
        return 1.0
    low, high = binomial_interval(counts.source_above, n, 1 - _NUISANCE_ERROR)
    # source counts that can occur at those rates; smaller ones all count as extreme
    first, last = int(binom.ppf(_NEVER, n, low)), int(binom.ppf(1 - _NEVER, n, high))
    source = np.arange(first, last + 1)
    least = _least_extreme(source, excess, n, m, max_density_ratio, share)

    def chance(roots: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability of a pair at least as extreme, at the squares of ``roots`` as source rates."""
        rates = roots[:, None] ** 2
        allowed = np.minimum(share + (1 - share) * max_density_ratio * rates, 1.0)
        tail = np.where(least > m, 0.0, bdtrc(np.minimum(least, m) - 1.0, m, allowed))
        return (_binomial(source, n, rates) * tail).sum(axis=1)

    roots = np.linspace(np.sqrt(low), np.sqrt(high), _RATES)
    coarse = chance(roots)
    top = int(coarse.argmax())
    fine = chance(np.linspace(roots[max(top - 1, 0)], roots[min(top + 1, _RATES - 1)], _RATES // 2))
    return float(min(1.0, max(coarse.max(), fine.max()) + _NUISANCE_ERROR + _NEVER))


def share_lower_bound(counts: Counts, max_density_ratio: float, confidence: float = 0.95) -> float:
    """The largest share that :func:`novelty_p_value` rejects: α is at least this, with the given confidence.

    >>> round(share_lower_bound(Counts(0, 2000, 200, 2000), 12), 3)
    0.082
    """
    error = 1 - confidence
    above = counts.target_above / max(counts.n_target, 1)
    if novelty_p_value(counts, max_density_ratio) > error:
        return 0.0

    def beyond(share: float) -> float:
        return float(np.log(novelty_p_value(counts, max_density_ratio, share) / error))

    return float(brentq(beyond, 0.0, above, xtol=_PRECISION))


def cautious_cut(source: Scores, target: Scores, max_density_ratio: float) -> Cut:
    """The head and threshold with the largest expected lower bound, from scores (rows, heads) of both sides.

    The expected bound is R − B·F − 3 sd, where R and F are the shares of target and source rows above the
    threshold. F is not taken as 0 beyond the largest source scores: it is at least that of an exponential tail
    through the highest 2 % of source scores, plus half a row. Without that tail, thresholds fall just above a
    source score, where the next sample has a few rows.
    """
    return _best_cut(source, target, _smooth_tail, max_density_ratio, _CAUTION)


def dense_cut(source: Scores, target: Scores, max_density_ratio: float) -> Cut:
    """The cut with the largest R − B·F: down to it, target rows are at least B times as dense as source rows."""
    return _best_cut(source, target, _shares_above, max_density_ratio, 0.0)


ChooseCut = Callable[[Scores, Scores, float], Cut]


def cross_fitted_cuts(
    scores: ValidationScores, max_density_ratio: float, choose: ChooseCut = cautious_cut
) -> tuple[Cut, ...]:
    """For every part, a cut chosen on the rows of all *other* parts, so that its own rows can test it."""
    return tuple(choose(*scores.without(k), max_density_ratio) for k in range(scores.n_members))


def count_above(scores: ValidationScores, cuts: Sequence[Cut]) -> Counts:
    """Numbers of rows above the cut of their part, summed over the parts."""

    def above(parts: tuple[Scores, ...]) -> int:
        return sum(int((part[:, cut.head] > cut.threshold).sum()) for part, cut in zip(parts, cuts, strict=True))

    return Counts(above(scores.source), scores.n_source, above(scores.target), scores.n_target)


def _best_cut(
    source: Scores,
    target: Scores,
    false_positives: Callable[[Scores, Scores], Scores],
    ratio: float,
    caution: float,
) -> Cut:
    """The best cut over all heads, with every score tried as a threshold."""
    n, m = max(len(source), 1), max(len(target), 1)
    best, cut = -np.inf, Cut(0, np.inf)
    for head in range(source.shape[1]):
        s, t = np.sort(source[:, head]), np.sort(target[:, head])
        cuts = np.unique(np.concatenate([s, t]))
        false, recall = false_positives(s, cuts), _shares_above(t, cuts)
        spread = np.sqrt(recall * (1 - recall) / m + ratio**2 * false / n)
        bound = recall - ratio * false - caution * spread
        if len(cuts) and bound.max() > best:
            best, cut = float(bound.max()), Cut(head, float(cuts[bound.argmax()]))
    return cut


def _shares_above(ordered: Scores, cuts: Scores) -> Scores:
    return np.asarray((len(ordered) - np.searchsorted(ordered, cuts, side="right")) / max(len(ordered), 1))


def _smooth_tail(ordered: Scores, cuts: Scores) -> Scores:
    """Share above each cut, at least that of an exponential tail through the highest scores, plus half a row."""
    n, share = len(ordered), _shares_above(ordered, cuts)
    k = max(_FEWEST_IN_TAIL, int(_TAIL * n))
    if k >= n:
        return share + 1 / max(n, 1)
    start = ordered[-k - 1]
    mean_excess = max(float(np.mean(ordered[-k:] - start)), 1e-12)
    tail = k / n * np.exp(-np.maximum(cuts - start, 0) / mean_excess)
    return np.where(cuts > start, np.maximum(share, tail), share) + 0.5 / n


def _binomial(counts: NDArray[np.intp], n: int, rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of each count. scipy's own function checks its input, which is slow."""
    ways = gammaln(n + 1) - gammaln(counts + 1) - gammaln(n - counts + 1)
    return np.exp(ways + xlogy(counts, rates) + xlog1py(n - counts, -rates))


def _excess(
    source: ArrayLike, target: ArrayLike, n: int, m: int, ratio: float, share: float
) -> NDArray[np.float64]:
    """How far the target count exceeds what the hypothesis allows, in standard deviations."""
    x, y = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    slope = (1 - share) * ratio
    # the source rate if all target rows above the threshold, except the novel share, are known
    rate = np.minimum((x + np.maximum(y - share * m, 0)) / (n + slope * m), 1.0)
    allowed = np.minimum(share + slope * rate, 1.0)
    variance = allowed * (1 - allowed) / m + slope**2 * rate * (1 - rate) / n
    return (y / m - share - slope * x / n) / np.sqrt(np.maximum(variance, 1e-12))


def _least_extreme(
    source: NDArray[np.intp], excess: float, n: int, m: int, ratio: float, share: float
) -> NDArray[np.intp]:
    """For every source count, the smallest target count with at least that excess; m + 1 if there is none."""
    low, high = np.zeros(len(source), np.intp), np.full(len(source), m + 1)
    while (low < high).any():
        middle = (low + high) // 2
        enough = _excess(source, middle, n, m, ratio, share) >= excess - 1e-9
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        low = np.minimum(low, high)
    return low
