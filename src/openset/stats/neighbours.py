"""Nearest rows: as fast as a matrix product, as exact as a sum of squared differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CELLS = 2**22
"""Numbers in memory at a time: about 32 MB."""
_SINGLE = 1e12
"""Larger numbers are not squared in single precision."""
_STRIDE = 4


def nearest_rows(
    rows: NDArray[np.float64], queries: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Euclidean distances to the k nearest ``rows`` of every query, nearest first, and their indices.

    Of equally near rows the first ones are returned. Distances from |q|² − 2q·r + |r|² are fast, but their
    rounding depends on the rows in a batch, swaps ties and loses small distances. So they only choose candidates:
    all rows that could be among the k nearest, given the largest rounding error. The candidates are then measured
    one by one, so a query's result does not depend on the other queries. Candidates are chosen in single
    precision, after centring, unless the numbers are too large for it.

    >>> nearest_rows(np.array([[0.0], [2.0], [5.0]]), np.array([[1.5]]), k=2)
    (array([[0.5, 1.5]]), array([[1, 0]]))
    """
    if not len(queries):
        return np.empty((0, k)), np.empty((0, k), np.intp)
    rough = _Rough.of(rows, queries)
    size = max(1, _CELLS // max(len(rows), 1))
    found = [
        _nearest_in_block(rows, rough, queries[start : start + size], k) for start in range(0, len(queries), size)
    ]
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def kth_distance(rows: NDArray[np.floating], queries: NDArray[np.floating], k: int) -> NDArray[np.float64]:
    """Euclidean distance of every query to its k-th nearest row, or to the farthest of fewer rows.

    >>> kth_distance(np.array([[0.0], [2.0], [5.0]]), np.array([[1.5]]), k=2)
    array([1.5])
    """
    known, wanted = (np.ascontiguousarray(part, dtype=np.float64) for part in (rows, queries))
    return nearest_rows(known, wanted, min(k, len(known)))[0][:, -1]


def evenly_spaced(n_rows: int, most: int) -> NDArray[np.intp]:
    """Indices of all rows or, if they are more than ``most``, of evenly spaced ones from the first to the last.

    >>> evenly_spaced(3, 5).tolist(), evenly_spaced(9, 3).tolist()
    ([0, 1, 2], [0, 4, 8])
    """
    return np.arange(n_rows) if n_rows <= most else np.linspace(0, n_rows - 1, most).astype(np.intp)


def share_outside(
    source: NDArray[np.float64], target: NDArray[np.float64], *, n_neighbours: int = 5, level: float = 0.99
) -> float:
    """The share of target rows whose ``n_neighbours``-th nearest source row is unusually far.

    Far means beyond the quantile ``level`` of the same distance among source rows, without the row itself. If
    target rows are drawn like source, the expected share is 1 − ``level``.

    >>> rows = np.arange(100.0)[:, None]
    >>> share_outside(rows, np.array([[50.5], [300.0]]))
    0.5
    """
    # among source rows the nearest is the row itself
    own = nearest_rows(source, source, n_neighbours + 1)[0][:, -1]
    away = nearest_rows(source, target, n_neighbours)[0][:, -1]
    return float((away > np.quantile(own, level)).mean())


@dataclass(frozen=True, eq=False)
class _Rough:
    """Rows prepared for fast, inexact squared distances."""

    centre: NDArray[np.float64]
    rows: NDArray[np.floating]
    squares: NDArray[np.floating]

    @classmethod
    def of(cls, rows: NDArray[np.float64], queries: NDArray[np.float64]) -> _Rough:
        largest = max(float(np.abs(part).max(initial=0.0)) for part in (rows, queries))
        single = largest < _SINGLE
        centre = rows.mean(axis=0) if single else np.zeros(rows.shape[1])
        centred: NDArray[np.floating] = rows - centre
        centred = centred.astype(np.float32) if single else centred
        return cls(centre, centred, np.einsum("ij,ij->i", centred, centred))

    def squared(self, queries: NDArray[np.float64]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Return squared distances (queries, rows), and the largest error of each query's."""
        centred = (queries - self.centre).astype(self.rows.dtype)
        own = np.einsum("ij,ij->i", centred, centred)
        squared = centred @ self.rows.T
        squared *= -2
        squared += self.squares
        squared += own[:, None]
        # each of the three sums of d products has an error of at most about d·eps times the product of lengths
        number = np.finfo(self.rows.dtype)
        error = 2 * (self.rows.shape[1] + 4) * number.eps * (np.sqrt(own) + np.sqrt(self.squares.max())) ** 2
        return squared, error + number.tiny  # products below it have fewer digits


def _nearest_in_block(
    rows: NDArray[np.float64], rough: _Rough, queries: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    squared, error = rough.squared(queries)
    # the k-th of some rows is a limit for the k-th of all, at a part of the cost
    some = squared[:, :: max(1, min(_STRIDE, len(rows) // (4 * k)))]
    limit = np.partition(some, k - 1, axis=1)[:, k - 1]
    # of the flat array, which is several times as fast as np.nonzero of a matrix
    query, row = np.divmod(np.flatnonzero(squared <= (limit + 2 * error)[:, None]), len(rows))
    near = squared[query, row]
    first = np.searchsorted(query, np.arange(len(queries)))
    kth = near[np.lexsort((near, query))][first + k - 1]
    kept = near <= (kth + 2 * error)[query]
    query, row = query[kept], row[kept]
    exact = np.empty(len(query))
    size = max(1, _CELLS // rows.shape[1])
    for start in range(0, len(query), size):
        part = slice(start, start + size)
        differences = queries[query[part]] - rows[row[part]]
        exact[part] = np.einsum("ij,ij->i", differences, differences)
    order = np.lexsort((row, exact, query))
    first = np.searchsorted(query, np.arange(len(queries)))
    chosen = order[first[:, None] + np.arange(k)]
    return np.sqrt(exact[chosen]), row[chosen]
