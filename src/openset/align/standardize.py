"""Standardising by domain: every column of target gets the mean and standard deviation of source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openset.align.base import Affine, check_rows


@dataclass(frozen=True)
class Standardize:
    """Give every column of target the mean and the standard deviation that it has in source.

    For instruments whose zero and scale drift. A column that is constant in target is only shifted.
    """

    name = "standardize"

    def fit(self, X: Any, X_target: Any, y: Any = None) -> Affine:
        """Return one factor and one shift for each column."""
        X, X_target = check_rows(X, X_target)
        mean, sd = X_target.mean(axis=0), X_target.std(axis=0)
        varies = sd > 1e-9 * np.maximum(1.0, np.abs(mean))
        factor = np.divide(X.std(axis=0), sd, out=np.ones_like(sd), where=varies)
        return Affine(self.name, factor=factor, shift=X.mean(axis=0) - mean * factor)
