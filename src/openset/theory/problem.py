"""The linear-Gaussian problem of the paper (its Definition 2) and the exact AUROC of a linear score on it.

Scores are written so that *higher means more novel*: source rows should score −1 or below, target rows +1 or
above. The noise is isotropic, so the two informative directions can lie in the first two coordinates without
loss of generality: μ = r_μ·e₁ and η = r_η·(cos θ·e₁ + sin θ·e₂).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from openset._utils.params import check_integer, check_number
from openset.theory._quadratic_program import BoolArray, FloatArray

Rule = Literal["dd", "color"]
"""The domain discriminator, and the constrained rule."""
RULES: tuple[Rule, ...] = ("dd", "color")


@dataclass(frozen=True)
class Sample:
    """One draw: source rows, and target rows with the known ones first."""

    source: FloatArray
    target: FloatArray
    is_novel: BoolArray
    """Which target rows are of the new class; a method must not see it."""


@dataclass(frozen=True)
class LinearGaussianProblem:
    """Source N(μ, Σ_η), target-known N(−μ, Σ_η), target-novel N(s·η, Σ_μ); Σ_v = σ²(I − v̂v̂ᵀ), σ = 1/√d.

    Parameters
    ----------
    d : int
        Number of features, at least 2.
    r_mu, r_eta : float
        Lengths of μ (half the background shift) and of η (the novel mean).
    theta : float
        Angle between μ and η, in (0, π).
    alpha : float
        Share of novel rows in target; rounded so that there is at least one row of each kind.
    n_source, n_target : int
        Numbers of rows, N_S and N_T.
    novel_sign : int
        s. The paper's definition prints −η, but its θ table needs +η (see docs/theory.md).

    >>> problem = LinearGaussianProblem(d=3000, r_mu=0.1, r_eta=1.0, alpha=0.15, n_source=1600, n_target=400)
    >>> problem.n_known, problem.n_novel, round(problem.sigma, 4)
    (340, 60, 0.0183)
    """

    d: int
    r_mu: float
    r_eta: float
    theta: float = math.pi / 2
    alpha: float = 0.15
    n_source: int = 1600
    n_target: int = 400
    novel_sign: int = 1

    def __post_init__(self) -> None:
        check_integer("d", self.d, low=2)
        check_number("r_mu", self.r_mu, open_low=True)
        check_number("r_eta", self.r_eta, open_low=True)
        check_number("theta", self.theta, high=math.pi, open_low=True, open_high=True)
        check_number("alpha", self.alpha, high=1.0, open_low=True, open_high=True)
        check_integer("n_source", self.n_source)
        check_integer("n_target", self.n_target, low=2)
        if self.novel_sign not in (1, -1):
            raise ValueError(f"novel_sign={self.novel_sign!r} is not valid: expected 1 or -1.")

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise in each direction."""
        return 1.0 / math.sqrt(self.d)

    @property
    def n_novel(self) -> int:
        """Target rows of the new class (N_T1)."""
        return self.novel_rows(self.n_target)

    def novel_rows(self, n: int) -> int:
        """The number of novel rows among ``n`` target rows: αn, rounded, with at least one row of each kind."""
        return min(max(round(self.alpha * n), 1), n - 1)

    @property
    def n_known(self) -> int:
        """Target rows of the known class (N_T0)."""
        return self.n_target - self.n_novel

    @property
    def n_total(self) -> int:
        """All training rows (N)."""
        return self.n_source + self.n_target

    @property
    def eta_plane(self) -> FloatArray:
        """The two coordinates of the unit vector along η; that along μ is (1, 0)."""
        # cos(π/2) is 6e-17 in floating point, but the paper's right angle is exact
        right = self.theta == math.pi / 2
        return np.array([0.0, 1.0] if right else [math.cos(self.theta), math.sin(self.theta)])

    @property
    def mean_source(self) -> FloatArray:
        """The source mean μ."""
        return self._embed(np.array([self.r_mu, 0.0]))

    @property
    def mean_known(self) -> FloatArray:
        """The mean −μ of known target rows."""
        return -self.mean_source

    @property
    def mean_novel(self) -> FloatArray:
        """The mean s·η of novel rows."""
        return self._embed(self.novel_sign * self.r_eta * self.eta_plane)

    def _embed(self, plane: FloatArray) -> FloatArray:
        vector = np.zeros(self.d)
        vector[:2] = plane
        return vector

    def with_(self, **changes: Any) -> LinearGaussianProblem:
        """A copy with other values of some parameters."""
        return replace(self, **changes)

    def noise(self, random_state: int) -> FloatArray:
        """Raw noise σ·g of the training rows: the same for all problems of equal sizes, for any r and θ."""
        rng = np.random.default_rng(random_state)
        return self.sigma * rng.standard_normal((self.n_total, self.d))

    def plane_rows(self, noise: FloatArray, n_source: int, n_known: int) -> FloatArray:
        """The first two coordinates of rows made from raw noise; the other coordinates *are* the noise.

        Rows are ordered source, known, novel. A sweep over r_mu, r_eta or theta changes these two columns only.
        """
        plane = noise[:, :2].copy()
        known_end = n_source + n_known
        along = self.eta_plane
        plane[:known_end] -= np.outer(plane[:known_end] @ along, along)
        plane[known_end:, 0] = 0.0
        plane[:n_source, 0] += self.r_mu
        plane[n_source:known_end, 0] -= self.r_mu
        plane[known_end:] += self.novel_sign * self.r_eta * along
        return plane

    def sample(self, random_state: int) -> Sample:
        """Draw training rows.

        >>> draw = LinearGaussianProblem(d=50, r_mu=1, r_eta=1, alpha=0.25, n_source=6, n_target=4).sample(0)
        >>> draw.source.shape, draw.target.shape, draw.is_novel.tolist()
        ((6, 50), (4, 50), [False, False, False, True])
        """
        rows = self.noise(random_state)
        rows[:, :2] = self.plane_rows(rows, self.n_source, self.n_known)
        is_novel = np.arange(self.n_target) >= self.n_known
        return Sample(rows[: self.n_source], rows[self.n_source :], is_novel)

    def sample_test(self, n: int, random_state: int) -> tuple[FloatArray, BoolArray]:
        """Draw ``n`` fresh target rows, known ones first; return them and which are novel."""
        rows = self.test_noise(n, random_state)
        n_known = n - self.novel_rows(n)
        rows[:, :2] = self.plane_rows(rows, 0, n_known)
        return rows, np.arange(n) >= n_known

    def test_noise(self, n: int, random_state: int) -> FloatArray:
        """Raw noise of ``n`` test rows, from another random stream than that of the training rows."""
        check_integer("n", n, low=2)
        return self.sigma * np.random.default_rng([random_state, 1]).standard_normal((n, self.d))

    def auroc(self, weights: ArrayLike) -> float:
        """The exact AUROC of the score ⟨w, x⟩: Φ(⟨w, m_novel − m_known⟩ / (σ√(2‖w‖² − ⟨w,η̂⟩² − ⟨w,μ̂⟩²))).

        A score without noise is constant on both groups; its AUROC is 0, ½ or 1.

        >>> import numpy as np
        >>> problem = LinearGaussianProblem(d=4, r_mu=1.0, r_eta=1.0)
        >>> problem.auroc(np.zeros(4)), problem.auroc([1.0, 1.0, 0.0, 0.0]) > 0.99
        (0.5, True)
        """
        w = np.asarray(weights, dtype=np.float64)
        if w.shape != (self.d,):
            raise ValueError(f"weights has shape {w.shape}: expected one weight per feature, ({self.d},).")
        return self.auroc_in_plane(w[:2], float(w @ w))[0]

    def auroc_in_plane(self, plane: FloatArray, squared_norm: float) -> tuple[float, float]:
        """The AUROC and the gap ⟨w, m_novel − m_known⟩, from w's first two coordinates and ‖w‖² only."""
        along_eta = float(plane @ self.eta_plane)
        gap = self.novel_sign * self.r_eta * along_eta + self.r_mu * float(plane[0])
        spread = 2 * squared_norm - along_eta**2 - float(plane[0]) ** 2
        if spread <= 0:
            return 0.5 * (1.0 + float(np.sign(gap))), gap
        return float(ndtr(gap / (self.sigma * math.sqrt(spread)))), gap
