"""Gradient descent on the logistic versions of both rules: its direction converges to the max-margin weights.

On separable data the logistic loss has no minimiser: under gradient descent ‖w‖ grows, and the *direction* of
w converges to the max-margin solution (Soudry et al. 2018). The constrained rule minimises the loss on target
subject to w·x ≤ 0 on source. These constraints form a cone, so descent with exact projections converges to the
direction of the constrained max-margin weights. Steps are divided by the current loss (normalised descent);
otherwise the angle would decrease only like 1/log t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from openset._utils.params import check_choice, check_integer, check_number
from openset.theory._quadratic_program import BoolArray, DenseKernel, FloatArray, block_pivoting
from openset.theory.problem import RULES, Rule


@dataclass(frozen=True)
class Descent:
    """The path of gradient descent on a logistic rule."""

    weights: FloatArray
    steps: tuple[int, ...]
    """Steps at which the direction was recorded: powers of two, and the last one."""
    directions: FloatArray
    """Unit weights at those steps, one row per step."""

    def cosines(self, weights: ArrayLike) -> FloatArray:
        """Cosine of each recorded direction with the given weights.

        >>> descent = logistic_descent([[-1.0, 0.0]], [[1.0, 1.0]], "dd", steps=64)
        >>> bool(descent.cosines([1.0, 0.0])[-1] > 0.9)
        True
        """
        w = np.asarray(weights, dtype=np.float64)
        return self.directions @ (w / np.linalg.norm(w))


def logistic_descent(
    source: ArrayLike, target: ArrayLike, rule: Rule, *, steps: int = 4096, learning_rate: float = 1.0
) -> Descent:
    """Run normalised gradient descent from zero on one of the two logistic rules.

    "dd" minimises Σ log(1 + exp(w·x)) over source + Σ log(1 + exp(−w·x)) over target. "color" minimises the
    second sum subject to w·x ≤ 0 on source, by projecting after every step. Only the Gram matrix is used.
    """
    check_choice("rule", rule, RULES)
    check_integer("steps", steps)
    check_number("learning_rate", learning_rate, open_low=True)
    s, t = np.asarray(source, np.float64), np.asarray(target, np.float64)
    Z = np.concatenate([-s, t])
    gram = Z @ Z.T
    in_loss = np.ones(len(Z), bool)
    if rule == "color":
        in_loss[: len(s)] = False
    project = _Projection(gram[: len(s), : len(s)]) if rule == "color" else None
    coefficients = np.zeros(len(Z))
    largest = float(np.linalg.eigvalsh(gram)[-1])
    recorded, directions = [], []
    for step in range(1, steps + 1):
        margins = gram @ coefficients
        loss = float(np.logaddexp(0.0, -margins[in_loss]).sum())
        pull = np.where(in_loss, expit(-margins), 0.0)
        coefficients = coefficients + learning_rate / (largest * loss) * pull
        if project is not None:
            coefficients[: len(s)] += project(gram[: len(s)] @ coefficients)
        if step & (step - 1) == 0 or step == steps:
            w = coefficients @ Z
            recorded.append(step)
            directions.append(w / np.linalg.norm(w))
    return Descent(coefficients @ Z, tuple(recorded), np.array(directions))


class _Projection:
    """What to add to the coefficients of source rows so that no source margin is negative."""

    def __init__(self, gram: FloatArray) -> None:
        self.length = np.sqrt(np.diag(gram))
        self.kernel = DenseKernel(gram / np.outer(self.length, self.length))
        self.free: BoolArray = np.zeros(len(gram), bool)

    def __call__(self, margins: FloatArray) -> FloatArray:
        # the positive entries hardly change between steps: start from the last ones
        solved = block_pivoting(self.kernel, -margins / self.length, self.free)
        self.free = solved.free
        return solved.x / self.length
