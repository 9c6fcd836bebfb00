"""Did the target batch move as a whole? Measured by how much source lies around target rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from openset.align.base import Rows, check_rows
from openset.stats.components import draw_rows, find_components
from openset.stats.neighbours import nearest_rows
from openset.stats.novelty import MAX_DENSITY_RATIO

MAX_ROWS, MAX_COMPONENTS, MAX_NEIGHBOURS = 1500, 30, 50


@dataclass(frozen=True)
class Move:
    """How much source surrounds the target rows, and whether the batch moved as a whole.

    Attributes
    ----------
    overlap : the median, over target rows, of the share of source rows among the nearest rows. It is about ½ if
        both domains are drawn alike, and 0 if most target rows lie where source has none.
    limit : the batch is called moved if ``overlap`` is below this; see :func:`overlap_limit`.
    is_moved : whether it is.
    n_rows : rows of each domain that were compared.
    """

    overlap: float
    limit: float
    is_moved: bool
    n_rows: int


def find_move(X: Any, X_target: Any, *, seed: int = 0, most_rows: int = MAX_ROWS) -> Move:
    """Find out whether the target batch moved as a whole. No labels are used.

    Equally many rows of both domains, at most ``most_rows`` of each, are compared in at most 30 principal
    components. With an overlap below 1/13, more than half of the target rows lie where target is more than 12
    times as dense as source. Known kinds that became up to 12 times as common do not cause that, and neither does
    a new class that has fewer than half of the target rows. Chance can, so the limit is lower than 1/13, and
    fewer than 65 rows are never called moved.

    >>> rows = np.random.default_rng(0).normal(size=(400, 5))
    >>> find_move(rows[:200], rows[200:]).is_moved, find_move(rows[:200], rows[200:] + 9).is_moved
    (False, True)
    """
    X, X_target = check_rows(X, X_target)
    rng = np.random.default_rng(seed)
    n = min(len(X), len(X_target), most_rows)
    X, X_target = draw_rows(X, n, rng), draw_rows(X_target, n, rng)
    components = find_components(X, X_target, MAX_COMPONENTS, seed=seed)
    overlap = float(np.median(source_shares(components.of(X), components.of(X_target))))
    limit = overlap_limit(n)
    return Move(overlap=overlap, limit=limit, is_moved=overlap < limit, n_rows=n)


def overlap_limit(n: int) -> float:
    """Return the overlap below which n rows of each domain are called moved.

    It is 1/13 minus the chance of a draw. Where half of the target rows lie 12 times as densely as source, about
    n/24 source rows are expected. If that many are a Poisson count, they are fewer by a share of 1.64/√(n/24) in
    about one draw of 20.

    >>> [round(overlap_limit(n), 3) for n in (60, 200, 1500)]
    [0.0, 0.033, 0.061]
    """
    expected = n / (2 * MAX_DENSITY_RATIO)
    return max(0.0, 1 - 1.64 / math.sqrt(expected)) / (1 + MAX_DENSITY_RATIO)


def source_shares(source: Rows, target: Rows) -> Rows:
    """For each target row the share of source rows among its nearest other rows: 50, or a quarter of the rows.

    >>> source_shares(np.array([[0.0], [1.0]]), np.array([[0.1], [9.0]])).tolist()
    [1.0, 1.0]
    """
    k = max(1, min(MAX_NEIGHBOURS, len(target) // 4))
    nearest = nearest_rows(np.concatenate([source, target]), target, k + 1)[1]
    is_other = nearest != len(source) + np.arange(len(target))[:, None]
    is_other[is_other.all(axis=1), -1] = False  # equal rows can push the row itself off its list
    return np.asarray(((nearest < len(source)) & is_other).sum(axis=1) / k)
