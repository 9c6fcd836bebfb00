"""Proofs that a max-margin solution is optimal, or that none exists, computed from the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from openset.theory._quadratic_program import FloatArray


@dataclass(frozen=True)
class Certificate:
    """How far (w, λ) is from the optimality conditions; all zero is exact. w = Zᵀλ holds by construction."""

    primal: float
    """Largest violation of Zw ≥ b, relative to the largest |b| (or 1)."""
    dual: float
    """Largest −λ_i, relative to the largest λ."""
    complementarity: float
    """Largest |λ_i (z_i·w − b_i)|, relative to ‖w‖²."""
    gap: float
    """|primal objective − dual objective|, relative to the primal objective."""

    @property
    def worst(self) -> float:
        """The largest of the four."""
        return max(self.primal, self.dual, self.complementarity, self.gap)


@dataclass(frozen=True)
class Infeasibility:
    """Weights λ ≥ 0 with bᵀλ = 1 and Zᵀλ ≈ 0: any w with Zw ≥ b has 1 ≤ λᵀZw ≤ ‖Zᵀλ‖·‖w‖."""

    multipliers: FloatArray
    residual: float
    """‖Zᵀλ‖ / Σ λ_i‖z_i‖, at most the tolerance."""
    norm_at_least: float
    """Any feasible w would have at least this norm (infinite where the residual is exactly zero)."""


def certify(rows: FloatArray, bound: FloatArray, multipliers: FloatArray) -> Certificate:
    """Measure how far w = rowsᵀ λ is from the optimality conditions."""
    w = multipliers @ rows
    slack = rows @ w - bound
    squared = float(w @ w)
    largest = float(np.abs(multipliers).max())
    return Certificate(
        primal=float(np.maximum(-slack, 0.0).max()) / max(1.0, float(np.abs(bound).max())),
        dual=_relative(float(np.maximum(-multipliers, 0.0).max()), largest),
        complementarity=_relative(float(np.abs(multipliers * slack).max()), squared),
        gap=_relative(abs(squared - float(bound @ multipliers)), 0.5 * squared),
    )


def _relative(error: float, size: float) -> float:
    """error / size; 0 where the error is 0, infinite where the size is too small to divide by."""
    if error == 0:
        return 0.0
    return error / size if size > 1e-150 else np.inf


def prove_infeasible(Z: FloatArray, b: FloatArray, ray: FloatArray, tolerance: float) -> Infeasibility | None:
    """Prove infeasibility from an approximate ray, refined on its own rows by least squares; None if it fails."""
    gain = float(b @ ray)
    if gain <= 0 or _residual(Z, ray) > 1e-3:
        return None
    if _residual(Z, ray) > tolerance:
        ray = _refined(Z, b, ray)
        gain = float(b @ ray)
    if gain <= 0 or _residual(Z, ray) > tolerance:
        return None
    ray = ray / gain
    pull = float(np.linalg.norm(ray @ Z))
    return Infeasibility(ray, _residual(Z, ray), 1 / pull if pull > 0 else np.inf)


def _refined(Z: FloatArray, b: FloatArray, ray: FloatArray) -> FloatArray:
    """Lawson and Hanson's reduction on the rows of a ray: is there λ ≥ 0 with Zᵀλ = 0 and bᵀλ = 1?"""
    length = np.linalg.norm(Z, axis=1)
    weight = ray * length
    rows = np.flatnonzero(weight > 1e-9 * weight.max())
    if len(rows) > 2000:
        return ray
    unit, bound = Z[rows] / length[rows, None], b[rows] / length[rows]
    try:
        x, _ = nnls(np.vstack([unit.T, bound]), np.append(np.zeros(Z.shape[1]), 1.0), maxiter=20 * len(rows))
    except RuntimeError:  # scipy raises it after too many iterations
        return ray
    refined = np.zeros(len(b))
    refined[rows] = x / length[rows]
    return refined


def _residual(Z: FloatArray, ray: FloatArray) -> float:
    weight = float(ray @ np.linalg.norm(Z, axis=1))
    return float(np.linalg.norm(ray @ Z)) / weight if weight > 0 else np.inf
