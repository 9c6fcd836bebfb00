"""``openset watch``: batches in order of time against one labelled source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openset._utils.downloads import downloads
from openset.commands.console import (
    CANNOT_TELL,
    NOTICED,
    AsJson,
    Quiet,
    Verbose,
    helpful_errors,
    show_json,
    show_text,
)
from openset.commands.look import Run
from openset.commands.options import AllowDownload

if TYPE_CHECKING:
    from openset.watch.answer import WatchAnswer


def watch(
    context: typer.Context,
    run: Run,
    batches: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[BATCH]...", help="Files with the run's columns, in order of time."),
    ] = None,
    refit: Annotated[
        str, typer.Option(metavar="WHEN", help="Fit new models: auto, each (batch) or never.")
    ] = "auto",
    max_density_ratio: Annotated[
        float | None,
        typer.Option(help="How many times as common a known kind may be as in source.", show_default="the run's"),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to store what is found. [default: RUN/watch.sqlite]"),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the page. [default: RUN/watch.html]")
    ] = None,
    allow_download: AllowDownload = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Watch batches over time: did they move, is there a new class, does it grow?

    Counts each BATCH once, known by its content: give all files every time, or
    only the next one. Without a BATCH it shows what was found before. Everything
    is in RUN/watch.sqlite; a call that was killed is continued by the next one.

    For each batch: whether it moved away from the fit's rows, the share of rows
    called new with its interval, groups among them and whether an earlier batch
    had them, and the evidence of a new class. It is noticed when the evidence
    reaches 20 (marked !; a + marks a group that no earlier batch had). Without a
    new class that ever happens with a chance of at most 5 %, however often you
    look, if no known kind is more than --max-density-ratio times as common as in
    source, and as far as the p-values of single fits hold. A batch that moved does
    not count.

    Each batch is fitted alone, as 'openset fit' would, if the run's method has a
    test. Evidence that adds up over batches comes from models fitted before them,
    on one half of the source: the first one on the run's target. With --refit auto
    a new one is fitted on the last three batches when more rows are called new
    than at its fit, or after four batches; with never nothing more is fitted.

    Answers of 'openset review RUN' name groups; rows like those confirmed as known
    are not counted.

    Exit codes: 0 nothing noticed, 3 new class noticed, 4 cannot tell (the last
    batch moved, or is too small), 2 wrong input or usage, 1 anything else, 130
    interrupted.

    Example, every Monday: openset watch run data/week-*.parquet --quiet
    """
    with helpful_errors(verbose, context):
        from openset.watch.watch import Watch

        with downloads(allow_download):
            watched = Watch(
                run, state=state, refit=refit, max_density_ratio=max_density_ratio, progress=not quiet
            )
            watched.add_all(batches or [])
        answer = watched.answer()
        written = watched.write_page(page)
        if as_json:
            show_json({**answer.to_dict(), "page": str(written)})
        elif not quiet:
            _show(answer, written)
        if answer.code == "noticed":
            raise typer.Exit(NOTICED)
        if answer.code == "cannot_tell" and answer.batches:
            raise typer.Exit(CANNOT_TELL)


def _show(answer: WatchAnswer, page: Path) -> None:
    if answer.batches:
        show_text(f"{answer.table()}\n")
    show_text(f"{answer()}\n\nPage: {page}")
