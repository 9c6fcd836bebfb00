"""Share of the new class, precision and recall of the list, from labels: intervals that hold at every look.

The target is finite: a list of rows and the rest, each read in a random order that was fixed before labelling.
Of the rows of a stratum an unknown number M is new. After some answers every M has an e-value: the probability of
the answers under a mixture of betas, by their probability if M rows are new. For the true M it ever reaches 1/.05
with a probability of .05 at most. So the numbers of new rows whose e-values multiply to less form an interval
that stays valid whenever a person looks or stops (Waudby-Smith and Ramdas 2020, decision 29).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

LEVEL = 0.05
"""How often an interval may miss the truth at any look, at most."""
ERROR_RATE = 0.02
"""Known rows that a person calls new by mistake, as assumed by the test for a new class."""
STRENGTH = 10.0
"""How many answers the model's guess is worth in its half of the mixture."""
_MOST_COUNTS = 5000
_SURE = 0.5
_ALTERNATIVES = np.linspace(0.02, 0.98, 49)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tally:
    """Answers in one stratum of ``size`` rows. ``guess`` is its share of new rows by the model, set beforehand.

    ``unclear`` rows came up and have no answer, because they were skipped or people disagree.
    """

    size: int
    new: int = 0
    known: int = 0
    unclear: int = 0
    guess: float = 0.5

    @property
    def labelled(self) -> int:
        """Rows that came up."""
        return self.new + self.known + self.unclear


