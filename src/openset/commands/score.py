"""``openset score``: further rows through a fitted run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from openset._utils.downloads import downloads
from openset.commands.console import (
    CANNOT_TELL,
    TOO_MANY_NOVEL,
    AsJson,
    Quiet,
    Verbose,
    helpful_errors,
    show_json,
    show_text,
)
from openset.commands.options import AllowDownload, Carry, split_columns
from openset.errors import Parameter, ParameterError

if TYPE_CHECKING:
    from openset.pipeline.batch_answer import BatchAnswer


def score(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Folder that 'openset fit' wrote.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="Rows to score, with the run's columns.")],
    out: Annotated[str, typer.Option(help="File to write, or a folder (with / at the end) for parts.")],
    id: Annotated[str | None, typer.Option(metavar="COL", help="Another id column than the run's.")] = None,
    carry: Carry = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Score every N-th part from the I-th on, from 0.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(metavar="EXT", help="Format of parts.", show_default="that of DATA")
    ] = None,
    on: Annotated[str, typer.Option(metavar="WHERE", help="Score parts here (local) or on ray.")] = "local",
    fdr: Annotated[
        float | None, typer.Option(help="Mark rows to list at this false discovery rate; reads DATA twice.")
    ] = None,
    max_density_ratio: Annotated[
        float | None,
        typer.Option(help="For --fdr: how many times as common known rows may be.", show_default="the run's"),
    ] = None,
    fail_if_novel: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Exit with 3 if a larger share is called new, 4 if unclear."),
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
    called new (the share itself, not an end of its interval), and 4 if that cannot
    be told: the batch moved, or the verdict of RUN was "cannot tell". The file is
    written all the same.

    With --fdr also novel_at_fdr: of the rows marked at most that share is known,
    on average, if known rows are at most --max-density-ratio times as common as
    in the source. Prints how many are marked, or why none is.

    With a folder as --out, each part of DATA (a file, a folder, a pattern) gives a
    part of the same name. DATA, RUN and --out may be s3://, gs:// or hdfs://. Parts
    that are there are skipped, so a killed call is continued by the same call;
    _SUCCESS comes last. With --shard 0/4 to 3/4 four machines share the parts; with
    --on ray a cluster does. The bytes are the same. Ids are checked in each part;
    'openset ids OUT/' checks them across parts.

    With --csv-safe ids and labels that begin like a formula (= + - @) get an
    apostrophe before them, for a CSV file that others open in a spreadsheet.

    Exit codes: 0 done, 3 too many rows called new, 4 cannot tell (both only with
    --fail-if-novel), 2 wrong input or usage, 1 anything else, 130 interrupted.

    Examples:

    openset score run march.parquet --out march_scored.parquet

    openset score run 's3://bucket/in/*.parquet' --out s3://bucket/out/ --shard 0/4
    """
    with helpful_errors(verbose, context), downloads(allow_download):
        from openset._utils.params import check_number

        if fail_if_novel is not None:
            check_number("fail_if_novel", fail_if_novel, high=1.0)
        columns = {"id": id, "carry": split_columns(carry), "csv_safe": csv_safe, "progress": not quiet}
        if _is_folder(out):
            _refuse_for_parts(fdr)
            told = _score_parts(run, data, out, shard=shard, format=format, on=on, **columns)
        else:
            _refuse_for_one_file(shard, format, on)
            told = _score_file(run, data, out, fdr=fdr, max_density_ratio=max_density_ratio, **columns)
        answer = told.answer
        code, message = _judged(answer, fail_if_novel)
        if as_json:
            ended = {"fail_if_novel": fail_if_novel, "failed": code != 0, "exit_code": code}
            show_json({**told.whole, "out": out, **ended})
        elif not quiet:
            show_text(told.text)
        if code:
            typer.echo(message, err=True)
            raise typer.Exit(code)


def _judged(answer: BatchAnswer | None, limit: float | None) -> tuple[int, str]:
    """The exit code for a scheduler, and why it is not 0."""
    if answer is None or limit is None:
        return 0, ""
    if answer.cannot_tell:
        return CANNOT_TELL, f"cannot tell if there are too many new rows: {answer.cannot_tell}."
    if answer.called_share.value > limit:
        called = f"{answer.called_novel} of {answer.rows} rows are called new"
        return TOO_MANY_NOVEL, f"too many new rows: {called}, more than --fail-if-novel {limit:g}."
    return 0, ""


class _Told(NamedTuple):
    """The answer, None where no row was scored; all there is to tell, for programs and in words."""

    answer: BatchAnswer | None
    whole: dict[str, Any]
    text: str


def _score_parts(run: str, data: str, out: str, **options: Any) -> _Told:
    from openset.cluster.score import score_parts

    found = score_parts(run, data, out, **options)
    return _Told(found.answer, found.to_dict(), found())


def _score_file(run: str, data: str, out: str, **options: Any) -> _Told:
    from openset.cluster.one_file import score_file

    answer = score_file(run, data, out, **options)
    return _Told(answer, answer.to_dict(), f"{answer()}\n\n{answer.rows} rows written to {out}.")


def _is_folder(out: str) -> bool:
    """Whether parts are asked for: a name with a slash at its end, or a folder that is there."""
    from openset.cluster.folders import is_remote, local_path

    return out.endswith("/") or (not is_remote(out) and local_path(out).is_dir())


def _refuse_for_parts(fdr: float | None) -> None:
    if fdr is not None:
        raise ParameterError(
            Parameter("fdr", fdr), " ranks all rows together, and parts are scored alone: name a file."
        )


def _refuse_for_one_file(shard: str | None, format: str | None, on: str) -> None:
    for name, given, default in (("shard", shard, None), ("format", format, None), ("on", on, "local")):
        if given != default:
            raise ParameterError(
                Parameter(name, given),
                " is for parts: name a folder, with / at its end, as ",
                Parameter("out"),
                ".",
            )
