"""The smallest weights that meet margin constraints, with a proof of optimality or of infeasibility.

Both rules of the paper are: minimise ½‖w‖² subject to Zw ≥ b, with one signed row z_i a training row. The
domain discriminator asks −x·w ≥ 1 of source and x·w ≥ 1 of target; the constrained rule (CoLOR) asks −x·w ≥
0 of source and x·w ≥ 1 of target. The dual is: maximise bᵀλ − ½‖Zᵀλ‖² over λ ≥ 0, and w = Zᵀλ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset._utils.params import check_integer, check_number
from openset.theory._nnqp import (
    BoolArray,
    DenseKernel,
    FloatArray,
    Kernel,
    MatrixFreeKernel,
    SingularError,
    block_pivoting,
    least_distance,
    likely_support,
    proximal_point,
)
from openset.theory._working_set import by_working_set
from openset.theory.certificate import Certificate, Infeasibility, certify, prove_infeasible

# a working set holds up to about twice as many rows as there are features, and has a Gram matrix of its own
_WORKING_FEATURES = 10_000


class NotSolvedError(ArithmeticError):
    """Neither a solution nor a proof of infeasibility met the tolerance."""


@dataclass(frozen=True)
class MaxMargin:
    """A solution with its certificate, or a proof that there is none."""

    weights: FloatArray
    """w; NaN where infeasible."""
    multipliers: FloatArray
    """λ, one a row; NaN where infeasible."""
    certificate: Certificate | None
    infeasibility: Infeasibility | None
    pivots: int
    """Linear systems solved."""
    method: str

    @property
    def feasible(self) -> bool:
        """Whether the constraints can be met."""
        return self.infeasibility is None

    @property
    def support(self) -> BoolArray:
        """Rows with λ > 0; a good ``start`` for a similar problem."""
        return self.multipliers > 0

    @property
    def norm(self) -> float:
        """‖w‖, the reciprocal of the margin."""
        return float(np.linalg.norm(self.weights))


def max_margin_dd(
    source: ArrayLike,
    target: ArrayLike,
    *,
    gram: FloatArray | None = None,
    start: BoolArray | None = None,
    gram_limit: int = 20_000,
    tolerance: float = 1e-8,
) -> MaxMargin:
    """The domain discriminator: the smallest w with w·x ≤ −1 on source and w·x ≥ +1 on target.

    ``gram`` is the Gram matrix of the stacked rows (source, then target) if it is known already.

    >>> max_margin_dd([[-1.0, 0.0]], [[1.0, 0.0]]).weights.round(9).tolist()
    [1.0, 0.0]
    >>> max_margin_dd([[1.0, 0.0]], [[1.0, 0.0]]).feasible
    False
    """
    return _rule(1.0, source, target, gram, start, gram_limit, tolerance)


def max_margin_color(
    source: ArrayLike,
    target: ArrayLike,
    *,
    gram: FloatArray | None = None,
    start: BoolArray | None = None,
    gram_limit: int = 20_000,
    tolerance: float = 1e-8,
) -> MaxMargin:
    """The constrained rule: the smallest w with w·x ≤ 0 on source and w·x ≥ +1 on target.

    >>> max_margin_color([[-1.0, 0.0]], [[0.0, 2.0]]).weights.tolist()
    [0.0, 0.5]
    """
    return _rule(0.0, source, target, gram, start, gram_limit, tolerance)


def _rule(
    source_margin: float,
    source: ArrayLike,
    target: ArrayLike,
    gram: FloatArray | None,
    start: BoolArray | None,
    gram_limit: int,
    tolerance: float,
) -> MaxMargin:
    s, t = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if s.ndim != 2 or t.ndim != 2 or s.shape[1] != t.shape[1]:
        raise ValueError(f"source has shape {s.shape} and target {t.shape}: expected rows × the same features.")
    bound = np.concatenate([np.full(len(s), source_margin), np.ones(len(t))])
    if gram is not None:
        gram = _check_gram(gram, len(bound)).copy()
        gram[: len(s), len(s) :] *= -1
        gram[len(s) :, : len(s)] *= -1
    rows = np.concatenate([-s, t])
    return max_margin(rows, bound, gram=gram, start=start, gram_limit=gram_limit, tolerance=tolerance)


def max_margin(
    rows: ArrayLike,
    bound: ArrayLike,
    *,
    gram: FloatArray | None = None,
    start: BoolArray | None = None,
    gram_limit: int = 20_000,
    tolerance: float = 1e-8,
) -> MaxMargin:
    """Minimise ½‖w‖² subject to rows @ w ≥ bound, to a certificate no worse than ``tolerance``.

    Parameters
    ----------
    gram : rows @ rows.T if known; formed here otherwise.
    start : which constraints are likely to be active, for instance ``support`` of a similar problem.
    gram_limit : beyond so many rows the Gram matrix is never formed. With fewer features than rows small
        programs on a working set of rows are solved instead; else linear systems are solved by conjugate
        gradients. Memory beside the data: O(features²), and O(rows + features).
    tolerance : on all four entries of the certificate, or on the residual of a proof of infeasibility.

    Raises ------ NotSolvedError : if neither could be certified, for instance on data so ill scaled that
    rounding prevents it.
    """
    Z, b = np.asarray(rows, np.float64), np.asarray(bound, np.float64)
    _check_program(Z, b)
    check_number("tolerance", tolerance, open_low=True, high=1e-2)
    check_integer("gram_limit", gram_limit, low=0)
    if start is not None and start.shape != b.shape:
        raise ValueError(f"start has shape {start.shape}: expected one flag a row, {b.shape}.")
    if gram is not None:
        _check_gram(gram, len(b))
    # of a Gram matrix that is known the diagonal saves a pass over the rows; NaN and infinity show in it too
    length = np.sqrt(np.einsum("ij,ij->i", Z, Z) if gram is None else np.diag(gram))
    if not np.isfinite(length).all() or not np.isfinite(b).all():
        raise ValueError("rows and bound must be finite: drop or impute NaN and infinite values first.")
    impossible = np.flatnonzero((length == 0) & (b > 0))
    if len(impossible):  # 0·w ≥ b > 0
        ray = np.zeros(len(b))
        ray[impossible[0]] = 1 / b[impossible[0]]
        return _infeasible(Infeasibility(ray, 0.0, np.inf), Z, 0, "zero row")
    if not (b > 0).any():  # w = 0 meets every constraint
        return MaxMargin(np.zeros(Z.shape[1]), np.zeros(len(b)), certify(Z, b, np.zeros(len(b))), None, 0, "zero")
    # rows of unit length: the same constraints, a better conditioned K
    scale = 1 / np.where(length > 0, length, 1.0)
    kernel: Kernel
    if len(b) > gram_limit and Z.shape[1] < min(len(b), _WORKING_FEATURES):
        return _solve_by_working_set(Z, b, tolerance)
    if len(b) > gram_limit:
        kernel, method = MatrixFreeKernel(Z * scale[:, None]), "matrix-free"
    else:
        K = (Z @ Z.T if gram is None else gram) * scale
        K *= scale[:, None]
        kernel, method = DenseKernel(K), "gram"
    return _solve(Z, b, scale, kernel, start, tolerance, method)


def _solve(
    Z: FloatArray,
    b: FloatArray,
    scale: FloatArray,
    kernel: Kernel,
    start: BoolArray | None,
    tolerance: float,
    method: str,
) -> MaxMargin:
    best, pivots = np.inf, 0
    for attempt in _attempts(kernel, Z, b * scale, scale, start):
        pivots += attempt.pivots
        label = f"{method}, {attempt.name}" if attempt.name else method
        certificate = certify(Z, b, attempt.x * scale)
        if certificate.worst <= tolerance:
            return _solution(Z, attempt.x * scale, certificate, pivots, label)
        best = min(best, certificate.worst)
        if attempt.ray is not None:
            proof = prove_infeasible(Z, b, attempt.ray * scale, tolerance)
            if proof is not None:
                return _infeasible(proof, Z, pivots, label)
    raise NotSolvedError(
        f"no certificate within {tolerance:g} for rows of shape {Z.shape} (best {best:.1e}): "
        "rescale the features, or raise tolerance."
    )


@dataclass(frozen=True)
class _Attempt:
    x: FloatArray
    ray: FloatArray | None
    pivots: int
    name: str


def _attempts(
    kernel: Kernel, Z: FloatArray, b: FloatArray, scale: FloatArray, start: BoolArray | None
) -> Iterator[_Attempt]:
    """Candidates for λ (and for a ray that proves infeasibility) of rows of unit length, fastest first."""
    free = likely_support(kernel, b) if start is None else start
    with suppress(SingularError):
        pivoted = block_pivoting(kernel, b, free)
        free = pivoted.free
        yield _Attempt(pivoted.x, None, pivoted.pivots, "")
    with suppress(SingularError):
        for x, change, pivots in proximal_point(kernel, b, free):
            yield _Attempt(x, np.maximum(change, 0.0), pivots, "proximal")
    if isinstance(kernel, DenseKernel):
        with suppress(RuntimeError):  # scipy's word for too many iterations
            x, ray = least_distance(Z * scale[:, None], b)
            yield _Attempt(x, ray, 0, "least distance")


def _solve_by_working_set(Z: FloatArray, b: FloatArray, tolerance: float) -> MaxMargin:
    pivots = 0

    def solve(rows: NDArray[np.intp], start: BoolArray | None) -> tuple[MaxMargin, FloatArray | None, FloatArray]:
        nonlocal pivots
        found = max_margin(Z[rows], b[rows], start=start, gram_limit=len(rows), tolerance=tolerance)
        pivots += found.pivots
        return found, found.weights if found.feasible else None, found.multipliers

    reached = by_working_set(Z, b, solve, tolerance=tolerance)
    if reached is None:
        raise NotSolvedError(f"no working set for rows of shape {Z.shape}: raise gram_limit, or the tolerance.")
    found, rows = reached
    full = np.zeros(len(b))
    if found.infeasibility is not None:
        full[rows] = found.infeasibility.multipliers
        return _infeasible(replace(found.infeasibility, multipliers=full), Z, pivots, "working set")
    full[rows] = found.multipliers
    return _solution(Z, full, certify(Z, b, full), pivots, "working set")


def _solution(Z: FloatArray, x: FloatArray, certificate: Certificate, pivots: int, method: str) -> MaxMargin:
    return MaxMargin(x @ Z, x, certificate, None, pivots, method)


def _infeasible(proof: Infeasibility, Z: FloatArray, pivots: int, method: str) -> MaxMargin:
    nothing = np.full(Z.shape[1], np.nan)
    return MaxMargin(nothing, np.full(len(Z), np.nan), None, proof, pivots, method)


def _check_program(Z: FloatArray, b: FloatArray) -> None:
    if Z.ndim != 2 or b.shape != Z.shape[:1] or not Z.size:
        raise ValueError(
            f"rows has shape {Z.shape} and bound {b.shape}: expected rows × features and one bound a row."
        )


def _check_gram(gram: FloatArray, n: int) -> FloatArray:
    if gram.shape != (n, n):
        raise ValueError(f"gram has shape {gram.shape}: expected ({n}, {n}), one entry a pair of rows.")
    return gram
