"""Non-negative quadratic programs: minimise ½ xᵀKx − bᵀx subject to x ≥ 0, for K = ZZᵀ with unit diagonal.

Block principal pivoting (Portugal, Júdice and Vicente 1994): guess which entries are positive, solve the
linear system on them, swap every entry whose sign disagrees, repeat. Each step is one Cholesky factorisation.
From a start found by a dozen projected gradient steps, a few swaps are enough. When a step does not help,
Murty's single-pivot rule takes over, which makes the method finite for positive definite K. Where K is singular
(duplicated rows, fewer features than rows, infeasible constraints), `proximal_point` adds a small multiple of
the identity and removes its effect by iterating; `least_distance` is the last resort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import nnls

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_PATIENCE = 3  # full swaps without progress before single pivots; the value of the original paper


class SingularError(ArithmeticError):
    """A linear system on the positive entries has no stable solution."""


class Kernel(Protocol):
    """What the solver needs of K."""

    @property
    def size(self) -> int:
        """Number of rows of K."""

    def apply(self, x: FloatArray) -> FloatArray:
        """K @ x."""

    def solve(self, free: IndexArray, rhs: FloatArray, shift: float, guess: FloatArray) -> FloatArray:
        """(K_FF + shift·I)⁻¹ rhs, or SingularError."""


class DenseKernel:
    """K as a matrix; linear systems by Cholesky factorisation."""

    def __init__(self, gram: FloatArray) -> None:
        self.gram = gram
        self.size = len(gram)

    def apply(self, x: FloatArray) -> FloatArray:
        """K @ x."""
        return self.gram @ x

    def solve(self, free: IndexArray, rhs: FloatArray, shift: float, guess: FloatArray) -> FloatArray:
        """LAPACK's Cholesky, in place on a copy of the block of free entries."""
        block = self.gram[np.ix_(free, free)] if len(free) < self.size else self.gram.copy()
        if shift:
            block.flat[:: len(free) + 1] += shift
        # the transposed view of a C-ordered copy is Fortran-ordered, so LAPACK makes no copy
        factor, info = lapack.dpotrf(block.T, lower=1, clean=0, overwrite_a=1)
        if info != 0:
            raise SingularError
        solution, _ = lapack.dpotrs(factor, rhs, lower=1)
        return solution


class MatrixFreeKernel:
    """K = ZZᵀ through the rows Z only; linear systems by conjugate gradients, memory O(N + d) besides Z."""

    def __init__(self, rows: FloatArray) -> None:
        self.rows = rows
        self.size = len(rows)

    def apply(self, x: FloatArray) -> FloatArray:
        """Z (Zᵀ x)."""
        return self.rows @ (x @ self.rows)

    def solve(self, free: IndexArray, rhs: FloatArray, shift: float, guess: FloatArray) -> FloatArray:
        """Conjugate gradients on all of Z with the other entries fixed at zero, which copies no rows."""

        def product(v: FloatArray) -> FloatArray:
            full = np.zeros(self.size)
            full[free] = v
            return self.apply(full)[free] + shift * v

        return conjugate_gradients(product, rhs, guess)


def conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    rhs: FloatArray,
    guess: FloatArray,
    *,
    tolerance: float = 1e-13,
) -> FloatArray:
    """Solve a positive definite system by its products; SingularError where the curvature vanishes."""
    x = guess.copy()
    residual = rhs - product(x)
    direction = residual.copy()
    power = float(residual @ residual)
    goal = (tolerance * float(np.linalg.norm(rhs))) ** 2
    best, best_power, stalled = x.copy(), power, 0
    for _ in range(20 * len(rhs) + 100):
        if best_power <= goal or stalled > 200:
            return best
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 4 * _EPS * float(direction @ direction):
            raise SingularError
        step = power / curvature
        x += step * direction
        residual -= step * image
        previous, power = power, float(residual @ residual)
        direction = residual + (power / previous) * direction
        stalled = 0 if power < 0.99 * best_power else stalled + 1
        if power < best_power:
            best, best_power = x.copy(), power
    return best


