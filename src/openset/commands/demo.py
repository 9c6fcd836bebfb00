"""``openset demo``: a new digit in a shifted batch of scikit-learn's digits, in about a minute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from openset.stats.metrics import OpenSetMetrics

METHODS = ("source_only", "dd", "color")
MEMBERS = 3
"""Networks that a method trains together: on a few hundred rows the results of single networks vary widely."""
COLUMNS = {"auroc": "AUROC", "auprc": "AUPRC", "oscr": "OSCR", "top1": "top-1"}


def demo(
    seeds: Annotated[int, typer.Option(min=1, help="Number of splits to average over.")] = 3,
    steps: Annotated[int, typer.Option(min=50, help="Training steps; CoLOR takes 1500 at most.")] = 3000,
    out: Annotated[Path, typer.Option(help="File for the histogram of scores.")] = Path("openset-demo.png"),
) -> None:
    """A new digit in a shifted batch: CoLOR beside a discriminator.

    Three groups of scikit-learn's digits are known, with other shares in target than in source. Digit 9 is new.

    Example: openset demo --seeds 1
    """
    from rich.console import Console

    from openset.errors import MissingExtraError

    runs = fit_all(seeds, steps)
    _print_table(runs, seeds)
    try:
        _draw(runs[: len(METHODS)], out)
    except MissingExtraError as error:
        Console().print(f"No picture: {error}", markup=False)
    else:
        Console().print(f"Histograms of the scores of test rows: [bold]{out}[/bold]")


@dataclass(frozen=True)
class DemoRun:
    """One method on one split, with its scores of the test rows."""

    method: str
    seed: int
    metrics: OpenSetMetrics
    estimated: float
    true: float
    score: NDArray[np.float64]
    is_novel: NDArray[np.bool_]
    threshold: float


def fit_all(seeds: int, steps: int) -> list[DemoRun]:
    """Fit the three methods on every split, in parallel; ordered by split and method."""
    import os

    from joblib import Parallel, delayed, parallel_config

    from openset._utils.progress import progress_bar

    # the slowest first, so that workers finish together; one thread each, because more threads slow down small
    # matrix products
    jobs = [(method, seed) for method in reversed(METHODS) for seed in range(seeds)]
    workers = min(os.cpu_count() or 1, len(jobs))
    runs: list[DemoRun] = []
    with (
        progress_bar("fitting") as update,
        parallel_config(backend="loky", inner_max_num_threads=1, n_jobs=workers),
    ):
        update(0, len(jobs), "")
        for run in Parallel(return_as="generator_unordered")(delayed(fit_one)(*job, steps) for job in jobs):
            runs.append(run)
            update(len(runs), len(jobs), f"{run.method}, split {run.seed + 1}")
    return sorted(runs, key=lambda run: (run.seed, METHODS.index(run.method)))


def fit_one(method: str, seed: int, steps: int) -> DemoRun:
    """Fit one method on one split and score its test rows."""
    import warnings

    from openset.errors import FitWarning
    from openset.methods.color import CoLOR
    from openset.registry import get_method
    from openset.shift.digits import digits_problem
    from openset.stats.metrics import evaluate

    problem = digits_problem(seed)
    own = {"max_steps": min(steps, CoLOR().max_steps or steps)}  # CoLOR's default is an ensemble already
    given = own if method == "color" else {"members": MEMBERS, "max_steps": steps}
    model = get_method(method).make(**given, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # a few hundred rows cannot guarantee an FPR of 1 %
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


def _print_table(runs: list[DemoRun], seeds: int) -> None:
    from rich.console import Console
    from rich.table import Table

    splits = f"{seeds} splits" if seeds > 1 else "1 split"
    table = Table(title=f"A new digit under background shift (test rows, {splits})", title_justify="left")
    table.add_column("method")
    for heading in (*COLUMNS.values(), "novel"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in METHODS:
        of_method = [run for run in runs if run.method == name]
        cells = [_mean_sd([getattr(run.metrics, metric) for run in of_method]) for metric in COLUMNS]
        style = "bold" if name == "color" else ""
        table.add_row(name, *cells, _mean_sd([run.estimated for run in of_method]), style=style)
    table.add_section()
    table.add_row(
        "true", *[""] * len(COLUMNS), _mean_sd([run.true for run in runs[:: len(METHODS)]]), style="dim"
    )
    console = Console()
    console.print(table)
    console.print(
        f"Means ± sd over splits. CoLOR with its defaults, the others as {MEMBERS} networks each; "
        "novel = estimated novel fraction.",
        style="dim",
    )


def _mean_sd(values: list[float]) -> str:
    import numpy as np

    return f"{np.mean(values):.2f} ±{np.std(values):.2f}"


def _draw(runs: list[DemoRun], out: Path) -> None:
    """Draw the histograms of the scores, one panel per method."""
    import numpy as np

    from openset._utils.extras import require
    from openset.registry import get_method
    from openset.shift.digits import NOVEL_DIGIT

    figure = require("matplotlib.figure", "the histogram", "plot").Figure(figsize=(12, 3.9), layout="constrained")
    for axis, run in zip(figure.subplots(1, len(runs)), runs, strict=True):
        bins = np.histogram_bin_edges(run.score, bins=30)
        axis.hist(run.score[~run.is_novel], bins, color="#4c78a8", alpha=0.75, label="known digits")
        axis.hist(run.score[run.is_novel], bins, color="#e4572e", alpha=0.85, label=f"digit {NOVEL_DIGIT} (new)")
        if np.isfinite(run.threshold):
            axis.axvline(run.threshold, color="black", linestyle="--", linewidth=1, label="threshold")
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(bottom=0)
        axis.set_title(get_method(run.method).class_name)
        axis.set_xlabel("novelty score (higher = more novel)")
        axis.set_ylabel("test rows")
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle("Novelty scores of test rows, first split")
    figure.savefig(out, dpi=130)
