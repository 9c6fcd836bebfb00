"""The demo: scikit-learn's digits as a real background-shift problem, in under a minute."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from numpy.typing import NDArray

from openset._utils.progress import progress_bar
from openset.errors import FitWarning, MissingExtraError
from openset.methods.color import CoLOR
from openset.registry import get_method
from openset.shift.digits import NOVEL_DIGIT, digits_problem
from openset.stats.metrics import OpenSetMetrics, evaluate

METHODS = ("source_only", "dd", "color")
MEMBERS = 3
"""Networks a method trains together: single ones scatter widely on a few hundred rows, of all methods alike."""


@dataclass(frozen=True)
class DemoRun:
    """One method on one split, with its scores of the held-out rows."""

    method: str
    seed: int
    metrics: OpenSetMetrics
    estimated: float
    true: float
    score: NDArray[np.float64]
    is_novel: NDArray[np.bool_]
    threshold: float


def fit_one(method: str, seed: int, steps: int) -> DemoRun:
    """Fit one method on one split and score its held-out rows."""
    problem = digits_problem(seed)
    own = {"max_steps": min(steps, CoLOR().max_steps or steps)}  # CoLOR's default, which is an ensemble
    given = own if method == "color" else {"members": MEMBERS, "max_steps": steps}
    model = get_method(method).make(**given, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # a few hundred rows cannot promise an FPR of 1 %
        model.fit(problem.X, problem.y, problem.X_target)
    return DemoRun(
        method,
        seed,
        evaluate(model, problem.X_test, problem.y_test),
        model.novel_fraction_.value,
        problem.novel_fraction,
        model.novelty_score(problem.X_test),
        problem.y_test == "novel",
        model.threshold_,
    )


def run_demo(*, seeds: int, steps: int, out: Path) -> list[DemoRun]:
    """Fit the three methods on several splits, print a table and draw the scores of the first split."""
    # the longest first, so that the workers finish together; one thread each, since such small products gain
    # nothing from more and threads that wait for each other lose much
    jobs = [(method, seed) for method in reversed(METHODS) for seed in range(seeds)]
    runs: list[DemoRun] = []
    with (
        progress_bar("fitting") as update,
        parallel_config(backend="loky", inner_max_num_threads=1, n_jobs=min(os.cpu_count() or 1, len(jobs))),
    ):
        update(0, len(jobs), "")
        for run in Parallel(return_as="generator_unordered")(
            delayed(fit_one)(method, seed, steps) for method, seed in jobs
        ):
            runs.append(run)
            update(len(runs), len(jobs), f"{run.method}, split {run.seed + 1}")
    runs.sort(key=lambda run: (run.seed, METHODS.index(run.method)))
    _print_table(runs, seeds)
    try:
        _draw(runs[: len(METHODS)], out)
    except MissingExtraError as error:
        _console().print(f"No picture: {error}", markup=False)
    else:
        _console().print(f"Histograms of the scores on held-out rows: [bold]{out}[/bold]")
    return runs


def _console() -> Any:
    from rich.console import Console

    return Console()


def _print_table(runs: list[DemoRun], seeds: int) -> None:
    from rich.table import Table

    splits = f"{seeds} splits" if seeds > 1 else "1 split"
    table = Table(
        title=f"A new digit under background shift (held-out target rows, {splits})",
        title_justify="left",
    )
    table.add_column("method")
    for heading in ("AUROC", "AUPRC", "OSCR", "top-1", "novel"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in METHODS:
        of_method = [run for run in runs if run.method == name]
        cells = [
            _mean_sd([getattr(run.metrics, key) for run in of_method])
            for key in ("auroc", "auprc", "oscr", "top1")
        ]
        style = "bold" if name == "color" else ""
        table.add_row(name, *cells, _mean_sd([run.estimated for run in of_method]), style=style)
    true = _mean_sd([run.true for run in runs[:: len(METHODS)]])
    table.add_section()
    table.add_row("true", "", "", "", "", true, style="dim")
    _console().print(table)
    _console().print(
        f"Means ± sd over splits. CoLOR with its defaults, the others as {MEMBERS} networks each; "
        "novel = estimated novel fraction.",
        style="dim",
    )


def _mean_sd(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ±{np.std(values):.2f}"


def _draw(runs: list[DemoRun], out: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("the histogram", "plot") from None
    figure = Figure(figsize=(12, 3.9), layout="constrained")
    for axis, run in zip(figure.subplots(1, len(runs)), runs, strict=True):
        score, novel, threshold = run.score, run.is_novel, run.threshold
        bins = np.histogram_bin_edges(score, bins=30)
        axis.hist(score[~novel], bins, color="#4c78a8", alpha=0.75, label="known digits")
        axis.hist(score[novel], bins, color="#e4572e", alpha=0.85, label=f"digit {NOVEL_DIGIT} (new)")
        if np.isfinite(threshold):
            axis.axvline(threshold, color="black", linestyle="--", linewidth=1, label="threshold")
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(bottom=0)
        axis.set_title(get_method(run.method).class_name)
        axis.set_xlabel("novelty score (higher = more novel)")
        axis.set_ylabel("held-out target rows")
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle("Novelty scores of held-out target rows, first split")
    figure.savefig(out, dpi=130)