@dataclass(frozen=True)
class Pivoted:
    """A point of the pivoting method, and whether it solves the program."""

    x: FloatArray
    free: BoolArray
    pivots: int
    solved: bool


def likely_support(kernel: Kernel, b: FloatArray, steps: int = 12) -> BoolArray:
    """The entries that are positive after projected gradient steps (Barzilai–Borwein): a start for pivoting."""
    x = np.maximum(b, 0.0)
    image = kernel.apply(x)
    curvature = float(x @ image)
    if curvature > 0:
        scale = float(b @ x) / curvature
        x, image = scale * x, scale * image
    gradient, length = image - b, 1.0
    for k in range(steps):
        moved = np.maximum(x - length * gradient, 0.0)
        changed = kernel.apply(moved) - b
        s, y = moved - x, changed - gradient
        sy = float(s @ y)
        if sy <= 0:
            break
        length = float(s @ s) / sy if k % 2 else sy / float(y @ y)
        x, gradient = moved, changed
    return x > 0


def block_pivoting(
    kernel: Kernel, b: FloatArray, start: BoolArray, *, shift: float = 0.0, max_pivots: int = 200
) -> Pivoted:
    """Solve with K + shift·I from a guess of the positive entries; SingularError where a block is singular."""
    free, x = start.copy(), np.zeros(kernel.size)
    fewest, patience = kernel.size + 1, _PATIENCE
    for pivot in range(max_pivots):
        index = np.flatnonzero(free)
        solution = kernel.solve(index, b[index], shift, x[index]) if len(index) else b[index]
        x = np.zeros(kernel.size)
        x[index] = solution
        slope = kernel.apply(x) + shift * x - b
        # rounding error of a product with K (|K_ij| ≤ 1) and of the linear system
        noise = 8 * _EPS * (float(np.abs(x).sum()) + float(np.abs(b).max()))
        wrong = np.where(free, x < -noise, slope < -noise)
        count = int(wrong.sum())
        if count == 0:
            return Pivoted(np.maximum(x, 0.0), free, pivot + 1, True)
        if count < fewest:
            fewest, patience = count, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False  # Murty: swap only the last one, which cannot cycle
        free = free ^ wrong
    return Pivoted(np.maximum(x, 0.0), free, max_pivots, False)


def proximal_point(
    kernel: Kernel, b: FloatArray, start: BoolArray, *, shift: float = 1e-7, rounds: int = 30
) -> Iterator[tuple[FloatArray, FloatArray, int]]:
    """Yield (x, change of x, pivots) of x⁺ = argmin ½xᵀKx − bᵀx + ½·shift·‖x − x_old‖² over x ≥ 0.

    Converges to a solution if there is one. Where the objective has no lower bound, the *change* converges to
    a ray of descent x ≥ 0, Kx = 0, bᵀx > 0: a proof that the constraints Zw ≥ b contradict each other. Ends
    early where pivoting does not converge, as with many more rows than features.
    """
    x, free = np.zeros(kernel.size), start
    for _ in range(rounds):
        step = block_pivoting(kernel, b + shift * x, free, shift=shift, max_pivots=50)
        if not step.solved:
            return
        yield step.x, step.x - x, step.pivots
        x, free = step.x, step.free


def least_distance(Z: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Multipliers, or a ray, by Lawson and Hanson's reduction to ‖[Zᵀ; bᵀ]x − (0, 1)‖ → min over x ≥ 0.

    Much slower than pivoting, but it never factorises a singular block: the last resort. If the residual is
    zero, x is a ray (Zᵀx = 0, bᵀx = 1); else the multipliers are x / (1 − bᵀx).
    """
    x, _ = nnls(np.vstack([Z.T, b]), np.append(np.zeros(Z.shape[1]), 1.0), maxiter=20 * len(b) + 100)
    left = 1.0 - float(b @ x)
    return x / left if left > 1e-12 else x, x
