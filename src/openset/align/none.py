"""No alignment: target rows stay where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openset.align.base import Affine, check_rows


@dataclass(frozen=True)
class NoAlignment:
    """Leave target rows as they are. The choice of ``align="auto"`` where the batch did not move."""

    name = "none"

    def fit(self, X: Any, X_target: Any, y: Any = None) -> Affine:
        """Return the identity."""
        check_rows(X, X_target)
        return Affine(self.name)
