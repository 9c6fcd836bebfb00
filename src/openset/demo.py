"""The demo: scikit-learn's digits as a real background-shift problem, in under a minute."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.errors import MissingExtraError
from openset.progress import progress_bar
from openset.registry import get_method
from openset.stats.metrics import OpenSetMetrics, evaluate

GROUPS = ((0, 1, 2), (3, 4, 5), (6, 7, 8))
NOVEL_DIGIT = 9
NOVEL_FRACTION = 0.08
METHODS = ("source_only", "dd", "color")


@dataclass(frozen=True)
class DigitsProblem:
    """Source, target and held-out target rows; labels are groups of digits, the new digit is "novel"."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    X_target: NDArray[np.float64]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]
    novel_fraction: float


def digits_problem(seed: int, test_fraction: float = 0.3) -> DigitsProblem:
    """Split the digits: each known digit goes to source with a probability between .25 and .75 of its own.

    The rest of the known digits is target; enough nines join it to make up 8 %. Of the target rows a part is
    held out for testing, so that no row that is scored was fitted on.
    """
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    random = np.random.default_rng(seed)
    to_source = random.uniform(0.25, 0.75, size=10)
    known = np.flatnonzero(digit != NOVEL_DIGIT)
    in_source = random.random(len(known)) < to_source[digit[known]]
    source, known_target = known[in_source], known[~in_source]
    n_novel = round(len(known_target) * NOVEL_FRACTION / (1 - NOVEL_FRACTION))
    novel = random.permutation(np.flatnonzero(digit == NOVEL_DIGIT))[:n_novel]
    test = np.concatenate([_part(known_target, test_fraction, random), _part(novel, test_fraction, random)])
    target = random.permutation(np.setdiff1d(np.concatenate([known_target, novel]), test))
    names = np.array([_group_name(d) for d in range(10)])
    return DigitsProblem(
        X=images[source],
        y=names[digit[source]],
        X_target=images[target],
        X_test=images[test],
        y_test=names[digit[test]],
        novel_fraction=float((digit[target] == NOVEL_DIGIT).mean()),
    )


def _part(rows: NDArray[np.intp], fraction: float, random: np.random.Generator) -> NDArray[np.intp]:
    return random.permutation(rows)[: round(len(rows) * fraction)]


def _group_name(digit: int) -> str:
    for group in GROUPS:
        if digit in group:
            return f"{group[0]}–{group[-1]}"
    return "novel"


@dataclass(frozen=True)
class DemoRun:
    """One method on one split."""

    method: str
    seed: int
    metrics: OpenSetMetrics
    estimated: float
    true: float


def run_demo(*, seeds: int, steps: int, out: Path) -> list[DemoRun]:
    """Fit the three methods on several splits, print a table and draw the scores of the first split."""
    runs: list[DemoRun] = []
    drawn: list[tuple[str, NDArray[np.float64], NDArray[np.bool_], float]] = []
    with progress_bar("fitting") as update, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few hundred rows cannot promise an FPR of 1 %; the table shows it
        total = seeds * len(METHODS)
        for seed in range(seeds):
            problem = digits_problem(seed)
            for name in METHODS:
                update(len(runs), total, f"{name}, split {seed + 1}")
                model = get_method(name).make(max_steps=steps, random_state=seed)
                model.fit(problem.X, problem.y, problem.X_target)
                metrics = evaluate(model, problem.X_test, problem.y_test)
                runs.append(DemoRun(name, seed, metrics, model.novel_fraction_.value, problem.novel_fraction))
                if seed == 0:
                    score = model.novelty_score(problem.X_test)
                    drawn.append((name, score, problem.y_test == "novel", model.threshold_))
        update(total, total, "")
    _print_table(runs, seeds, steps)
    try:
        _draw(drawn, out)
    except MissingExtraError as error:
        _console().print(f"No picture: {error}", markup=False)
    else:
        _console().print(f"Histograms of the scores on held-out rows: [bold]{out}[/bold]")
    return runs


def _console() -> Any:
    from rich.console import Console

    return Console()


def _print_table(runs: list[DemoRun], seeds: int, steps: int) -> None:
    from rich.table import Table

    splits = f"{seeds} splits" if seeds > 1 else "1 split"
    table = Table(
        title=f"A new digit under background shift (held-out target rows, {splits}, {steps} steps)",
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
    _console().print("Means ± sd over splits; novel = estimated novel fraction of the target.", style="dim")


def _mean_sd(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ±{np.std(values):.2f}"


def _draw(panels: list[tuple[str, NDArray[np.float64], NDArray[np.bool_], float]], out: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("the histogram", "plot") from None
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axis, (name, score, novel, threshold) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        bins = np.histogram_bin_edges(score, bins=30)
        axis.hist(score[~novel], bins, color="#4c78a8", alpha=0.75, label="known digits")
        axis.hist(score[novel], bins, color="#e4572e", alpha=0.85, label=f"digit {NOVEL_DIGIT} (new)")
        if np.isfinite(threshold):
            axis.axvline(threshold, color="black", linestyle="--", linewidth=1, label="threshold")
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(bottom=0)
        axis.set_title(get_method(name).class_name)
        axis.set_xlabel("novelty score (higher = more novel)")
        axis.set_ylabel("held-out target rows")
        axis.legend(frameon=False)
    figure.suptitle("Novelty scores of held-out target rows, first split")
    figure.savefig(out, dpi=130)
