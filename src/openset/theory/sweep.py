"""The paper's synthetic experiment: both rules over values of one parameter, or over a map of two, and seeds.

For a given seed only two columns of the rows depend on r_μ, r_η, θ or α (see `problem.plane_rows`). The Gram
matrix of the other columns is computed once per seed, and every point of a sweep adds a product of rank two.
Each point starts from the support of the point before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Literal, TypeVar

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from openset._utils.params import check_choice, check_integer
from openset.stats.metrics import auprc, auroc
from openset.theory._quadratic_program import BoolArray, FloatArray
from openset.theory.margin import SOLVERS, MaxMargin
from openset.theory.problem import RULES, LinearGaussianProblem, Rule

Parameter = Literal["r_eta", "theta", "r_mu", "alpha"]
Update = Callable[[int, int, str], None]
T = TypeVar("T")

PAPER_R_ETA = {
    # r_η: (DD AUROC, DD AUPRC, CoLOR AUROC, CoLOR AUPRC) as printed; about the AUPRC see docs/theory.md
    1.0: (0.51, 0.12, 0.94, 0.65),
    0.9: (0.50, 0.12, 0.93, 0.62),
    0.8: (0.49, 0.13, 0.92, 0.58),
    0.7: (0.46, 0.13, 0.91, 0.53),
    0.6: (0.43, 0.14, 0.89, 0.47),
    0.5: (0.44, 0.14, 0.86, 0.39),
    0.4: (0.34, 0.17, 0.81, 0.31),
    0.3: (0.21, 0.27, 0.70, 0.21),
    0.2: (0.11, 0.46, 0.46, 0.12),
    0.1: (0.01, 0.96, 0.09, 0.07),
}
PAPER_THETA = {
    math.pi / 2: (0.51, 0.12, 0.94, 0.65),
    math.pi / 4: (0.41, 0.15, 0.88, 0.46),
    math.pi / 8: (0.27, 0.22, 0.69, 0.21),
    math.pi / 16: (0.03, 0.84, 0.29, 0.09),
    math.pi / 32: (0.00, 0.99, 0.06, 0.07),
}


@dataclass(frozen=True)
class Outcome:
    """The result of one rule on one draw of one problem."""

    parameter: str
    value: float
    seed: int
    rule: Rule
    auroc: float
    """Exact, from the closed form."""
    auroc_test: float
    """On test rows."""
    auprc_test: float
    certificate: float
    """The worst entry of the solver's certificate."""

    def to_dict(self) -> dict[str, float | int | str]:
        """As a plain dictionary, one row of a table."""
        return asdict(self)


class SharedDraw:
    """One seed's noise and its Gram matrix, shared by all problems of the same sizes.

    Without test rows the noise is replaced by the Cholesky factor of its Gram matrix, which has the same inner
    products in only as many coordinates as there are rows. ‖w‖ and the two coordinates that the AUROC needs do
    not change.
    """

    def __init__(self, problem: LinearGaussianProblem, seed: int, n_test: int | None = None) -> None:
        self.n_source = problem.n_source
        self.rows = problem.noise(seed)
        self.raw = self.rows[:, :2].copy()
        self.gram = self.rows[:, 2:] @ self.rows[:, 2:].T
        self.n_test = n_test
        if n_test is None and problem.d - 2 > problem.n_total:
            self.rows = np.hstack([self.raw, np.linalg.cholesky(self.gram)])
        elif n_test is not None:
            self.test_rows = problem.test_noise(n_test, seed)
            self.test_raw = self.test_rows[:, :2].copy()

    def solve(self, problem: LinearGaussianProblem, rule: Rule, start: BoolArray | None = None) -> MaxMargin:
        """Solve one rule on this noise with the means of ``problem``."""
        plane = problem.plane_rows(self.raw, problem.n_source, problem.n_known)
        self.rows[:, :2] = plane
        source, target = self.rows[: self.n_source], self.rows[self.n_source :]
        return SOLVERS[rule](source, target, gram=self.gram + plane @ plane.T, start=start)

    def test(self, problem: LinearGaussianProblem, weights: FloatArray) -> tuple[float, float]:
        """AUROC and AUPRC on the test rows of this draw."""
        if self.n_test is None:
            raise ValueError("this draw has no test rows: create it with n_test.")
        n_known = self.n_test - problem.novel_rows(self.n_test)
        self.test_rows[:, :2] = problem.plane_rows(self.test_raw, 0, n_known)
        is_novel, score = np.arange(self.n_test) >= n_known, self.test_rows @ weights
        return auroc(is_novel, score), auprc(is_novel, score)


