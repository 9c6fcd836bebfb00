"""``openset fit``: two files to an answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openset._utils.downloads import downloads
from openset.commands.console import (
    AsJson,
    Quiet,
    Verbose,
    command_lines,
    helpful_errors,
    show_json,
    show_text,
)
from openset.commands.options import (
    Align,
    AllowDownload,
    As,
    Carry,
    Drop,
    Encoder,
    Fdr,
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
    from openset.pipeline.settings import RunSettings
    from openset.pipeline.summary import ResultSummary


def fit(
    context: typer.Context,
    source: Annotated[
        Path | None, typer.Argument(metavar="SOURCE", help="Labelled rows.", show_default=False)
    ] = None,
    target: Annotated[
        Path | None, typer.Argument(metavar="TARGET", help="Unlabelled rows.", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="RUN", help="Folder to write the run to.")] = None,
    label: Label = None,
    features: Features = None,
    drop: Drop = None,
    as_: As = None,
    text: Text = None,
    image: Image = None,
    id: Annotated[str | None, typer.Option(metavar="COL", help="Column that tells target rows apart.")] = None,
    carry: Carry = None,
    encoder: Encoder = None,
    allow_download: AllowDownload = False,
    method: Method = None,
    fpr: Fpr = None,
    fdr: Fdr = None,
    max_density_ratio: MaxDensityRatio = None,
    align: Align = None,
    seed: Seed = None,
    fit_rows: FitRows = None,
    set_: Set = None,
    settings: Annotated[
        Path | None, typer.Option(metavar="TOML", help="Settings from a file; flags override it.")
    ] = None,
    skip_bad: SkipBad = None,
    ignore_target_labels: IgnoreTargetLabels = None,
    on: Annotated[str, typer.Option(metavar="WHERE", help="Train here (local) or on ray.")] = "local",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a run that is in RUN.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Find a new class in TARGET: fit, score and report.

    SOURCE and TARGET: Parquet, CSV, JSON lines, Arrow, .npy, .npz, folders of
    images; several files as a pattern, 'data/*.parquet', or as a folder of parts.

    All columns but label and id are features: numbers, categories, dates, and
    --text and --image beside them. Missing values are filled in by the source's
    median or most common level, and flagged: every target row is scored. A source
    row without a label is left out. The output says what became of each column;
    change it with --as, leave a column out with --drop ('*' for any text).

    Before the verdict, checks look for another explanation: a column that alone
    separates SOURCE and TARGET (leave it out with --drop, or name it with --id),
    another unit, classes of one row, a batch that moved as a whole (--align).

    With --fdr the scored table marks rows to act on (novel_at_fdr): at most that
    share of them is known, on average, if no known kind of row became more than
    --max-density-ratio times as common.

    RUN gets report.html, scored_target.parquet, result.json, the model, a profile
    for later batches, and settings.toml, which repeats the run:
    openset fit --settings RUN/settings.toml --out AGAIN

    With --on ray the groups of networks that color trains are tasks of the cluster
    at RAY_ADDRESS, or of a local one; the run is the same, bit for bit.

    Exit codes: 0 done, 2 wrong input or usage, 1 anything else, 130 interrupted.

    Examples:

    openset fit known.parquet new.parquet --label kind --out run

    openset fit known.csv new.csv --label kind --id ticket --text review --as
    zip=category --drop 'internal_*' --carry review,amount --out run
    """
    with helpful_errors(verbose, context), downloads(allow_download):
        from openset._utils.extras import require
        from openset.pipeline.result import check_free
        from openset.pipeline.settings import read_settings

        asked = settings_from(context, None if settings is None else read_settings(settings))
        if asked.source is None or asked.target is None or out is None:
            raise ValueError(_missing(asked))
        check_free(out, asked.source, asked.target, overwrite=overwrite)
        require("pyarrow", "Writing the scored target", "data")

        from openset.pipeline.run import run_with

        with _training(on):
            result = run_with(asked, asked.source, asked.target, progress=not quiet)
        result.save(out, overwrite=overwrite)
        if as_json:
            show_json(result.summary.to_dict())
        elif not quiet:
            show_text(result.summary())
            show_text(_closing(result.summary, out, verbose))


@contextmanager
def _training(on: str) -> Iterator[None]:
    """Where networks are trained; a method that has nothing to share out is told of, after it ran here."""
    from openset._utils.params import check_choice

    check_choice("on", on, ("local", "ray"))
    if on == "local":
        yield
        return
    from openset.cluster.ray_fit import groups_on_ray

    with groups_on_ray() as groups:
        yield
    if not groups.tasks:
        typer.echo("note: there are not several groups of networks to train, so Ray was not used.", err=True)


def _missing(asked: RunSettings) -> str:
    """What is said if a file or the folder is not named."""
    if asked.source is None or asked.target is None:
        return "two files are needed: openset fit SOURCE TARGET --label COL --out RUN."
    return "no folder to write to is named: pass --out RUN."


def _closing(summary: ResultSummary, out: Path, verbose: bool) -> str:
    """How many rows were skipped, where things are, and with -v how long they took."""
    lines = [""]
    for role, origin in (("source", summary.data.source), ("target", summary.data.target)):
        if origin.skipped:
            label = " or have no label" if role == "source" else ""
            lines.append(f"Skipped {origin.skipped} {role} rows that could not be used{label}.")
    if verbose:
        lines.append("Seconds: " + ", ".join(f"{name} {seconds:g}" for name, seconds in summary.timings.items()))
        lines += [entry.sentence for entry in summary.shown_diagnostics if entry.ok]
    score = command_lines(["score", str(out), "DATA", "--out", "scored.parquet"])
    lines += [f"Written to {out}. Score more rows:", *score]
    return "\n".join(lines)
