"""Optimal transport between Gaussians with the moments of both domains, by POT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset.align.base import Affine, check_rows


@dataclass(frozen=True)
class Transport:
    """Give target rows the moments of source with the least possible movement of rows (Knott and Smith 1984).

    As :class:`Coral`, but of all maps that do this it is the one that moves rows least. It needs
    ``openset[skada]``, which installs POT. POT loads torch where that is installed.

    Parameters
    ----------
    ridge : added to the diagonal of both covariances, as a share of the mean variance of both domains.
    """

    ridge: float = 1e-2
    name = "transport"

    def fit(self, X: Any, X_target: Any, y: Any = None) -> Affine:
        """Return the matrix and the shift of the transport."""
        X, X_target = check_rows(X, X_target)
        gaussian = require("ot.gaussian", "Alignment by optimal transport", "skada")
        variance = float(X.var(axis=0).mean() + X_target.var(axis=0).mean()) / 2
        matrix, shift = gaussian.empirical_bures_wasserstein_mapping(
            X_target, X, reg=self.ridge * variance if variance > 0 else 1.0
        )
        return Affine(self.name, matrix=np.asarray(matrix), shift=np.asarray(shift).ravel())
