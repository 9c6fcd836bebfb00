"""Both max-margin rules in closed form, in the limit of many more features than rows.

For d ≫ N the noise vectors of different rows are orthogonal to each other and to the means, and all have
the squared length ν = σ²(d − 1). The Gram matrix then depends only on the groups of its two rows (source,
known, novel). The solution is unique, so by symmetry the multipliers are equal within each group: there are
three unknowns λ = (λ_S, λ_0, λ_1).

With A = N_S·λ_S + N_T0·λ_0, B = N_T1·λ_1 and ρ = ⟨μ, s·η⟩ the weights are w = −A·μ + B·s·η + noise, and

    source margin   A·r_μ² − B·ρ + ν·λ_S ≥ m      (m = 1 for the discriminator, 0 for the constrained rule)
    known margin    A·r_μ² − B·ρ + ν·λ_0 ≥ 1
    novel margin    B·r_η² − A·ρ + ν·λ_1 ≥ 1

each with equality where its λ is positive. At θ = π/2 (ρ = 0) the groups separate:

    discriminator     λ_S = λ_0 = 1 / (ν + (N_S + N_T0)·r_μ²),   λ_1 = 1 / (ν + N_T1·r_η²)
    constrained rule  λ_S = 0,  λ_0 = 1 / (ν + N_T0·r_μ²),       λ_1 = 1 / (ν + N_T1·r_η²)

and the score gap between the novel and the known mean is ν·(λ_0 − λ_1).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from openset._utils.params import check_choice
from openset.theory._quadratic_program import FloatArray
from openset.theory.problem import RULES, LinearGaussianProblem, Rule


@dataclass(frozen=True)
class GroupLimit:
    """The group-symmetric solution of one rule."""

    source: float
    """λ_S, the multiplier of each source row."""
    known: float
    """λ_0, of each known target row."""
    novel: float
    """λ_1, of each novel target row."""
    norm: float
    """‖w‖."""
    gap: float
    """⟨w, m_novel − m_known⟩: positive where novel rows rank above shifted known rows."""
    auroc: float


def group_limit(problem: LinearGaussianProblem, rule: Rule) -> GroupLimit:
    """Solve the dual in three variables exactly, by trying its eight possible supports.

    >>> problem = LinearGaussianProblem(d=10_000, r_mu=1, r_eta=3, alpha=0.2, n_source=80, n_target=20)
    >>> group_limit(problem, "dd").auroc < 0.5 < group_limit(problem, "color").auroc
    True
    """
    check_choice("rule", rule, RULES)
    counts = np.array([problem.n_source, problem.n_known, problem.n_novel], dtype=np.float64)
    # means of the signed rows −(μ + ξ), −μ + ξ and s·η + ξ, in the plane of μ and η, since d may be huge
    known, novel = np.array([-problem.r_mu, 0.0]), problem.novel_sign * problem.r_eta * problem.eta_plane
    means = np.stack([known, known, novel])
    products = means @ means.T
    noise = problem.sigma**2 * (problem.d - 1)
    margins = np.array([1.0 if rule == "dd" else 0.0, 1.0, 1.0])
    multipliers = _nonnegative_solution(products * counts + noise * np.eye(3), margins)
    weights = (counts * multipliers) @ means
    squared = float(margins @ (counts * multipliers))  # strong duality
    auroc, gap = problem.auroc_in_plane(weights, squared)
    return GroupLimit(
        source=float(multipliers[0]),
        known=float(multipliers[1]),
        novel=float(multipliers[2]),
        norm=float(np.sqrt(squared)),
        gap=gap,
        auroc=auroc,
    )


def _nonnegative_solution(matrix: FloatArray, margins: FloatArray) -> FloatArray:
    """λ ≥ 0 with matrix @ λ ≥ margins, equal where λ > 0; unique, since noise > 0 makes it a P-matrix."""
    best, least = np.zeros(3), np.inf
    for support in itertools.product([False, True], repeat=3):
        index = np.flatnonzero(support)
        candidate = np.zeros(3)
        if len(index):
            candidate[index] = np.linalg.solve(matrix[np.ix_(index, index)], margins[index])
        violation = max(float((-candidate).max()), float((margins - matrix @ candidate).max()))
        if violation < least:
            best, least = candidate, violation
    return np.maximum(best, 0.0)


@dataclass(frozen=True)
class Window:
    """The three numbers whose order decides which rule is right at θ = π/2 in the limit d ≫ N."""

    known: float
    """N_T0·r_μ²: the constrained rule is right where ``novel`` exceeds it."""
    novel: float
    """N_T1·r_η²."""
    background: float
    """(N_S + N_T0)·r_μ²: the discriminator is right where ``novel`` exceeds it."""

    @property
    def color_right(self) -> bool:
        """Whether the constrained rule ranks novel above known."""
        return self.novel > self.known

    @property
    def dd_right(self) -> bool:
        """Whether the discriminator ranks novel above known."""
        return self.novel > self.background

    @property
    def inside(self) -> bool:
        """Whether the constrained rule is right and the discriminator wrong."""
        return self.color_right and not self.dd_right


def corrected_window(problem: LinearGaussianProblem) -> Window:
    """The window N_T0·r_μ² < N_T1·r_η² < (N_S + N_T0)·r_μ², in which only CoLOR is right.

    >>> corrected_window(LinearGaussianProblem(d=3000, r_mu=0.1, r_eta=0.5)).inside
    True
    """
    r_mu, r_eta = problem.r_mu**2, problem.r_eta**2
    return Window(
        known=problem.n_known * r_mu,
        novel=problem.n_novel * r_eta,
        background=(problem.n_source + problem.n_known) * r_mu,
    )
