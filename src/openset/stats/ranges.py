"""Ranges of features: the smallest and largest values of some rows, and how many later rows lie outside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

_BLOCK_VALUES = 2**17
"""Values looked at together: few enough to stay in the processor's cache."""
CHANCE = 0.01
"""How often a batch that is drawn like the fit's rows has a feature with more rows outside than expected."""


@dataclass(frozen=True, eq=False)
class Ranges:
    """The smallest and the largest value of every feature, in ``n_rows`` rows that had ``precision`` at least."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_rows: int
    precision: np.dtype[Any]

    def joined(self, other: Ranges) -> Ranges:
        """The ranges of both together."""
        return Ranges(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.n_rows + other.n_rows,
            _coarser(self.precision, other.precision),
        )


@dataclass(frozen=True, eq=False)
class Outside:
    """How many of ``n_rows`` rows lie outside of given ranges, for every feature, and the rows' own ranges."""

    counts: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_rows: int

    def joined(self, other: Outside) -> Outside:
        """The counts and ranges of both together."""
        return Outside(
            self.counts + other.counts,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.n_rows + other.n_rows,
        )


def find_ranges(x: NDArray[Any]) -> Ranges:
    """The ranges of finite rows, which may be memory-mapped: they are read in blocks.

    >>> ranges = find_ranges(np.array([[0.0, 5.0], [2.0, 4.0]]))
    >>> ranges.low.tolist(), ranges.high.tolist(), ranges.n_rows
    ([0.0, 4.0], [2.0, 5.0], 2)
    """
    precision = _precision(x.dtype)
    low, high = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf)
    for block in _blocks(x):
        ordered = _ordered(block.astype(precision, copy=False))
        np.minimum(low, _values(ordered.min(axis=0), precision), out=low)
        np.maximum(high, _values(ordered.max(axis=0), precision), out=high)
    return Ranges(low, high, len(x), precision)


def count_outside(x: NDArray[Any], ranges: Ranges) -> Outside:
    """How many finite rows lie below or above the range of each feature.

    Rows and ranges are compared in the coarser of their two precisions: the same value, once read as float64 and
    once as float32, is not outside.

    >>> found = count_outside(np.array([[1.0], [3.0], [-1.0]]), find_ranges(np.array([[0.0], [2.0]])))
    >>> found.counts.tolist(), found.low.tolist(), found.high.tolist()
    ([2], [-1.0], [3.0])
    """
    own = _precision(x.dtype)
    precision = _coarser(own, ranges.precision)
    with np.errstate(over="ignore"):  # a value too large for the precision is infinite, and outside
        below, above = _limits(ranges.low.astype(precision), ranges.high.astype(precision))
        counts = np.zeros(x.shape[1], np.int64)
        low, high = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf)
        for block in _blocks(x):
            ordered = _ordered(block.astype(precision, copy=False))
            least, most = ordered.min(axis=0), ordered.max(axis=0)
            some = np.flatnonzero((least < below) | (most > above))
            if len(some):
                part = ordered if len(some) == x.shape[1] else ordered[:, some]
                is_outside = (part < below[some]) | (part > above[some])
                counts[some] += np.add.reduce(is_outside.view(np.uint8), axis=0, dtype=np.uint32)
            if precision == own:
                least, most = _values(least, precision), _values(most, precision)
            else:  # the rows' own ranges are those of the rows as they came
                least, most = block.min(axis=0), block.max(axis=0)
            np.minimum(low, least, out=low)
            np.maximum(high, most, out=high)
    return Outside(counts, low, high, len(x))


