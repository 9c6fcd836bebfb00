"""Principal components of both domains together, in which rows are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Components:
    """x ↦ (x − centre) · axes."""

    centre: Rows
    axes: Rows

    def of(self, rows: Rows) -> Rows:
        """Rows in the principal components."""
        return (rows - self.centre) @ self.axes


def draw_rows(rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    """At most n rows, drawn without replacement, in their order."""
    return rows if len(rows) <= n else rows[np.sort(rng.permutation(len(rows))[:n])]


def find_components(X: Rows, X_target: Rows, limit: int, *, seed: int, max_rows: int = 4000) -> Components:
    """At most ``limit`` principal components of equally many rows of both domains, at most ``max_rows`` of each.

    >>> rows = np.array([[0.0, 0.0], [3.0, 3.0], [-3.0, -3.0]])
    >>> np.abs(find_components(rows, rows + 1, 1, seed=0).axes).round(2).tolist()
    [[0.71], [0.71]]
    """
    from sklearn.utils.extmath import randomized_svd

    rng = np.random.default_rng(seed)
    n = min(len(X), len(X_target), max_rows)
    both = np.concatenate([draw_rows(X, n, rng), draw_rows(X_target, n, rng)])
    centre = both.mean(axis=0)
    axes = randomized_svd(both - centre, min(limit, *both.shape), random_state=seed)[2]
    return Components(centre, np.ascontiguousarray(axes.T))
