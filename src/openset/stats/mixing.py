"""Whether the rows of two domains mix at the finest scale, as rows of the same kinds do.

Where kinds only became more or less common, the share of source rows is much the same from one row to its near
neighbours: a row's very nearest rows are of the other domain as often as those a little farther away. Where each
domain has kinds of its own (other people, other machines, another month), the very nearest rows are of the row's
own domain too often, in every class. A new class does that too, but only for its own rows, and only in target.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openset.stats.neighbours import evenly_spaced, nearest_rows

NEAREST, FARTHER = slice(0, 3), slice(6, 15)
"""Ranks of the neighbours that are compared."""
MOST_ROWS = 3000
"""Rows of each domain that are looked at."""


def mixing(source: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    """How often the nearest rows are of the other domain, over how often those a little farther away are.

    About 1 where the domains mix, 0 where they share no place. It is computed for the rows of source and of
    target, and the larger of both is returned: a new class makes only that of target smaller. Copies of a row
    count once.

    >>> rows = np.random.default_rng(0).normal(size=(600, 3))
    >>> mixing(rows[:300], rows[300:]) > 0.9
    True
    >>> pairs = np.repeat(rows[:150], 2, axis=0) + 1e-3 * rows[:300]  # every row has a twin in its own domain
    >>> mixing(pairs, np.repeat(rows[150:300], 2, axis=0) + 1e-3 * rows[300:]) < 0.8
    True
    """
    n = min(len(source), len(target), MOST_ROWS)
    parts = [np.unique(rows[evenly_spaced(len(rows), n)], axis=0) for rows in (source, target)]
    rows, domain = np.concatenate(parts), np.repeat([0, 1], [len(part) for part in parts])
    if len(rows) <= FARTHER.stop:
        return 1.0
    is_other = domain[other_rows(rows, FARTHER.stop)] != domain[:, None]
    ratios = []
    for which in (0, 1):
        near, far = (float(is_other[domain == which, ranks].mean()) for ranks in (NEAREST, FARTHER))
        ratios.append(near / far if far > 0 else 0.0)
    return max(ratios)


def other_rows(rows: NDArray[np.float64], number: int) -> NDArray[np.intp]:
    """The nearest other rows of each row, nearest first; fewer if there are not so many.

    >>> other_rows(np.array([[0.0], [1.0], [5.0]]), 2).tolist()
    [[1, 2], [0, 2], [1, 0]]
    """
    nearest = nearest_rows(rows, rows, min(number + 1, len(rows)))[1]
    itself = nearest == np.arange(len(rows))[:, None]
    itself[~itself.any(axis=1), -1] = True  # a row with many copies may not be among its own nearest rows
    return nearest[~itself].reshape(len(rows), -1)
