"""``openset simulate``: what could be found in this target?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openset._utils.downloads import downloads
from openset.commands.console import AsJson, Quiet, Verbose, helpful_errors, show_json, show_table, show_text
from openset.commands.options import (
    AllowDownload,
    Drop,
    Encoder,
    Features,
    FitRows,
    Fpr,
    IgnoreTargetLabels,
    Image,
    Label,
    MaxDensityRatio,
    Method,
    Seed,
    Set,
    SkipBad,
    Text,
    settings_from,
)

if TYPE_CHECKING:
    from openset.pipeline.tune import Simulation, TuneResult


def simulate(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Labelled rows.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Unlabelled rows.", show_default=False)],
    label: Label = None,
    alpha: Annotated[
        list[float] | None,
        typer.Option(help="Share of the target that is new; repeatable.", show_default="0.05, 0.1"),
    ] = None,
    features: Features = None,
    drop: Drop = None,
    text: Text = None,
    image: Image = None,
    id: Annotated[str | None, typer.Option(metavar="COL", help="Column of ids, which is no feature.")] = None,
    encoder: Encoder = None,
    allow_download: AllowDownload = False,
    method: Method = None,
    fpr: Fpr = None,
    max_density_ratio: MaxDensityRatio = None,
    seed: Seed = None,
    fit_rows: FitRows = None,
    set_: Set = None,
    skip_bad: SkipBad = None,
    ignore_target_labels: IgnoreTargetLabels = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """A known class treated as new: what could we detect, at which share?

    Each class in turn is removed from SOURCE, and some of its rows are added to
    TARGET, in place of rows that look like it. A control adds none. There is one
    fit for every class and share: start with few steps (--set max_steps=300). No
    label of TARGET is used. A whole class is easy to find: a real new one may be
    missed at a share that is enough here.

    Example: openset simulate known.parquet new.parquet --label kind --alpha 0.05
    """
    with helpful_errors(verbose, context, {"novel_fractions": "alpha"}), downloads(allow_download):
        from openset.pipeline.simulate import SHARES
        from openset.pipeline.simulate import simulate as simulate_files

        settings = settings_from(context)
        found = simulate_files(settings, source, target, novel_fractions=alpha or SHARES, progress=not quiet)
        if as_json:
            show_json(found.to_dict())
        elif not quiet:
            _show(found)


def _show(found: TuneResult) -> None:
    headings = ("taken as new", "share", "AUPRC", "recall", "verdict", "at least")
    rows = sorted((*found.controls, *found.table), key=lambda row: (str(row.novel_class), row.novel_fraction))
    show_table(headings, [_cells(row) for row in rows])
    for label, share in found.detectable.items():
        missing = "cannot be told, see below" if label in found.alarmed else "not at these shares"
        typer.echo(f"Detectable, {label}: {missing if share is None else f'from a share of {share:g}'}.")
    show_text("\n".join(["", *found.notes]))


def _cells(row: Simulation) -> tuple[str, ...]:
    control = row.novel_fraction == 0
    return (
        str(row.novel_class),
        "none" if control else f"{row.true_fraction:.3f}",
        "" if control else f"{row.auprc:.3f}",
        "" if control else f"{row.recall:.3f}",
        row.verdict,
        f"{row.low:.3f}" if row.low > 0 else "",
    )
