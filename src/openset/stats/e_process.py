"""Evidence of a new class over batches, valid however often one looks.

A scoring function is fixed before some batches are seen. Of n *reference rows*, source rows that it was fitted
without, the scores at ``RUNGS`` are thresholds: the highest, the third highest and so on. The chance U that a
fresh source row scores above the r-th highest has the distribution Beta(r, n − r + 1), whatever the scores
(smaller, if there are ties).

The null: there is no new class, and no known kind is more than B times as common as in source. Then a fresh row
is above the threshold with a chance of at most B·U. Of N fresh rows S are. The evidence compares

    ∫ θ^S (1 − θ)^(N − S) dπ(θ)    with    E (B·U)^S (1 − B·U)^(N − S),

a larger rate θ, of which π is a broad distribution, with the largest rate of the null. If all rates are the
largest, this is a likelihood ratio: its mean stays 1 however many batches are added, so the chance that it is
*ever* c or more is at most 1/c (Ville). π and U are such that dπ/dU grows with the rate. So the ratio grows with
S: smaller rates, in some batches or in all, only make it smaller, and rows may be left out of S for any reason.

A series of batches can begin at any batch and with any scoring function that was fixed before it, so quiet
batches do not use up the evidence of later ones. The first batch of a series has a weight; all weights sum to 1.
The chance that any series ever has an evidence of 1/ε after its weight is at most ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import betaincc, betaln, logsumexp, xlog1py, xlogy

from openset._utils.params import check_number

ERROR = 0.05
"""The chance of a false alarm, ever."""
LIMIT = 1 / ERROR
"""The evidence from which on a new class is noticed."""
RUNGS = (1, 3, 8, 21, 55)
"""The reference rows, counted from the highest score, whose scores are thresholds."""
FEWEST_ROWS = 40
"""Reference rows with fewer of which nothing can be noticed."""
_A_RUNG = 4
"""A rung needs so many times as many rows: those farther down say little of new rows."""
_SLOW = 5
"""How slowly the weights fall: those of the first batches are nearly equal."""
_POWER = 0.1
"""π has a density like θ^(power − 1): of nearly equal weight for rates of every size."""
_POINTS = 2001
_SIMPSON = np.concatenate([[1 / 3], np.tile([4 / 3, 2 / 3], _POINTS // 2 - 1), [4 / 3, 1 / 3]])
_SPREAD = 12.0
_LEFT = 60.0


@dataclass(frozen=True)
class References:
    """Thresholds at the rungs of some reference rows, the highest first."""

    thresholds: tuple[float, ...]
    n_rows: int

    @classmethod
    def of(cls, scores: ArrayLike) -> References:
        """The thresholds from scores of rows that the scoring function was fitted without.

        >>> References.of(np.arange(100.0)).thresholds
        (99.0, 97.0, 92.0, 79.0)
        """
        ordered = np.sort(np.asarray(scores, dtype=np.float64))[::-1]
        if len(ordered) < FEWEST_ROWS:
            raise ValueError(f"got {len(ordered)} scores of reference rows: at least {FEWEST_ROWS} are needed.")
        rungs = [rung for rung in RUNGS if _A_RUNG * rung <= len(ordered)]
        return cls(tuple(float(ordered[rung - 1]) for rung in rungs), len(ordered))

    def count_above(self, scores: ArrayLike) -> tuple[int, ...]:
        """How many scores are above each threshold."""
        found = np.asarray(scores, dtype=np.float64)
        return tuple(int((found > threshold).sum()) for threshold in self.thresholds)


@dataclass(frozen=True)
class Tally:
    """Fresh rows and how many of them are above each rung of ``n_reference`` reference rows."""

    rows: int
    above: tuple[int, ...]
    n_reference: int

    def __post_init__(self) -> None:
        if not all(0 <= count <= self.rows for count in self.above) or len(self.above) > len(RUNGS):
            raise ValueError(
                f"got {self.rows} rows and {self.above} above: expected at most {len(RUNGS)} counts, "
                "and none above the number of rows."
            )

    def joined(self, other: Tally) -> Tally:
        """The rows of both, which were scored by one function."""
        if (self.n_reference, len(self.above)) != (other.n_reference, len(other.above)):
            raise ValueError("batches that were scored by different functions cannot be counted together.")
        above = tuple(one + more for one, more in zip(self.above, other.above, strict=True))
        return Tally(self.rows + other.rows, above, self.n_reference)


def weight(number: int) -> float:
    """The weight of a series that begins at the batch with this number, from 1 on; all weights sum to 1.

    >>> round(sum(weight(number) for number in range(1, 100_000)), 4)
    1.0
    """
    return _SLOW / ((number + _SLOW - 1) * (number + _SLOW))


def log_ratio(tally: Tally, max_density_ratio: float) -> float:
    """The logarithm of the evidence of one series, averaged over the rungs, without its weight.

    >>> few, many = Tally(1000, (1, 3, 9), 2000), Tally(1000, (40, 44, 60), 2000)
    >>> round(log_ratio(few, 3.0), 1), round(log_ratio(many, 3.0), 1), round(log_ratio(many, 12.0), 1)
    (-2.7, 14.9, 1.7)
    """
    check_number("max_density_ratio", max_density_ratio, low=1)
    if not tally.rows or not tally.above:
        return 0.0
    ratios = [
        _log_ratio_of(above, tally.rows, rung, tally.n_reference, max_density_ratio)
        for rung, above in zip(RUNGS, tally.above, strict=False)
    ]
    return float(logsumexp(ratios) - np.log(len(ratios)))


def log_evidence(series: Sequence[tuple[int, Sequence[Tally]]], max_density_ratio: float) -> float:
    """The logarithm of the strongest evidence of any series at any of its batches, after weights.

    Each series is the number of its first batch and the tallies of its batches, in order.

    >>> loud = Tally(1000, (40, 44, 60), 2000)
    >>> bool(log_evidence([(1, [loud]), (2, [])], 3.0) > np.log(LIMIT))
    True
    """
    found = [-np.inf]
    for number, tallies in series:
        total: Tally | None = None
        for tally in tallies:
            total = tally if total is None else total.joined(tally)
            found.append(log_ratio(total, max_density_ratio) + np.log(weight(number)))
    return float(max(found))


@lru_cache(maxsize=20_000)
def _log_ratio_of(above: int, rows: int, rung: int, n_reference: int, ratio: float) -> float:
    """The evidence at one rung; none (−∞) where the null allows every rate."""
    least = rung * ratio / n_reference  # from here on dπ/dU grows with the rate
    if least >= 1:
        return -np.inf
    norm = 1 - least**_POWER
    # rates of the null above 1 count as 1: π has a part there too, as large as at rates just below
    beyond = _log_beyond_one(rung, n_reference, ratio)
    density = np.log(_POWER / norm)
    at_one = density + beyond - _log_density_at_one(rung, n_reference, ratio) if beyond > -np.inf else -np.inf
    if at_one > np.log(0.5):
        return -np.inf
    a, b = above + _POWER, rows - above + 1
    part = betaincc(a, b, least)
    larger = density + betaln(a, b) + np.log(part) + np.log1p(-np.exp(at_one)) if part > 0 else -np.inf
    if above == rows:
        larger = np.logaddexp(larger, at_one)
    return float(larger - _log_null(above, rows, rung, n_reference, ratio))


def _log_beyond_one(rung: int, n_reference: int, ratio: float) -> float:
    """log P(B·U > 1)."""
    chance = betaincc(rung, n_reference - rung + 1, 1 / ratio) if ratio > 1 else 0.0
    return float(np.log(chance)) if chance > 0 else -np.inf


def _log_density_at_one(rung: int, n_reference: int, ratio: float) -> float:
    """The log density of B·U at 1."""
    u = 1 / ratio
    return float(
        xlogy(rung - 1, u)
        + xlog1py(n_reference - rung, -u)
        - betaln(rung, n_reference - rung + 1)
        - np.log(ratio)
    )


def _log_null(above: int, rows: int, rung: int, n_reference: int, ratio: float) -> float:
    """log E (B·U)^S (1 − B·U)^(N − S) for U of Beta(r, n − r + 1), by Simpson's rule in log U.

    The integrand is log-concave there, so its mode and curvature say where it matters.
    """
    top = -np.log(ratio)
    mode = _mode(above, rows, rung, n_reference, ratio)
    u = np.exp(mode)
    bend = (rows - above) * ratio * u / max((1 - ratio * u) ** 2, 1e-300) + (n_reference - rung) * u / (
        1 - u
    ) ** 2
    reach = _SPREAD / np.sqrt(max(bend, 1e-12))
    low, high = mode - max(reach, _LEFT / (above + rung)), min(mode + reach, top)
    v = np.linspace(low, high, _POINTS)
    values = _log_integrand(v, above, rows, rung, n_reference, ratio)
    inside = float(logsumexp(values, b=_SIMPSON * (high - low) / (_POINTS - 1)))
    if above < rows:
        return inside
    return float(np.logaddexp(inside, _log_beyond_one(rung, n_reference, ratio)))


def _log_integrand(
    v: NDArray[np.float64], above: int, rows: int, rung: int, n_reference: int, ratio: float
) -> NDArray[np.float64]:
    u = np.exp(v)
    rate = np.minimum(ratio * u, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(
            xlogy(above, rate)
            + xlog1py(rows - above, -rate)
            + rung * v
            + xlog1py(n_reference - rung, -u)
            - betaln(rung, n_reference - rung + 1)
        )


def _mode(above: int, rows: int, rung: int, n_reference: int, ratio: float) -> float:
    """The log U at which the integrand is largest."""

    def slope(v: float) -> float:
        u = float(np.exp(v))
        falls = (rows - above) * ratio * u / max(1 - ratio * u, 1e-300) if above < rows else 0.0
        return above + rung - falls - (n_reference - rung) * u / max(1 - u, 1e-300)

    low, high = -_LEFT, -float(np.log(ratio)) - 1e-12
    if slope(high) > 0:
        return high
    return float(brentq(slope, low, high, xtol=1e-10))
