"""Nearest rows: as fast as a matrix product, as exact as a sum of squared differences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_CELLS = 2**22
"""Numbers in memory at a time: about 32 MB."""


def nearest_rows(
    rows: NDArray[np.float64], queries: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Euclidean distances to the k nearest ``rows`` of every query, nearest first, and their indices.

    Of equally near rows the first ones are returned. Distances from |q|² − 2q·r + |r|² are fast, but their
    rounding depends on the rows in a batch, swaps ties and loses small distances. So they only choose candidates:
    all rows that could be among the k nearest, given the largest rounding error. The candidates are then measured
    one by one, so a query's result does not depend on the other queries.

    >>> nearest_rows(np.array([[0.0], [2.0], [5.0]]), np.array([[1.5]]), k=2)
    (array([[0.5, 1.5]]), array([[1, 0]]))
    """
    squares = np.einsum("ij,ij->i", rows, rows)
    size = max(1, _CELLS // max(len(rows), 1))
    found = [
        _nearest_in_block(rows, squares, queries[start : start + size], k)
        for start in range(0, len(queries), size)
    ]
    if not found:
        return np.empty((0, k)), np.empty((0, k), np.intp)
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def distance_score(
    rows: NDArray[np.float64], queries: NDArray[np.float64], ks: tuple[int, ...] = (1, 5)
) -> NDArray[np.float64]:
    """How far queries lie from ``rows``: the mean log distance to their k-th nearest rows, over all k in ``ks``.

    A novelty score that needs no training. It finds small new classes far from source, which have too few rows to
    train a head on.

    >>> distance_score(np.arange(6.0)[:, None], np.array([[2.5], [15.0]])).round(2).tolist()
    [0.11, 2.47]
    """
    distances = nearest_rows(rows, queries, max(ks))[0][:, [k - 1 for k in ks]]
    return np.asarray(np.log(np.maximum(distances, np.finfo(np.float64).tiny)).mean(axis=1))


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


def _nearest_in_block(
    rows: NDArray[np.float64], squares: NDArray[np.float64], queries: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    own = np.einsum("ij,ij->i", queries, queries)
    rough = squares - 2 * (queries @ rows.T) + own[:, None]
    kth = np.partition(rough, k - 1, axis=1)[:, k - 1]
    # each of the three sums of d products has an error of at most about d·eps times the product of the lengths
    error = 2 * (rows.shape[1] + 4) * np.finfo(np.float64).eps * (np.sqrt(own) + np.sqrt(squares.max())) ** 2
    query, row = np.nonzero(rough <= (kth + 2 * error)[:, None])
    squared = np.empty(len(query))
    size = max(1, _CELLS // rows.shape[1])
    for start in range(0, len(query), size):
        part = slice(start, start + size)
        differences = queries[query[part]] - rows[row[part]]
        squared[part] = np.einsum("ij,ij->i", differences, differences)
    order = np.lexsort((row, squared, query))
    first = np.searchsorted(query, np.arange(len(queries)))
    chosen = order[first[:, None] + np.arange(k)]
    return np.sqrt(squared[chosen]), row[chosen]
