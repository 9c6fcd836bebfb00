"""``openset promote``: a fit with the new classes that a review confirmed, beside the run before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openset.commands.console import AsJson, Quiet, Verbose, helpful_errors, show_json, show_table, show_text
from openset.commands.look import Run

if TYPE_CHECKING:
    from openset.review.promote import Promotion


def promote(
    context: typer.Context,
    run: Run,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write to. Default: RUN-promoted.")
    ] = None,
    check: Annotated[
        float, typer.Option(min=0, max=0.5, help="Share of answers kept aside to compare on.")
    ] = 0.2,
    fewest: Annotated[int, typer.Option(min=2, help="Rows that a new class must have.")] = 10,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Fit again with the new classes that a review confirmed, k + n of them.

    DIR gets labelled.parquet: the source and the answered rows, with columns
    review_* that say where each came from; target.parquet: the target rows that
    are left, open again for a further new class; and run, a run like any other.

    Before and after are compared on answers that were kept aside (--check).

    Example: openset promote run --out promoted
    """
    with helpful_errors(verbose, context):
        from openset.review.promote import promote as promote_run

        folder = out or run.with_name(f"{run.resolve().name}-promoted")
        found = promote_run(run, folder, check=check, fewest=fewest, progress=not quiet)
        if as_json:
            show_json({**found.to_dict(), "out": str(folder)})
        elif not quiet:
            show_text(_said(found))
            show_table(("", "before", "after"), _compared(found))
            show_text(f"Written to {folder}. The new run: {folder / 'run'}")


def _said(found: Promotion) -> str:
    lines = ["Promoted: " + ", ".join(f"{name} ({rows} rows)" for name, rows in found.promoted.items())]
    if found.left_out:
        few = ", ".join(f"{name} ({rows})" for name, rows in found.left_out.items())
        lines.append(f"Left out, with too few rows: {few}")
    return "\n".join(lines)


def _compared(found: Promotion) -> list[tuple[str, str, str]]:
    sides = (found.before, found.after)
    rows = [
        ("known classes", *(str(side.classes) for side in sides)),
        ("verdict", *(side.verdict for side in sides)),
        ("called new", *(f"{side.called_novel} of {side.target_rows}" for side in sides)),
    ]
    if found.check_rows:
        rows.append(("right on check rows", *(f"{side.right} of {found.check_rows}" for side in sides)))
    return [(name, before, after) for name, before, after in rows]