def sweep(
    problem: LinearGaussianProblem,
    parameter: Parameter,
    values: Sequence[float],
    *,
    seeds: Sequence[int] = range(5),
    n_test: int = 3000,
    workers: int | None = None,
    update: Update | None = None,
) -> list[Outcome]:
    """Solve both rules at every value of one parameter, for every seed; ``workers`` threads (default: cores).

    >>> base = LinearGaussianProblem(d=400, r_mu=0.3, r_eta=1, alpha=0.2, n_source=40, n_target=20)
    >>> outcomes = sweep(base, "r_eta", [0.5, 1.5], seeds=[0], n_test=100)
    >>> [(o.value, o.rule) for o in outcomes]
    [(0.5, 'dd'), (0.5, 'color'), (1.5, 'dd'), (1.5, 'color')]
    """
    check_choice("parameter", parameter, ("r_eta", "theta", "r_mu", "alpha"))
    if not len(values) or not len(seeds):
        raise ValueError(f"got {len(values)} values and {len(seeds)} seeds: expected at least one of each.")
    report = _Counter(len(seeds) * len(values), update)

    def of_seed(seed: int) -> list[Outcome]:
        outcomes: list[Outcome] = []
        draw = SharedDraw(problem, seed, n_test)
        supports: dict[Rule, BoolArray | None] = dict.fromkeys(RULES)
        for value in values:
            current = problem.with_(**{parameter: value})
            for rule in RULES:
                solution = draw.solve(current, rule, supports[rule])
                outcomes.append(_outcome(draw, current, parameter, value, seed, rule, solution))
                supports[rule] = solution.support if solution.feasible else None
            report(f"{parameter} = {value:.3g}, seed {seed}")
        return outcomes

    return [outcome for part in _over_seeds(of_seed, seeds, workers) for outcome in part]


class _Counter:
    """Counts the finished points of several threads and reports the count."""

    def __init__(self, total: int, update: Update | None) -> None:
        self.done, self.total, self.update, self.lock = 0, total, update, Lock()

    def __call__(self, note: str) -> None:
        with self.lock:
            self.done += 1
            if self.update is not None:
                self.update(self.done, self.total, note)


def _over_seeds(work: Callable[[int], T], seeds: Sequence[int], workers: int | None) -> list[T]:
    """One thread per seed with one BLAS thread each: faster here than several BLAS threads per product."""
    check_integer("workers", workers, optional=True)
    n_workers = min(len(seeds), workers or joblib.cpu_count())
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_workers) as pool:
        return list(pool.map(work, seeds))


def _outcome(
    draw: SharedDraw,
    problem: LinearGaussianProblem,
    parameter: str,
    value: float,
    seed: int,
    rule: Rule,
    solution: MaxMargin,
) -> Outcome:
    if solution.certificate is None:
        return Outcome(parameter, value, seed, rule, math.nan, math.nan, math.nan, math.nan)
    tested = draw.test(problem, solution.weights)
    exact = problem.auroc(solution.weights)
    return Outcome(parameter, value, seed, rule, exact, *tested, solution.certificate.worst)


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation over seeds of one rule at one value."""

    value: float
    rule: Rule
    auroc: float
    auroc_sd: float
    auprc: float
    auprc_sd: float


def summarise(outcomes: Sequence[Outcome]) -> list[Summary]:
    """Mean and sd over seeds, with values in their first order."""
    keys = list(dict.fromkeys((o.value, o.rule) for o in outcomes))
    return [_summary(v, r, [o for o in outcomes if (o.value, o.rule) == (v, r)]) for v, r in keys]


def _summary(value: float, rule: Rule, outcomes: Sequence[Outcome]) -> Summary:
    exact = np.array([o.auroc for o in outcomes])
    precision = np.array([o.auprc_test for o in outcomes])
    ddof = 1 if len(outcomes) > 1 else 0
    return Summary(
        value,
        rule,
        float(exact.mean()),
        float(exact.std(ddof=ddof)),
        float(precision.mean()),
        float(precision.std(ddof=ddof)),
    )


@dataclass(frozen=True)
class RuleMap:
    """Mean exact AUROC of both rules on a grid of r_μ and one other parameter."""

    problem: LinearGaussianProblem
    parameter: Parameter
    r_mu: FloatArray
    values: FloatArray
    auroc: dict[Rule, FloatArray]
    """One row per value of the parameter, one column per value of r_μ."""


def rule_map(
    problem: LinearGaussianProblem,
    parameter: Literal["r_eta", "alpha"],
    r_mu: Sequence[float],
    values: Sequence[float],
    *,
    seeds: Sequence[int] = range(2),
    workers: int | None = None,
    update: Update | None = None,
) -> RuleMap:
    """Mean exact AUROC of both rules over (r_μ, r_η) or (r_μ, α)."""
    check_choice("parameter", parameter, ("r_eta", "alpha"))
    check_integer("number of seeds", len(seeds))
    report = _Counter(len(seeds) * len(values), update)

    def of_seed(seed: int) -> dict[Rule, FloatArray]:
        found: dict[Rule, FloatArray] = {rule: np.zeros((len(values), len(r_mu))) for rule in RULES}
        draw = SharedDraw(problem, seed)
        supports: dict[Rule, BoolArray | None] = dict.fromkeys(RULES)
        for i, value in enumerate(values):
            for j, length in enumerate(r_mu):
                current = problem.with_(**{parameter: value, "r_mu": length})
                for rule in RULES:
                    solution = draw.solve(current, rule, supports[rule])
                    w = solution.weights
                    found[rule][i, j], _ = current.auroc_in_plane(w[:2], float(w @ w))
                    supports[rule] = solution.support if solution.feasible else None
            report(f"{parameter} = {value:.3g}, seed {seed}")
        return found

    parts = _over_seeds(of_seed, seeds, workers)
    means: dict[Rule, FloatArray] = {rule: np.mean([part[rule] for part in parts], axis=0) for rule in RULES}
    return RuleMap(problem, parameter, np.asarray(r_mu, float), np.asarray(values, float), means)
