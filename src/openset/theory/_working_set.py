"""More constraints than features: solve on a few rows, look for violated ones among all, repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from openset.theory._nnqp import BoolArray, FloatArray

S = TypeVar("S")
Solve = Callable[[NDArray[np.intp], BoolArray | None], tuple[S, FloatArray | None, FloatArray]]


def by_working_set(
    Z: FloatArray, b: FloatArray, solve: Solve[S], *, tolerance: float, rounds: int = 500
) -> tuple[S, NDArray[np.intp]] | None:
    """The solution on a set of rows that no row outside violates, with that set; None if it was not reached.

    ``solve(rows, start)`` returns a solution on those rows, its weights (None where they contradict each
    other, and then so do all) and its multipliers. Rows with a zero multiplier leave the set, violated ones
    enter: each round raises the optimum, so that no support comes twice and the method is finite. In general
    position at most as many rows as features carry a multiplier: the set stays a small multiple of that.
    """
    n, d = Z.shape
    batch = max(100, d)
    # rows that the plainest guess, the sum of all with a bound, serves worst
    guess = np.maximum(b, 0.0) @ Z
    served = Z @ guess
    working = np.sort(np.argpartition(served, min(2 * batch, n - 1))[: 2 * batch])
    if not (b[working] > 0).any():  # a set that w = 0 satisfies would never grow
        working = np.sort(np.append(working, np.argmax(b)))
    start: BoolArray | None = None
    for _ in range(rounds):
        solution, weights, multipliers = solve(working, start)
        if weights is None:
            return solution, working
        slack = Z @ weights - b
        slack[working] = 0.0  # certified by the solve itself
        violated = np.flatnonzero(slack < -0.5 * tolerance)
        if not len(violated):
            return solution, working
        if len(violated) > batch:
            violated = violated[np.argpartition(slack[violated], batch)[:batch]]
        kept = working[multipliers > 0]
        working = np.sort(np.concatenate([kept, violated]))
        start = np.isin(working, kept)
    return None
