"""``openset report``, ``inspect``, ``compare`` and ``evaluate``: commands that look at runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from openset._utils.downloads import downloads
from openset.commands.console import (
    AsJson,
    Quiet,
    Verbose,
    helpful_errors,
    show_json,
    show_table,
    show_text,
)
from openset.commands.options import AllowDownload, SkipBad

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that 'openset fit' wrote.")]


def report(
    context: typer.Context,
    run: Run,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the page; RUN/report.html if not given.")
    ] = None,
    examples: Annotated[bool, typer.Option(help="Show the rows' own content, texts and pictures.")] = True,
    allow_download: AllowDownload = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Write a run's report anew: one HTML page that needs no network.

    Example: openset report run --no-examples
    """
    with helpful_errors(verbose, context), downloads(allow_download):
        from openset._utils.files import check_not_input
        from openset.pipeline.result import REPORT
        from openset.pipeline.run import load_run

        page = out or run / REPORT
        if page.name != REPORT:
            check_not_input(page, run)
        load_run(run).report(page, examples=examples)
        if as_json:
            show_json({"out": str(page)})
        elif not quiet:
            show_text(f"report: {page}")


def inspect(run: Run, verbose: Verbose = False, as_json: AsJson = False) -> None:
    """Show what a run found, on which data, with which settings.

    Example: openset inspect run
    """
    with helpful_errors(verbose):
        from openset.pipeline.result import read_summary

        summary = read_summary(run)
        if as_json:
            show_json(summary.to_dict())
            return
        show_text(summary())
        settings = summary.settings.to_dict()
        data = {"source": summary.data.source.path, "target": summary.data.target.path}
        rows = [(role, path or "a data frame") for role, path in data.items()]
        rows += [("created", f"{summary.created}, openset {summary.openset_version}")]
        rows += [(name, str(value)) for name, value in settings.items() if name not in data]
        if verbose:
            rows += [(entry.name, entry.sentence) for entry in summary.diagnostics if entry.ok]
            rows += [(name, str(value)) for name, value in summary.parameters.items()]
            rows += [(name, str(value)) for name, value in vars(summary.environment).items()]
        show_table((), rows)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that 'openset fit' wrote.", metavar="RUN")],
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Compare runs.

    For runs on one target also: the overlap of the rows they call novel with
    those of the first run (rows of both by rows of either), and the rank
    correlation of their scores.

    Example: openset compare run-color run-dd
    """
    with helpful_errors(verbose):
        from openset.pipeline.compare import compare_runs

        compared = compare_runs(runs)
        if as_json:
            show_json([vars(entry) for entry in compared])
            return
        columns = [
            (
                entry.run,
                entry.method,
                entry.verdict,
                f"{entry.low:.1%}" if entry.low > 0 else "nothing proved",
                f"{entry.called_novel} of {entry.rows}",
                _number(entry.overlap),
                _number(entry.rank_correlation),
            )
            for entry in compared
        ]
        names = ("run", "method", "verdict", "new, at least", "called new", "overlap", "rank correlation")
        rows = list(zip(names, *columns, strict=True))
        show_table(rows[0], rows[1:], "Overlap and rank correlation: with the first run.")


def evaluate(
    context: typer.Context,
    run: Run,
    labelled: Annotated[Path, typer.Argument(metavar="LABELLED", help="Rows with their true labels.")],
    label: Annotated[str | None, typer.Option(metavar="COL", help="Label column. Default: the run's.")] = None,
    skip_bad: SkipBad = None,
    allow_download: AllowDownload = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Measure a run against labels that arrived later.

    Every label that the run does not know counts as novel. Where only some rows
    have a label yet, --skip-bad leaves out the others.

    Example: openset evaluate run reviewed.csv --label kind --skip-bad
    """
    with helpful_errors(verbose, context), downloads(allow_download):
        from openset.pipeline.compare import evaluate_run

        metrics = evaluate_run(run, labelled, label=label, skip_bad=skip_bad, progress=not quiet)
        if as_json:
            show_json(metrics)
        elif not quiet:
            show_table(
                ("metric", "value", "is"), [(name, _number(v), _MEANING[name]) for name, v in metrics.items()]
            )


def _number(value: Any) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.4f}"


_MEANING = {
    "auroc": "chance that a novel row scores above a known one",
    "auprc": "mean precision over recalls of novel rows",
    "oscr": "as AUROC, a known row counting only if its class is right",
    "top1": "accuracy on known rows, novelty aside",
    "fpr_at_95_tpr": "known rows above the score that 95 % of novel rows pass",
    "os": "accuracy averaged over known classes and novel",
    "os_star": "accuracy averaged over known classes",
    "unk": "novel rows that are called new",
    "hos": "harmonic mean of os_star and unk",
    "n_known": "known rows",
    "n_novel": "novel rows",
}
