"""When to stop: loss, defects and multipliers have all settled, for each member by itself."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

WINDOW = 6
"""Evaluation intervals whose means are compared: the later half against the earlier one."""


class Convergence:
    """Watches means over evaluation intervals and tells when they stop moving.

    A member has converged when, between the two halves of the window, its loss moved by at most ``tol``
    relative to its size, every defect by at most ``tol``, and every multiplier by at most ``tol`` relative to its
    size. A head that cannot meet its constraint keeps raising its multiplier, so it never counts as settled.
    """

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._seen: deque[NDArray[np.float64]] = deque(maxlen=WINDOW)

    def state(self) -> NDArray[np.float64]:
        """The intervals seen, a row each."""
        return np.array(self._seen)

    def restore(self, seen: NDArray[np.float64]) -> None:
        """Go on from there."""
        self._seen.extend(seen)

    def update(self, loss: float, defects: NDArray[np.float64], multipliers: NDArray[np.float64]) -> bool:
        """Record one interval and say whether the member has converged."""
        # relative for loss and multipliers, absolute for defects, which are rates
        self._seen.append(np.concatenate([[loss], defects, multipliers]))
        if self._tol <= 0 or len(self._seen) < WINDOW:
            return False
        values = np.array(self._seen)
        early, late = values[: WINDOW // 2].mean(axis=0), values[WINDOW // 2 :].mean(axis=0)
        size = np.maximum(1.0, np.abs(late))
        size[1 : 1 + len(defects)] = 1.0
        return bool((np.abs(late - early) <= self._tol * size).all())
