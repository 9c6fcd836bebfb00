"""Columns that tell the domains apart by themselves: ids, dates, counters, other units, a constant that changed.

Such a column explains every difference between source and target, so nothing can be said of a new class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openset.stats.neighbours import evenly_spaced

SEPARATED = 0.95
"""Largest difference of the two distributions of a column. A new class of less than half of the target and known
kinds that became 12 times as common stay below it."""
_LOW, _HIGH = (0.1, 0.25), (0.9, 0.75)
_NEAR_TEN, _NEAR_MORE = 0.15, 0.45
"""How far the logarithms of spreads may be from 1, and from 2, 3 …"""
_MOST_ROWS = 2000


@dataclass(frozen=True)
class OddColumn:
    """A column that differs between the domains, and how: ``constant``, ``number``, ``range`` or ``unit``.

    ``source`` and ``target`` are the ranges of its values; ``power`` is that of ten for ``unit``.
    """

    name: str
    kind: str
    source: tuple[float, float]
    target: tuple[float, float]
    power: int = 0


def odd_columns(
    source: NDArray[np.floating], target: NDArray[np.floating], names: Sequence[str]
) -> list[OddColumn]:
    """The columns that separate the domains alone, or whose values differ by a power of ten throughout.

    >>> rows = np.random.default_rng(0).normal(5, 1, size=(400, 3))
    >>> rows[:, 1] = np.arange(400)
    >>> rows[200:, 2] *= 1000
    >>> [(column.name, column.kind) for column in odd_columns(rows[:200], rows[200:], ["a", "ticket", "weight"])]
    [('ticket', 'number'), ('weight', 'unit')]
    """
    first, second = (
        np.sort(np.asarray(rows[evenly_spaced(len(rows), _MOST_ROWS)], dtype=np.float64), axis=0)
        for rows in (source, target)
    )
    powers = powers_of_ten(first, second)
    found = []
    for index in np.flatnonzero((powers != 0) | _may_be_separated(first, second)).tolist():
        a, b = first[:, index], second[:, index]
        ranges = (float(a[0]), float(a[-1])), (float(b[0]), float(b[-1]))
        if powers[index]:
            found.append(OddColumn(str(names[index]), "unit", *ranges, int(powers[index])))
        elif largest_difference(a, b) >= SEPARATED:
            found.append(OddColumn(str(names[index]), _kind(a, b), *ranges))
    return found


def _may_be_separated(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Columns whose distributions may differ by ``SEPARATED``: the others need no closer look.

    Where they do, a value has nearly all of one domain below it and nearly none of the other.
    """
    low = [rows[min(math.ceil((1 - SEPARATED) * len(rows)), len(rows) - 1)] for rows in (source, target)]
    high = [rows[max(math.floor(SEPARATED * len(rows)) - 1, 0)] for rows in (source, target)]
    return (high[0] <= low[1]) | (high[1] <= low[0])


def largest_difference(source: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """The largest difference of two distribution functions (Kolmogorov–Smirnov), from sorted values.

    >>> largest_difference(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.5
    """
    values = np.concatenate([source, target])
    below = [np.searchsorted(part, values, side="right") / len(part) for part in (source, target)]
    return float(np.abs(below[0] - below[1]).max())


def powers_of_ten(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.int64]:
    """The power of ten by which the spread of each column differs, in its middle as in its tails; 0 if by none.

    Known kinds that became more common change a spread too, so that 100 times may be 40 or 250 times.

    >>> rows = np.linspace(1, 9, 50)[:, None]
    >>> powers_of_ten(rows + np.zeros(3), rows * [1000, 1, 3] + [0, 3, 0]).tolist()
    [3, 0, 0]
    """
    spreads = [
        np.vstack([np.quantile(part, _HIGH, axis=0) - np.quantile(part, _LOW, axis=0), part.std(axis=0)])
        for part in (source, target)
    ]
    has_spread = np.minimum(*spreads).min(axis=0) > 0
    powers = np.log10(np.where(has_spread, spreads[1], 1.0) / np.where(has_spread, spreads[0], 1.0))
    power = np.rint(powers.mean(axis=0))
    near = np.where(np.abs(power) == 1, _NEAR_TEN, _NEAR_MORE)
    return np.where(np.abs(powers - power).max(axis=0) <= near, power, 0).astype(np.int64)


def _kind(source: NDArray[np.float64], target: NDArray[np.float64]) -> str:
    if source[0] == source[-1] and target[0] == target[-1]:
        return "constant"
    both = np.concatenate([source, target])
    is_whole = bool(np.all(both == np.rint(both)))
    return "number" if is_whole and len(np.unique(both)) > 0.9 * len(both) else "range"
