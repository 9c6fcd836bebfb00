"""What the order of scores proves about the novel share α, if the background shift is bounded.

Walk down all rows from the highest score. If nothing is new, and the density of known rows in the target is at
most B times that of source rows, then each next row is a source row with a chance of at least n / (n + B·m), for
n source and m target rows. So the number of target rows before the first source row, before the second, and so on
is at most that of a series of independent draws with that chance. Long runs of target rows prove that α > 0.
The evidence of a count is the B up to which it would be a rare event by itself; the strongest one is tested.
With a share α of new rows, at most a binomial number of them may come before all others. Nothing else is assumed.

Nothing is drawn at random and no threshold is chosen on other rows, so the same scores give the same answer, and
a larger B never proves more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.signal import convolve
from scipy.special import betaincinv
from scipy.stats import binom, nbinom

from openset.stats.neighbours import evenly_spaced

RUNGS = (1, 2, 3, 5, 8, 13, 21, 34)
"""The source rows, counted from the highest score, before which target rows are counted."""
_RUNG_LEVEL = 0.02
"""The chance at which rungs are compared; the same for every B, so that B only changes p."""
_MOST_A_ROW = 10
"""Target rows for each source row beyond which more add nothing: the source rows are what limits the test."""
_TAIL = 1e-12
_PRECISION, _ROWS_BACK = 1e-5, 8
_LARGEST_RATIO = 1000.0


@dataclass(frozen=True)
class Counts:
    """How many rows lie above the threshold at which the evidence is strongest."""

    source_above: int
    n_source: int
    target_above: int
    n_target: int


@dataclass(frozen=True, eq=False)
class Ladder:
    """Target rows above the first, second, third, fifth … highest source row: all that the test looks at.

    >>> ladder = Ladder.of([0.1, 0.2, 0.3, 0.9], [0.0, 0.5, 0.8, 1.1, 1.2])
    >>> ladder.above.tolist(), ladder.counts
    ([2], Counts(source_above=0, n_source=4, target_above=2, n_target=5))
    """

    rungs: NDArray[np.intp]
    thresholds: NDArray[np.float64]
    above: NDArray[np.intp]
    n_source: int
    n_target: int

    @classmethod
    def of(cls, source: ArrayLike, target: ArrayLike) -> Ladder:
        """Count the rows of both domains by their scores; rungs are in the highest quarter of the source rows."""
        ordered, other = (np.sort(np.asarray(scores, dtype=np.float64)) for scores in (source, target))
        other = other[evenly_spaced(len(other), _MOST_A_ROW * max(len(ordered), 1))]
        rungs = np.array([rung for rung in RUNGS if 4 * rung <= len(ordered)], dtype=np.intp)
        thresholds = ordered[len(ordered) - rungs]
        above = len(other) - np.searchsorted(other, thresholds, side="right")
        return cls(rungs, thresholds, above, len(ordered), len(other))

    @property
    def best(self) -> int:
        """The index of the rung with the strongest evidence."""
        return int(self._evidence().argmax())

    @property
    def counts(self) -> Counts:
        """The counts at the rung with the strongest evidence."""
        if not len(self.rungs):
            return Counts(0, self.n_source, 0, self.n_target)
        rung, above = int(self.rungs[self.best]), int(self.above[self.best])
        return Counts(rung - 1, self.n_source, above, self.n_target)

    def _evidence(self, above: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """The density ratio up to which each rung's count, by itself, has a chance of at most the rung level."""
        above = self.above if above is None else above
        # P(count ≥ k) of a negative binomial is an incomplete beta function of the chance of a target row
        chance = np.asarray(betaincinv(np.maximum(above, 1), self.rungs, _RUNG_LEVEL))
        return np.where(above > 0, chance / (1 - chance) * self.n_source / max(self.n_target, 1), 0.0)

    def limits(self, share: float = 0.0) -> NDArray[np.intp]:
        """The smallest count on each rung that is as strong evidence as the strongest one here.

        Of a count, the rows of the given novel share are expected anyway; evidence is what is beyond them.
        """
        expected = round(share * self.n_target)
        strongest = self._evidence(self.above - expected).max(initial=0.0)
        low, high = np.zeros(len(self.rungs), np.intp), np.full(len(self.rungs), self.n_target + 1)
        while (low < high).any():
            middle = (low + high) // 2
            enough = self._evidence(middle - expected) >= strongest * (1 - 1e-9)
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        return low


