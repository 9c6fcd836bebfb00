"""The paper's synthetic problem, on which both rules are solved exactly: nothing is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.params import check_choice
from openset.bench.problems import (
    BenchProblem,
    ProblemSource,
    Setting,
    check_novel,
    problem_of,
    register_source,
)

PAPER_SIZES: dict[str, Any] = {
    "d": 3000,
    "r_mu": 0.1,
    "r_eta": 1.0,
    "alpha": 0.15,
    "n_source": 1600,
    "n_target": 400,
}
"""Sizes of the synthetic tables, so far as the paper states them; for N_S and N_T see docs/theory.md."""
N_TEST = 3000


def _gaussian(**options: Any) -> Any:
    from openset.theory.problem import LinearGaussianProblem

    return LinearGaussianProblem(**{**PAPER_SIZES, **options})


def _linear_gaussian(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, n_test: int = N_TEST, **options: Any
) -> BenchProblem:
    """One draw: source, target and fresh test rows."""
    check_novel("linear-gaussian", novel, "novel")
    if setting != "shift":
        raise ValueError("linear-gaussian is a problem with shift: set r_mu for less of it.")
    gaussian = _gaussian(**options)
    sample, (X_test, is_novel) = gaussian.sample(seed), gaussian.sample_test(n_test, seed)
    y_target, y_test = (np.where(truth, "novel", "known") for truth in (sample.is_novel, is_novel))
    y = np.full(len(sample.source), "known")
    return problem_of(sample.source, y, sample.target, y_target, X_test, y_test, "novel")


def _solve(method: str, problem: BenchProblem, *, n_test: int = N_TEST, **options: Any) -> dict[str, float]:
    """The max-margin weights of a rule: their exact AUROC, and AUPRC on the test rows."""
    from openset.stats.metrics import auprc, auroc
    from openset.theory.margin import SOLVERS

    check_choice("method", method, SOLVERS)
    solution = SOLVERS[method](problem.X, problem.X_target)
    if solution.certificate is None:
        raise ValueError("no weights keep all the margins: the problem has too many rows for its features.")
    is_novel, score = problem.y_test == problem.novel_label, problem.X_test @ solution.weights
    return {
        "auroc": _gaussian(**options).auroc(solution.weights),
        "auroc_test": auroc(is_novel, score),
        "auprc": auprc(is_novel, score),
        "certificate": solution.certificate.worst,
    }


register_source(
    ProblemSource(
        "linear-gaussian",
        _linear_gaussian,
        "the paper's synthetic problem, dd and color solved exactly",
        novel=("novel",),
        solve=_solve,
    )
)
