"""Columns that tell the domains apart by themselves: ids, dates, counters, other units, a constant that changed.

Such a column explains every difference between source and target, so nothing can be said of a new class.
"""

from __future__ import annotations

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
        np.asarray(rows[evenly_spaced(len(rows), _MOST_ROWS)], dtype=np.float64) for rows in (source, target)
    )
    found = []
    for index, name in enumerate(names):
        a, b = np.sort(first[:, index]), np.sort(second[:, index])
        power = power_of_ten(a, b)
        ranges = (float(a[0]), float(a[-1])), (float(b[0]), float(b[-1]))
        if power:
            found.append(OddColumn(str(name), "unit", *ranges, power))
        elif largest_difference(a, b) >= SEPARATED:
            found.append(OddColumn(str(name), _kind(a, b), *ranges))
    return found


def largest_difference(source: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """The largest difference of two distribution functions (Kolmogorov–Smirnov), from sorted values.

    >>> largest_difference(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.5
    """
    values = np.concatenate([source, target])
    below = [np.searchsorted(part, values, side="right") / len(part) for part in (source, target)]
    return float(np.abs(below[0] - below[1]).max())


def power_of_ten(source: NDArray[np.float64], target: NDArray[np.float64]) -> int:
    """The power of ten by which the spread of a column differs, in its middle as in its tails; 0 if by none.

    Known kinds that became more common change a spread too, so that 100 times may be 40 or 250 times.

    >>> rows = np.linspace(1, 9, 50)
    >>> power_of_ten(rows, 1000 * rows), power_of_ten(rows, rows + 3), power_of_ten(rows, 3 * rows)
    (3, 0, 0)
    """
    spreads = [
        np.append(np.quantile(part, _HIGH) - np.quantile(part, _LOW), part.std()) for part in (source, target)
    ]
    if min(spread.min() for spread in spreads) <= 0:
        return 0
    powers = np.log10(spreads[1] / spreads[0])
    power = round(float(powers.mean()))
    near = _NEAR_TEN if abs(power) == 1 else _NEAR_MORE
    return power if np.abs(powers - power).max() <= near else 0


def _kind(source: NDArray[np.float64], target: NDArray[np.float64]) -> str:
    if source[0] == source[-1] and target[0] == target[-1]:
        return "constant"
    both = np.concatenate([source, target])
    is_whole = bool(np.all(both == np.rint(both)))
    return "number" if is_whole and len(np.unique(both)) > 0.9 * len(both) else "range"
