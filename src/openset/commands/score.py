"""``openset score``: further rows through a fitted run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openset._utils.downloads import downloads
from openset.commands.console import (
    TOO_MANY_NOVEL,
    AsJson,
    Quiet,
    Verbose,
    helpful_errors,
    show_json,
    show_text,
)
from openset.commands.options import AllowDownload, Carry, split_columns


def score(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder that 'openset fit' wrote.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Rows to score, with the run's columns.")],
    out: Annotated[Path, typer.Option(help="File to write; its extension says the format.")],
    id: Annotated[str | None, typer.Option(metavar="COL", help="Another id column than the run's.")] = None,
    carry: Carry = None,
    fdr: Annotated[
        float | None, typer.Option(help="Mark rows to list at this false discovery rate; reads DATA twice.")
    ] = None,
    max_density_ratio: Annotated[
        float | None,
        typer.Option(help="For --fdr: how many times as common known rows may be.", show_default="the run's"),
    ] = None,
    fail_if_novel: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Exit with code 3 if a larger share of rows is called new."),
    ] = None,
    allow_download: AllowDownload = False,
    csv_safe: Annotated[
        bool, typer.Option("--csv-safe", help="For spreadsheets: no text in a CSV file is a formula.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Score every row of DATA, of any length, in constant memory.

    Each row gives one row, in order, with its id: predicted label, novelty score,
    p-value (the rank among the source's validation scores), p_<class> and p_novel.
    The file appears when all is written; until then an old one stays.

    Prints how many rows are called new, with the interval of the count, whether
    the batch moved away from the rows of the fit, and the columns with values
    outside the fit's ranges; --json has the same.

    With --fail-if-novel 0.05 the exit code is 3 if more than 5 % of the rows are
    called new (the share itself, not an end of its interval). The file is written
    all the same.

    With --fdr also novel_at_fdr: of the rows marked at most that share is known,
    on average, if known rows are at most --max-density-ratio times as common as
    in the source.

    With --csv-safe ids and labels that begin like a formula (= + - @) get an
    apostrophe before them, for a CSV file that others open in a spreadsheet.

    Exit codes: 0 done, 3 too many rows called new, 2 wrong input or usage, 1
    anything else, 130 interrupted.

    Example: openset score run march.parquet --out march_scored.parquet
    """
    with helpful_errors(verbose, context), downloads(allow_download):
        from openset._utils.params import check_number

        if fail_if_novel is not None:
            check_number("fail_if_novel", fail_if_novel, high=1.0)
        from openset.pipeline.score import score as score_data

        answer = score_data(
            run,
            data,
            out,
            id=id,
            carry=split_columns(carry),
            fdr=fdr,
            max_density_ratio=max_density_ratio,
            csv_safe=csv_safe,
            progress=not quiet,
        )
        failed = fail_if_novel is not None and answer.called_share.value > fail_if_novel
        if as_json:
            show_json({**answer.to_dict(), "out": str(out), "fail_if_novel": fail_if_novel, "failed": failed})
        elif not quiet:
            show_text(f"{answer()}\n\n{answer.rows} rows written to {out}.")
        if failed:
            called = f"{answer.called_novel} of {answer.rows} rows are called new"
            typer.echo(f"too many new rows: {called}, more than --fail-if-novel {fail_if_novel:g}.", err=True)
            raise typer.Exit(TOO_MANY_NOVEL)
