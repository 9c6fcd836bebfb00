"""Problems that need no data folder: digits, Gaussian classes, and the paper's linear-Gaussian problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.params import check_choice
from openset.bench.problems.sources import (
    BenchProblem,
    ProblemSource,
    Setting,
    check_novel,
    problem_of,
    thinned,
)

PAPER_SIZES: dict[str, Any] = {
    "d": 3000,
    "r_mu": 0.1,
    "r_eta": 1.0,
    "alpha": 0.15,
    "n_source": 1600,
    "n_target": 400,
}
"""Sizes of the paper's synthetic tables; the paper does not state N_S and N_T, see docs/theory.md."""
N_TEST = 3000
SIZES = ("n_source", "n_target", "n_features")


def _digits(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float | None = None
) -> BenchProblem:
    """The digits of the demo."""
    from openset.shift.digits import NOVEL_DIGIT, digits_problem

    check_novel("digits", novel, str(NOVEL_DIGIT))
    data = digits_problem(seed, shift=setting == "shift")
    problem = problem_of(data.X, data.y, data.X_target, data.y_target, data.X_test, data.y_test, "novel")
    return problem if novel_fraction is None else thinned(problem, novel_fraction, seed)


def _synthetic(setting: Setting, novel: str, seed: int, data_dir: Path | None, **options: Any) -> BenchProblem:
    """Gaussian classes made of subtypes (:func:`openset.make_background_shift`)."""
    from openset.shift.synthetic import make_background_shift

    check_novel("synthetic", novel, "novel")
    data = make_background_shift(shift=setting == "shift", random_state=seed, **options)
    return problem_of(data.X, data.y, data.X_target, data.y_target, data.X_test, data.y_test, -1)


def _subtypes(setting: Setting, novel: str, seed: int, data_dir: Path | None, **options: Any) -> BenchProblem:
    """One known class of two subtypes; the test rows are the target of a second draw."""
    from openset.shift.synthetic import make_subtype_shift

    check_novel("synthetic-subtypes", novel, "novel")
    streams = np.random.SeedSequence(seed).spawn(2)
    data, test = (
        make_subtype_shift(shift=setting == "shift", random_state=stream, **options) for stream in streams
    )
    y = np.full(len(data.X), "known")
    y_target, y_test = (np.where(part.is_novel_target, "novel", "known") for part in (data, test))
    return problem_of(data.X, y, data.X_target, y_target, test.X_target, y_test, "novel")


def _gaussian(**options: Any) -> Any:
    from openset.theory.problem import LinearGaussianProblem

    return LinearGaussianProblem(**{**PAPER_SIZES, **options})


def _linear_gaussian(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, n_test: int = N_TEST, **options: Any
) -> BenchProblem:
    """One draw of the paper's synthetic problem, and fresh test rows."""
    check_novel("linear-gaussian", novel, "novel")
    if setting != "shift":
        raise ValueError("linear-gaussian always has a shift: set a smaller r_mu for less of it.")
    gaussian = _gaussian(**options)
    sample, (X_test, is_novel) = gaussian.sample(seed), gaussian.sample_test(n_test, seed)
    y_target, y_test = (np.where(truth, "novel", "known") for truth in (sample.is_novel, is_novel))
    y = np.full(len(sample.source), "known")
    return problem_of(sample.source, y, sample.target, y_target, X_test, y_test, "novel")


def _solve_rule(method: str, problem: BenchProblem, *, n_test: int = N_TEST, **options: Any) -> dict[str, float]:
    """The max-margin weights of a rule: their exact AUROC, and AUPRC on the test rows. Nothing is trained."""
    from openset.stats.metrics import auprc, auroc
    from openset.theory.margin import SOLVERS

    check_choice("method", method, SOLVERS)
    solution = SOLVERS[method](problem.X, problem.X_target)
    if solution.certificate is None:
        raise ValueError("no weights satisfy all margins: the problem has too many rows for its features.")
    is_novel, score = problem.y_test == problem.novel_label, problem.X_test @ solution.weights
    return {
        "auroc": _gaussian(**options).auroc(solution.weights),
        "auroc_test": auroc(is_novel, score),
        "auprc": auprc(is_novel, score),
        "certificate": solution.certificate.worst,
    }


SOURCES = (
    ProblemSource("digits", _digits, "scikit-learn's digits in three groups; 9 is new", novel=("9",)),
    ProblemSource(
        "synthetic",
        _synthetic,
        "Gaussian classes of subtypes",
        novel=("novel",),
        passes_on=(
            *(*SIZES, "n_test", "n_classes", "n_subtypes", "novel_fraction"),
            *("rare", "class_distance", "subtype_distance", "novel_distance", "resembles"),
        ),
    ),
    ProblemSource(
        "synthetic-subtypes",
        _subtypes,
        "one Gaussian class of two subtypes (PU)",
        novel=("novel",),
        passes_on=(*SIZES, "novel_fraction", "share", "subtype_distance", "novel_distance"),
    ),
    ProblemSource(
        "linear-gaussian",
        _linear_gaussian,
        "the paper's synthetic problem, dd and color solved exactly",
        novel=("novel",),
        passes_on=(*PAPER_SIZES, "theta", "novel_sign"),
        solve=_solve_rule,
        no_oracle="it need not be measured. Known rows have no noise along the novel mean, so whoever knows the "
        "distributions tells every new row: AUROC and AUPRC are 1 at every length and angle.",
    ),
)
