"""The smallest weights that satisfy margin constraints, with a proof of optimality or of infeasibility.

Both rules of the paper are: minimise ½‖w‖² subject to Zw ≥ b, with one signed row z_i per training row. The
domain discriminator requires −x·w ≥ 1 on source and x·w ≥ 1 on target; the constrained rule (CoLOR) requires
−x·w ≥ 0 on source and x·w ≥ 1 on target. The dual is: maximise bᵀλ − ½‖Zᵀλ‖² over λ ≥ 0, and w = Zᵀλ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from openset._utils.params import check_integer, check_number
from openset.theory._quadratic_program import (
    BoolArray,
    DenseKernel,
    FloatArray,
    IndexArray,
    Kernel,
    MatrixFreeKernel,
    SingularError,
    block_pivoting,
    least_distance,
    likely_support,
    proximal_point,
)
from openset.theory.certificate import Certificate, Infeasibility, certify, prove_infeasible

# a working set holds up to about twice as many rows as there are features, and needs their Gram matrix
_WORKING_FEATURES = 10_000


class NotSolvedError(ArithmeticError):
    """Neither a solution nor a proof of infeasibility met the tolerance."""


@dataclass(frozen=True)
class MaxMargin:
    """A solution with its certificate, or a proof that there is none."""

    weights: FloatArray
    """w; NaN where infeasible."""
    multipliers: FloatArray
    """λ, one per row; NaN where infeasible."""
    certificate: Certificate | None
    infeasibility: Infeasibility | None
    pivots: int
    """Linear systems solved."""
    method: str

    @property
    def feasible(self) -> bool:
        """Whether the constraints can be satisfied."""
        return self.infeasibility is None

    @property
    def support(self) -> BoolArray:
        """Rows with λ > 0; a good ``start`` for a similar problem."""
        return self.multipliers > 0

    @property
    def norm(self) -> float:
        """‖w‖, the reciprocal of the margin."""
        return float(np.linalg.norm(self.weights))


class MarginOptions(TypedDict, total=False):
    """The options of :func:`max_margin`."""

    gram: FloatArray | None
    start: BoolArray | None
    gram_limit: int
    tolerance: float


def max_margin_dd(source: ArrayLike, target: ArrayLike, **options: Unpack[MarginOptions]) -> MaxMargin:
    """The domain discriminator: the smallest w with w·x ≤ −1 on source and w·x ≥ +1 on target.

    The options are those of :func:`max_margin`; ``gram`` is the Gram matrix of the stacked rows, source first.

    >>> max_margin_dd([[-1.0, 0.0]], [[1.0, 0.0]]).weights.round(9).tolist()
    [1.0, 0.0]
    >>> max_margin_dd([[1.0, 0.0]], [[1.0, 0.0]]).feasible
    False
    """
    return _rule(1.0, source, target, options)


def max_margin_color(source: ArrayLike, target: ArrayLike, **options: Unpack[MarginOptions]) -> MaxMargin:
    """The constrained rule: the smallest w with w·x ≤ 0 on source and w·x ≥ +1 on target.

    The options are those of :func:`max_margin_dd`.

    >>> max_margin_color([[-1.0, 0.0]], [[0.0, 2.0]]).weights.tolist()
    [0.0, 0.5]
    """
    return _rule(0.0, source, target, options)


SOLVERS: dict[str, Callable[..., MaxMargin]] = {"dd": max_margin_dd, "color": max_margin_color}


def _rule(source_margin: float, source: ArrayLike, target: ArrayLike, options: MarginOptions) -> MaxMargin:
    s, t = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if s.ndim != 2 or t.ndim != 2 or s.shape[1] != t.shape[1]:
        raise ValueError(f"source has shape {s.shape} and target {t.shape}: expected rows × the same features.")
    bound = np.concatenate([np.full(len(s), source_margin), np.ones(len(t))])
    gram = options.get("gram")
    if gram is not None:  # source rows enter with a minus
        gram = _check_gram(gram, len(bound)).copy()
        gram[: len(s), len(s) :] *= -1
        gram[len(s) :, : len(s)] *= -1
        options["gram"] = gram
    return max_margin(np.concatenate([-s, t]), bound, **options)


def max_margin(
    rows: ArrayLike,
    bound: ArrayLike,
    *,
    gram: FloatArray | None = None,
    start: BoolArray | None = None,
    gram_limit: int = 20_000,
    tolerance: float = 1e-8,
) -> MaxMargin:
    """Minimise ½‖w‖² subject to rows @ w ≥ bound.

    Parameters
    ----------
    rows : array of shape (n, features)
    bound : array of shape (n,)
    gram : array of shape (n, n), optional
        ``rows @ rows.T``; computed if it is not given.
    start : boolean array of shape (n,), optional
        Which constraints are likely to be active, for instance ``support`` of a similar problem.
    gram_limit : int
        The Gram matrix of more rows than this is never formed. With fewer features than rows, small programs
        on a working set of rows are solved instead (memory besides the data: O(features²)); else linear systems
        are solved by conjugate gradients (O(rows + features)).
    tolerance : float
        Upper limit for all four entries of the certificate, or for the residual of a proof of infeasibility.

    Raises
    ------
    NotSolvedError
        If neither could be certified, for instance because the scales of the data prevent it by rounding.
    """
    Z, b = np.asarray(rows, np.float64), np.asarray(bound, np.float64)
    check_number("tolerance", tolerance, open_low=True, high=1e-2)
    check_integer("gram_limit", gram_limit, low=0)
    length = _checked_lengths(Z, b, gram, start)
    impossible = np.flatnonzero((length == 0) & (b > 0))
    if len(impossible):  # 0·w ≥ b > 0
        ray = np.zeros(len(b))
        ray[impossible[0]] = 1 / b[impossible[0]]
        return _infeasible(Infeasibility(ray, 0.0, np.inf), Z, 0, "zero row")
    if not (b > 0).any():  # w = 0 satisfies every constraint
        zero = np.zeros(len(b))
        return _solution(Z, zero, certify(Z, b, zero), 0, "zero")
    if len(b) > gram_limit and Z.shape[1] < min(len(b), _WORKING_FEATURES):
        return _solve_by_working_set(Z, b, tolerance)
    # rows of unit length: the same constraints, a better conditioned K
    scale = 1 / np.where(length > 0, length, 1.0)
    return _solve(Z, b, scale, _kernel(Z, scale, gram, gram_limit), start, tolerance)


def _checked_lengths(
    Z: FloatArray, b: FloatArray, gram: FloatArray | None, start: BoolArray | None
) -> FloatArray:
    """The lengths of the rows; raise where the program is not valid."""
    if Z.ndim != 2 or b.shape != Z.shape[:1] or not Z.size:
        raise ValueError(
            f"rows has shape {Z.shape} and bound {b.shape}: expected rows × features and one bound per row."
        )
    if start is not None and start.shape != b.shape:
        raise ValueError(f"start has shape {start.shape}: expected one flag per row, {b.shape}.")
    # the diagonal of a given Gram matrix saves a pass over the rows, and shows NaN and infinity too
    squares = np.einsum("ij,ij->i", Z, Z) if gram is None else np.diag(_check_gram(gram, len(b)))
    length: FloatArray = np.sqrt(squares)
    if not np.isfinite(length).all() or not np.isfinite(b).all():
        raise ValueError("rows and bound must be finite: drop or impute NaN and infinite values first.")
    return length


def _check_gram(gram: FloatArray, n: int) -> FloatArray:
    if gram.shape != (n, n):
        raise ValueError(f"gram has shape {gram.shape}: expected ({n}, {n}), one entry per pair of rows.")
    return gram


def _kernel(Z: FloatArray, scale: FloatArray, gram: FloatArray | None, gram_limit: int) -> Kernel:
    if len(Z) > gram_limit:
        return MatrixFreeKernel(Z * scale[:, None])
    K = (Z @ Z.T if gram is None else gram) * scale
    K *= scale[:, None]
    return DenseKernel(K)


def _solve(
    Z: FloatArray, b: FloatArray, scale: FloatArray, kernel: Kernel, start: BoolArray | None, tolerance: float
) -> MaxMargin:
    method = "gram" if isinstance(kernel, DenseKernel) else "matrix-free"
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
    """Candidates for λ, and for a ray that proves infeasibility, of rows of unit length; fastest first."""
    free = likely_support(kernel, b) if start is None else start
    with suppress(SingularError):
        pivoted = block_pivoting(kernel, b, free)
        free = pivoted.free
        yield _Attempt(pivoted.x, None, pivoted.pivots, "")
    with suppress(SingularError):
        for x, change, pivots in proximal_point(kernel, b, free):
            yield _Attempt(x, np.maximum(change, 0.0), pivots, "proximal")
    if isinstance(kernel, DenseKernel):
        with suppress(RuntimeError):  # scipy raises it after too many iterations
            x, ray = least_distance(Z * scale[:, None], b)
            yield _Attempt(x, ray, 0, "least distance")


def _solve_by_working_set(Z: FloatArray, b: FloatArray, tolerance: float, *, rounds: int = 500) -> MaxMargin:
    """More constraints than features: solve on a few rows, find violated ones among all rows, repeat.

    Rows with a zero multiplier leave the set, violated ones enter. Each round raises the optimum, so no support
    occurs twice and the method is finite. In general position at most as many rows as features have a positive
    multiplier: the set stays a small multiple of that. If the rows of a set contradict each other, so do all.
    """
    batch = max(100, Z.shape[1])
    working, start, pivots = _first_working_set(Z, b, 2 * batch), None, 0
    full = np.zeros(len(b))
    for _ in range(rounds):
        found = max_margin(Z[working], b[working], start=start, gram_limit=len(working), tolerance=tolerance)
        pivots += found.pivots
        if found.infeasibility is not None:
            full[working] = found.infeasibility.multipliers
            return _infeasible(replace(found.infeasibility, multipliers=full), Z, pivots, "working set")
        slack = Z @ found.weights - b
        slack[working] = 0.0  # certified already
        violated = np.flatnonzero(slack < -0.5 * tolerance)
        if not len(violated):
            full[working] = found.multipliers
            return _solution(Z, full, certify(Z, b, full), pivots, "working set")
        if len(violated) > batch:
            violated = violated[np.argpartition(slack[violated], batch)[:batch]]
        kept = working[found.support]
        working = np.sort(np.concatenate([kept, violated]))
        start = np.isin(working, kept)
    raise NotSolvedError(f"no working set for rows of shape {Z.shape}: raise gram_limit, or the tolerance.")


def _first_working_set(Z: FloatArray, b: FloatArray, size: int) -> IndexArray:
    """The rows with the smallest products with the sum of all rows that have a positive bound."""
    served = Z @ (np.maximum(b, 0.0) @ Z)
    working = np.sort(np.argpartition(served, min(size, len(b) - 1))[:size])
    if not (b[working] > 0).any():  # a set that w = 0 satisfies would never grow
        working = np.sort(np.append(working, np.argmax(b)))
    return working


def _solution(Z: FloatArray, x: FloatArray, certificate: Certificate, pivots: int, method: str) -> MaxMargin:
    return MaxMargin(x @ Z, x, certificate, None, pivots, method)


def _infeasible(proof: Infeasibility, Z: FloatArray, pivots: int, method: str) -> MaxMargin:
    nothing = np.full(Z.shape[1], np.nan)
    return MaxMargin(nothing, np.full(len(Z), np.nan), None, proof, pivots, method)
