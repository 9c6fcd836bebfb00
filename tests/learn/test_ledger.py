"""The ledger of a training run: what it keeps, when it stops, and that its state can be stored."""

from __future__ import annotations

import numpy as np

from openset.learn.ledger import WINDOW, Convergence


def test_a_growing_multiplier_never_counts_as_settled():
    still, growing = Convergence(1e-3), Convergence(1e-3)
    for i in range(WINDOW):
        settled = still.update(0.5, np.array([0.1]), np.array([2.0]))
        moving = growing.update(0.5, np.array([0.1]), np.array([2.0 + 0.05 * i]))
    assert settled and not moving
