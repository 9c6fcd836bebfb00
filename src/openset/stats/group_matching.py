"""Is a group of rows the same as an earlier one? Told by whether the rows of both mix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from openset.stats.mixing import other_rows
from openset.stats.neighbours import evenly_spaced, nearest_rows

NEIGHBOURS = 5
SAME = 0.5
"""From this share on of the mixing that rows of one group would have, two groups are the same."""
MOST_ROWS = 50
"""Rows of a group that are compared: as many of both, so that the larger one does not count more."""
_REACH = 0.9
"""Rows are like a labelled one if they are as near to it as this share of its fellows is to each other."""


def mixed_share(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """How often the nearest rows of a row are of the other group, over how often they would be by chance.

    About 1 for two parts of one group, 0 for groups apart.

    >>> rows = np.random.default_rng(0).normal(size=(80, 5))
    >>> mixed_share(rows[:40], rows[40:]) > 0.7, mixed_share(rows[:40], rows[40:] + 9)
    (True, 0.0)
    """
    n = min(len(first), len(second), MOST_ROWS)
    if not n:
        return 0.0
    parts = [rows[evenly_spaced(len(rows), n)] for rows in (first, second)]
    rows, group = np.concatenate(parts).astype(np.float64), np.repeat([0, 1], n)
    is_other = group[other_rows(rows, NEIGHBOURS)] != group[:, None]
    return float(is_other.mean() / (n / (2 * n - 1)))


def match_groups(
    found: Sequence[NDArray[np.float64]], earlier: Sequence[NDArray[np.float64]]
) -> list[int | None]:
    """For every group the index of the earlier one that it is, or None; no earlier one is taken twice.

    The pair that mixes most is matched first.

    >>> rows = np.random.default_rng(0).normal(size=(90, 5))
    >>> match_groups([rows[:30] + 9, rows[30:60]], [rows[60:]])
    [None, 0]
    """
    shares = np.array([[mixed_share(one, other) for other in earlier] for one in found]).reshape(
        len(found), len(earlier)
    )
    matched: list[int | None] = [None] * len(found)
    for _ in range(min(shares.shape)):
        one, other = (int(index) for index in np.unravel_index(shares.argmax(), shares.shape))
        if shares[one, other] < SAME:
            break
        matched[one] = other
        shares[one], shares[:, other] = -1.0, -1.0
    return matched


def like_labelled(
    rows: NDArray[np.float64], labelled: NDArray[np.float64], labels: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The label of the nearest labelled row for each row, −1 where that is too far away.

    Near enough is as near as nine in ten rows of that label are to their nearest fellow. A label of a single row
    is nobody's.

    >>> labelled, labels = np.array([[0.0], [1.0], [9.0], [9.5]]), np.array([0, 0, 1, 1])
    >>> like_labelled(np.array([[0.2], [5.0], [9.1]]), labelled, labels).tolist()
    [0, -1, 1]
    """
    if not len(labelled) or not len(rows):
        return np.full(len(rows), -1)
    reach = np.zeros(int(labels.max()) + 1)
    for label in np.unique(labels):
        own = labelled[labels == label]
        if len(own) > 1:
            reach[label] = np.quantile(np.linalg.norm(own - own[other_rows(own, 1)[:, 0]], axis=1), _REACH)
    distances, nearest = nearest_rows(labelled, rows, 1)
    found = labels[nearest[:, 0]]
    return np.where(distances[:, 0] <= reach[found], found, -1)