def novelty_p_value(ladder: Ladder, max_density_ratio: float, share: float = 0.0) -> float:
    """The p-value of "the novel share is at most ``share``", if known rows shift by at most that ratio.

    The chance that any rung has as strong evidence as the strongest one here, computed exactly.

    >>> source, target = np.arange(2000.0), np.r_[np.arange(1940.0), np.full(60, 9999.0)]
    >>> ladder = Ladder.of(source, target)
    >>> [round(novelty_p_value(ladder, ratio), 3) for ratio in (3, 12, 30)]
    [0.0, 0.018, 0.981]
    """
    if not len(ladder.rungs) or not ladder.n_target or not ladder.above.any():
        return 1.0
    limits, chance = ladder.limits(share), _chance(ladder, max_density_ratio)
    if not limits.all():  # no count is as weak evidence as that
        return 1.0
    # counts[y] is the chance of y target rows so far, and of no rung with strong evidence
    counts = binom.pmf(np.arange(limits.max()), ladder.n_target, share)
    rung = 0
    for upto, limit in zip(ladder.rungs.tolist(), limits.tolist(), strict=True):
        steps, total = nbinom.pmf(np.arange(len(counts)), upto - rung, chance), counts.sum()
        counts = convolve(counts, steps)[: len(counts)]
        if len(counts) > ladder.n_target:  # there are no more target rows than that
            counts[-1] += total - counts.sum()
        counts[limit:] = 0.0
        rung = upto
    return float(np.clip(1 - counts.sum(), _TAIL, 1.0))


def share_lower_bound(ladder: Ladder, max_density_ratio: float, confidence: float = 0.95) -> float:
    """The smallest share that :func:`novelty_p_value` does not reject: α is at least this, with that confidence.

    >>> ladder = Ladder.of(np.arange(2000.0), np.r_[np.arange(1800.0), np.full(200, 9999.0)])
    >>> round(share_lower_bound(ladder, 12), 3)
    0.073
    """
    error = 1 - confidence
    if novelty_p_value(ladder, max_density_ratio) > error:
        return 0.0

    def beyond(share: float) -> float:
        return float(np.log(novelty_p_value(ladder, max_density_ratio, share) / error))

    most = int(ladder.above.max()) / ladder.n_target
    bound = float(brentq(beyond, 0.0, most, xtol=_PRECISION)) if beyond(most) > 0 else most
    # p rises with the share while as many rows are expected, and may fall where one more is: look some rows back
    last = round(bound * ladder.n_target) - 1
    for expected in range(last, max(last - _ROWS_BACK, -1), -1):
        if beyond((expected + 0.49) / ladder.n_target) > 0:
            bound = max(expected - 0.5, 0.0) / ladder.n_target
    return bound


def tolerated_ratio(ladder: Ladder, error: float = 0.05) -> float:
    """The density ratio at which the p-value crosses ``error``; 0 if it is above even without shift."""

    def beyond(ratio: float) -> float:
        return novelty_p_value(ladder, ratio) - error

    if beyond(1.0) > 0:
        return 0.0
    if beyond(_LARGEST_RATIO) <= 0:
        return _LARGEST_RATIO
    return float(brentq(beyond, 1.0, _LARGEST_RATIO, xtol=0.01))


def smallest_noticed(n_source: int, n_target: int, max_density_ratio: float, error: float = 0.05) -> float:
    """The smallest share of a perfectly separate new class that is proved with so many rows; 1 if none is.

    >>> round(smallest_noticed(2000, 2000, 12), 3), round(smallest_noticed(200, 200, 12), 3)
    (0.026, 0.25)
    """
    if not n_source or not n_target:
        return 1.0

    def chance(above: int) -> float:
        scores = np.arange(float(n_source))
        ladder = Ladder.of(scores, np.r_[np.full(n_target - above, -1.0), np.full(above, float(n_source))])
        return novelty_p_value(ladder, max_density_ratio)

    low, high = 0, n_target
    if chance(high) > error:
        return 1.0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) <= error else (middle, high)
    return high / n_target


def _chance(ladder: Ladder, ratio: float) -> float:
    """The smallest chance that the next row down the list is a source row."""
    return ladder.n_source / (ladder.n_source + ratio * max(ladder.n_target, 1))
