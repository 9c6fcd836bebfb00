"""``openset demo``: the main job on scikit-learn's digits, then a comparison, in about a minute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openset.commands.console import helpful_errors
from openset.commands.sample import fit_arguments, typed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from openset.stats.metrics import OpenSetMetrics

METHODS = ("source_only", "dd", "color")
MEMBERS = 3
"""Networks that a method trains together: on a few hundred rows the results of single networks vary widely."""
COLUMNS = {"auroc": "AUROC", "auprc": "AUPRC", "oscr": "OSCR", "top1": "top-1"}
SAMPLE, LABEL = "digits", "digit"


def demo(
    context: typer.Context,
    seeds: Annotated[int, typer.Option(min=1, help="Splits that the comparison averages over.")] = 3,
    steps: Annotated[
        int, typer.Option(min=50, help="Training steps of the comparison; CoLOR takes 1500 at most.")
    ] = 3000,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for files, run and picture.", show_default="a temporary one"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the histogram of scores.", show_default="DIR/scores.png")
    ] = None,
) -> None:
    """A new digit in a shifted batch: from two files to an answer, in a minute.

    First the main job, with the commands that a user types: two files of
    scikit-learn's digits, the verdict on them, the report. Then CoLOR beside a
    discriminator on several splits: three groups of digits are known, with other
    shares in target than in source, and digit 9 is new.

    Example: openset demo --folder demo
    """
    with helpful_errors(False, context):
        from openset._utils.extras import require
        from openset._utils.files import check_parent

        require("pyarrow", "The demo", "data")
        if out is not None:
            check_parent(out)
        place = _place(folder)
        _find_new_digit(context, place)
    _say("\nCoLOR beside a discriminator and a classifier, on other splits of the digits:\n", style="bold")
    runs = fit_all(seeds, steps)
    _print_table(runs, seeds)
    _show_picture(runs[: len(METHODS)], out or place / "scores.png")


def _place(folder: Path | None) -> Path:
    """The folder for what the demo writes; one that is named must not hold a run."""
    if folder is None:
        from tempfile import mkdtemp

        return Path(mkdtemp(prefix="openset-demo-"))
    if (folder / "run").exists():
        raise ValueError(f"{folder / 'run'} is there already: choose another folder.")
    return folder


def _find_new_digit(context: typer.Context, folder: Path) -> None:
    """Type the commands of the main job, and say what to do next."""
    from openset.pipeline.result import REPORT

    _type(context, ["sample", SAMPLE, str(folder)])
    _type(context, fit_arguments(LABEL, folder))
    _say(
        f"\n{_right(folder)}\n"
        f"Report, to be opened in a browser: {folder / 'run' / REPORT}\n"
        "Next, with your own files: openset fit SOURCE TARGET --label COL --out RUN"
    )


def _type(context: typer.Context, arguments: list[str]) -> None:
    """Show a command and run it in this process; the demo ends where it fails."""
    _say(f"\n$ {typed(arguments)}", style="bold")
    code = context.find_root().command.main(arguments, prog_name="openset", standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _say(text: str, style: str = "") -> None:
    from rich.console import Console

    Console().print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _right(folder: Path) -> str:
    """How many of the rows called new are new; here the labels are known."""
    from openset.data import read_table
    from openset.pipeline.result import SCORED, read_summary
    from openset.shift.digits import NOVEL_DIGIT
    from openset.shift.samples import ID, TRUTH

    scored = read_table(folder / "run" / SCORED, label="predicted", features="novelty_score", id=ID)
    truth = read_table(folder / TRUTH, label=LABEL, id=ID)
    assert scored.y is not None and truth.y is not None  # both were asked for
    called, new = scored.y == read_summary(folder / "run").novel_label, truth.y == NOVEL_DIGIT
    right = f"{(called & new).sum()} of the {called.sum()} rows called new are of digit {NOVEL_DIGIT}"
    return f"By the labels, {right}. The batch has {new.sum()} of them."


def _show_picture(runs: list[DemoRun], out: Path) -> None:
    from openset.errors import MissingExtraError

    try:
        _draw(runs, out)
    except MissingExtraError as error:
        _say(f"No picture: {error}")
    else:
        _say(f"Histograms of the scores of test rows: {out}")


@dataclass(frozen=True)
class DemoRun:
    """One method on one split, with its scores of the test rows."""

    method: str
    seed: int
    metrics: OpenSetMetrics
    score: NDArray[np.float64]
    is_novel: NDArray[np.bool_]
    threshold: float

    @property
    def called(self) -> NDArray[np.bool_]:
        """The test rows that are called novel."""
        return self.score > self.threshold


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
    for heading in (*COLUMNS.values(), "right"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in METHODS:
        of_method = [run for run in runs if run.method == name]
        cells = [_mean_sd([getattr(run.metrics, metric) for run in of_method]) for metric in COLUMNS]
        style = "bold" if name == "color" else ""
        table.add_row(name, *cells, _right_of_called(of_method), style=style)
    console = Console()
    console.print(table)
    new = sum(int(run.is_novel.sum()) for run in runs[:: len(METHODS)])
    console.print(
        f"Means ± sd over splits. CoLOR with its defaults, the others as {MEMBERS} networks each; "
        f"right = rows called new that are new, of all splits together, which have {new} new rows.",
        style="dim",
    )


def _right_of_called(runs: list[DemoRun]) -> str:
    right = sum(int((run.called & run.is_novel).sum()) for run in runs)
    return f"{right} of {sum(int(run.called.sum()) for run in runs)}"


def _mean_sd(values: list[float]) -> str:
    import numpy as np

    return f"{np.mean(values):.2f} ±{np.std(values):.2f}"


def _draw(runs: list[DemoRun], out: Path) -> None:
    """Draw the histograms of the scores, one panel per method."""
    import numpy as np

    from openset._utils.extras import require
    from openset._utils.files import replacing
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
    with replacing(out) as temporary:
        figure.savefig(temporary, dpi=130)