@dataclass(frozen=True)
class Interval:
    """A number with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimates:
    """What the answers say; None where there is nothing to divide by."""

    share: Interval
    precision: Interval | None
    recall: Interval | None
    labelled: int
    unclear: int
    level: float = LEVEL


def estimate(listed: Tally, rest: Tally, level: float = LEVEL) -> Estimates:
    """Share of new rows in the target, precision and recall of the list, each with probability 1 − ``level``.

    A row without an answer counts as known for a lower bound of the share, and as new for an upper one; for
    precision and recall likewise as what makes the interval wider.

    >>> found = estimate(Tally(50, new=18, known=2), Tally(950, new=0, known=20))
    >>> round(found.share.low, 3), round(found.share.high, 2), round(found.precision.low, 2)
    (0.029, 0.36, 0.64)
    """
    cut = math.log(1 / level)
    total = listed.size + rest.size
    few, many = (_region(_settled(listed, new), _settled(rest, new), cut) for new in (False, True))
    best, worst = (_region(_settled(listed, new), _settled(rest, not new), cut) for new in (True, False))
    expected = [_mean(listed), _mean(rest)]
    share = _around(sum(expected) / total, few.fewest() / total, many.most() / total)
    precision = recall = None
    if listed.size:
        low = _accepted(_settled(listed, False), cut)[0].min() / listed.size
        high = _accepted(_settled(listed, True), cut)[0].max() / listed.size
        precision = _around(expected[0] / listed.size, low, high)
        recall = _around(expected[0] / max(sum(expected), 1e-12), worst.least_recall(), best.most_recall())
    return Estimates(
        share, precision, recall, listed.labelled + rest.labelled, listed.unclear + rest.unclear, level
    )


def new_class_evidence(new: int, known: int, error_rate: float = ERROR_RATE) -> float:
    """How strongly answers speak for a new class: an e-value, 20 or more at a level of .05.

    If there is none, every "new" is a mistake, made with a probability of at most ``error_rate`` whatever rows a
    person is shown and whatever was answered before. So rows may be chosen freely, and all answers count.

    >>> new_class_evidence(0, 10) < 1 < 20 < new_class_evidence(3, 7)
    True
    """
    bets = _ALTERNATIVES[error_rate < _ALTERNATIVES]
    logs = new * np.log(bets / error_rate) + known * np.log((1 - bets) / (1 - error_rate))
    top = logs.max()
    return float(np.exp(min(top + math.log(np.exp(logs - top).mean()), 700.0)))


def purity_bound(new: int, audited: int, size: int, level: float = LEVEL) -> float:
    """Least share of a group that is new, after ``new`` of ``audited`` random rows of it were.

    >>> round(purity_bound(12, 12, 60), 2)
    0.73
    """
    counts = _accepted(Tally(size, new, audited - new, guess=0.9), math.log(1 / level))[0]
    return float(counts.min()) / size


@dataclass(frozen=True, eq=False)
class _Region:
    """For each number of new rows in the list that the answers allow, the fewest and the most in the rest."""

    listed: Floats
    lower: Floats
    upper: Floats

    def fewest(self) -> float:
        return float((self.listed + self.lower).min())

    def most(self) -> float:
        return float((self.listed + self.upper).max())

    def least_recall(self) -> float:
        total = self.listed + self.upper
        return float((self.listed / np.maximum(total, 1)).min(where=total > 0, initial=1.0))

    def most_recall(self) -> float:
        total = self.listed + self.lower
        return float(np.where(total > 0, self.listed / np.maximum(total, 1), 1.0).max(initial=0.0))


@lru_cache(maxsize=64)
def _region(listed: Tally, rest: Tally, cut: float) -> _Region:
    inside, cost = _accepted(listed, cut - _least_cost(rest))
    others, other_cost = _accepted(rest, cut - _least_cost(listed))
    least = int(other_cost.argmin())
    left = cut - cost  # what the rest may cost, for each number in the list
    falling, rising = other_cost[: least + 1], other_cost[least:]
    # costs fall to their least and rise after it, so each side is searched by halving
    lower = (least - np.searchsorted(falling[::-1], left, side="right") + 1).clip(0)
    upper = (least + np.searchsorted(rising, left, side="right") - 1).clip(None, len(others) - 1)
    possible = left >= other_cost[least]
    return _Region(inside[possible], others[lower][possible], others[upper][possible])


def _settled(tally: Tally, as_new: bool) -> Tally:
    new, known = (tally.unclear, 0) if as_new else (0, tally.unclear)
    return Tally(tally.size, tally.new + new, tally.known + known, 0, tally.guess)


def _accepted(tally: Tally, cut: float) -> tuple[Floats, Floats]:
    """Numbers of new rows whose log e-value is at most ``cut``, and these values."""
    low, high = tally.new, tally.size - tally.known
    if high - low >= _MOST_COUNTS:
        low, high = _bracket(tally, cut)
    if high - low < _MOST_COUNTS:
        counts = np.arange(low, high + 1, dtype=np.float64)
    else:  # evenly spaced, the ends included: they lie outside of what is allowed
        counts = np.unique(np.linspace(low, high, _MOST_COUNTS).round())
    cost = _cost(tally, counts)
    allowed = cost <= cut
    if len(counts) < high - low + 1:  # rounded outwards by one step
        allowed[1:] |= allowed[:-1].copy()
        allowed[:-1] |= allowed[1:].copy()
    return counts[allowed], cost[allowed]


def _bracket(tally: Tally, cut: float) -> tuple[int, int]:
    """The first and the last number of new rows that cost at most ``cut``, by halving."""
    low, high = tally.new, tally.size - tally.known
    best = _cheapest(tally)

    def at(count: int) -> float:
        return float(_cost(tally, np.array([count], dtype=np.float64))[0])

    def edge(outside: int) -> int:
        """The last number on the way from the cheapest to ``outside`` that costs at most ``cut``."""
        if at(outside) <= cut:
            return outside
        inside = best
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            inside, outside = (middle, outside) if at(middle) <= cut else (inside, middle)
        return inside

    return edge(low), edge(high)


def _cheapest(tally: Tally) -> int:
    """The most likely number of new rows: that of a hypergeometric draw."""
    drawn = tally.new + tally.known
    likely = math.floor((tally.size + 1) * tally.new / drawn) if drawn else tally.size // 2
    return min(max(likely, tally.new), tally.size - tally.known)


def _least_cost(tally: Tally) -> float:
    return float(_cost(tally, np.array([_cheapest(tally)], dtype=np.float64))[0])


def _cost(tally: Tally, counts: Floats) -> Floats:
    """Log e-value of each number of new rows: the mixture's probability of the answers, by the number's own."""
    s, f = tally.new, tally.known
    others = tally.size - counts
    likelihood = (
        gammaln(counts + 1)
        - gammaln(counts - s + 1)
        + gammaln(others + 1)
        - gammaln(others - f + 1)
        - gammaln(tally.size + 1)
        + gammaln(tally.size - s - f + 1)
    )
    result: Floats = _mixture(s, f, tally.guess) - likelihood
    return result


def _mixture(s: int, f: int, guess: float) -> float:
    """Log probability of s "new" and f "known" in their order: half Jeffreys, half around the model's guess."""
    a, b = STRENGTH * guess, STRENGTH * (1 - guess)
    parts = [betaln(0.5 + s, 0.5 + f) - betaln(0.5, 0.5), betaln(a + s, b + f) - betaln(a, b)]
    return float(np.logaddexp(*parts) - math.log(2))


def _mean(tally: Tally) -> float:
    """New rows as expected: those seen, and of the others as many as seen and guessed."""
    rate = (tally.new + _SURE * tally.guess) / (tally.new + tally.known + _SURE)
    return tally.new + rate * (tally.size - tally.new - tally.known)


def _around(value: float, low: float, high: float) -> Interval:
    return Interval(float(min(max(value, low), high)), float(low), float(high))
