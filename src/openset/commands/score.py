"""``openset score``: further rows through a fitted run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openset.commands.console import AsJson, Quiet, Verbose, helpful_errors, show_json


def score(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder that 'openset fit' wrote.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Rows to score, with the run's columns.")],
    out: Annotated[Path, typer.Option(help="File to write; its extension says the format.")],
    id: Annotated[str | None, typer.Option(metavar="COL", help="Another id column than the run's.")] = None,
    fdr: Annotated[
        float | None, typer.Option(help="Mark rows to list at this false discovery rate; reads DATA twice.")
    ] = None,
    max_density_ratio: Annotated[
        float | None,
        typer.Option(help="For --fdr: how many times as common known rows may be.", show_default="the run's"),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Score every row of DATA, of any length, in constant memory.

    Each row gives one row, in order, with its id: predicted label, novelty score,
    p-value (the rank among the source's validation scores), p_<class> and p_novel.
    The file appears when all is written; until then an old one stays.

    With --fdr also novel_at_fdr: of the rows marked at most that share is known,
    on average, if known rows are at most --max-density-ratio times as common as
    in the source.

    Example: openset score run march.parquet --out march_scored.parquet
    """
    with helpful_errors(verbose, context):
        from openset.pipeline.score import score as score_data

        rows = score_data(run, data, out, id=id, fdr=fdr, max_density_ratio=max_density_ratio, progress=not quiet)
        if as_json:
            show_json({"rows": rows, "out": str(out)})
        elif not quiet:
            typer.echo(f"{rows} rows written to {out}.")
