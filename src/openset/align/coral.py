"""CORAL: the target rows get the mean and the covariance of the source rows (Sun, Feng and Saenko 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openset.align.base import Affine, Rows, check_rows


@dataclass(frozen=True)
class Coral:
    """Give target rows the mean and the covariance of source rows.

    It mixes the domains well, and hides a new class: that class is part of the covariance that is changed.

    Parameters
    ----------
    ridge : added to the diagonal of both covariances, as a share of their mean variance. Without it, directions
        in which target does not vary would be stretched without limit.
    """

    ridge: float = 1e-2
    name = "coral"

    def fit(self, X: Any, X_target: Any, y: Any = None) -> Affine:
        """Return the matrix that whitens target and colours it as source, and a shift."""
        X, X_target = check_rows(X, X_target)
        matrix = _power(self._covariance(X_target), -0.5) @ _power(self._covariance(X), 0.5)
        return Affine(self.name, matrix=matrix, shift=X.mean(axis=0) - X_target.mean(axis=0) @ matrix)

    def _covariance(self, rows: Rows) -> Rows:
        covariance = np.atleast_2d(np.cov(rows, rowvar=False))
        ridge = self.ridge * float(np.trace(covariance)) / len(covariance)
        return np.asarray(covariance + (ridge or 1.0) * np.eye(len(covariance)))  # 1 if all rows are equal


def _power(covariance: Rows, exponent: float) -> Rows:
    """A power of a symmetric positive matrix."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.maximum(values, np.finfo(np.float64).tiny) ** exponent @ vectors.T)