def features_outside(found: Outside, ranges: Ranges, *, chance: float = CHANCE) -> NDArray[np.intp]:
    """Indices of the features to warn of, those with the most rows outside first.

    A feature is one of them if more rows are outside than chance explains (:func:`rows_outside_by_chance`), or if
    one value is farther outside than chance explains (:func:`widths_outside_by_chance`).

    >>> ranges = find_ranges(np.random.default_rng(0).normal(size=(500, 3)))
    >>> rows = np.random.default_rng(1).normal(size=(800, 3))
    >>> rows[:100, 1] += 4  # many rows a little outside
    >>> rows[7, 2] = -999  # one row far outside
    >>> features_outside(count_outside(rows, ranges), ranges).tolist()
    [1, 2]
    """
    for_each = chance / max(1, len(found.counts))
    is_often = found.counts > rows_outside_by_chance(found.n_rows, ranges.n_rows, for_each)
    # where no row is outside, rounding can make the batch's range the wider one
    is_warned = (found.counts > 0) & (is_often | is_far_outside(found, ranges, chance=chance))
    shown = np.flatnonzero(is_warned)
    return shown[np.argsort(-found.counts[shown], kind="stable")]


def is_far_outside(found: Outside, ranges: Ranges, *, chance: float = CHANCE) -> NDArray[np.bool_]:
    """For every feature, whether some value lies farther outside than chance explains."""
    widths = widths_outside_by_chance(found.n_rows, ranges.n_rows, chance / max(1, len(found.counts)))
    with np.errstate(over="ignore"):
        beyond = np.maximum(ranges.low - found.low, found.high - ranges.high)
        return (beyond > 0) & (beyond >= widths * (ranges.high - ranges.low))


def rows_outside_by_chance(n_rows: int, n_fit: int, chance: float) -> int:
    """The most rows, of ``n_rows``, that lie outside of the range of ``n_fit`` rows drawn alike.

    The share of all rows outside of the range of n rows has the distribution Beta(2, n − 1), whatever the
    feature's. This quantile of it, and then that of a binomial count, are exceeded with at most ``chance``.

    >>> [rows_outside_by_chance(2000, n_fit, 1e-4) for n_fit in (100, 1000, 100_000)]
    [294, 46, 4]
    """
    if n_fit < 2:
        return n_rows
    share = float(beta.isf(chance / 2, 2, n_fit - 1))
    return int(binom.isf(chance / 2, n_rows, share))


def widths_outside_by_chance(n_rows: int, n_fit: int, chance: float) -> float:
    """How far outside the range of ``n_fit`` rows one of ``n_rows`` lies, in widths of the range; at least 1.

    For a feature with exponential tails: n rows reach about σ·log n far, and of the rows that follow a share of
    n⁻¹⁻ᶜ lies c widths beyond. With a bounded feature, or normal tails, no row does.

    >>> [round(widths_outside_by_chance(n, 1000, 1e-3), 1) for n in (100, 1000, 10_000_000)]
    [1.0, 1.0, 2.3]
    """
    return max(1.0, math.log(n_rows / chance) / math.log(max(2, n_fit)) - 1)


def _blocks(x: NDArray[Any]) -> Iterator[NDArray[Any]]:
    size = max(1, _BLOCK_VALUES // max(1, x.shape[1]))
    return (x[start : start + size] for start in range(0, len(x), size))


def _precision(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that values are compared in: their own if it is a float, else float64."""
    return dtype if dtype in (np.float16, np.float32, np.float64) else np.dtype(np.float64)


def _coarser(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    return one if one.itemsize <= other.itemsize else other


def _ordered(x: NDArray[Any]) -> NDArray[Any]:
    """Values as numbers of the same order that numpy compares fast: integers for float16, 20 times as fast."""
    if x.dtype != np.float16:
        return x
    bits = np.ascontiguousarray(x).view(np.int16)
    return bits ^ ((bits >> 15) & np.int16(0x7FFF))


def _limits(low: NDArray[Any], high: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ranges as :func:`_ordered` has values; 0 and −0 are the same value and different bits."""
    zero = low.dtype.type(0)
    return _ordered(np.where(low == 0, -zero, low)), _ordered(np.where(high == 0, zero, high))


def _values(numbers: NDArray[Any], precision: np.dtype[Any]) -> NDArray[np.float64]:
    """The values that :func:`_ordered` made numbers of."""
    if precision == np.float16:
        numbers = (numbers ^ ((numbers >> 15) & np.int16(0x7FFF))).view(np.float16)
    return numbers.astype(np.float64)
