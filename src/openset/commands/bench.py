"""``openset bench``: the paper's experiments, each by one command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openset.commands.console import FAILED, INTERRUPTED, helpful_errors

if TYPE_CHECKING:
    from openset.bench.runner import SweepReport
    from openset.bench.spec import Spec
    from openset.bench.tables import Results

app = typer.Typer(help="The paper's experiments: run, continue, tabulate, draw.", no_args_is_help=True)


class Place(StrEnum):
    """Where runs are carried out."""

    local = "local"
    ray = "ray"


class Form(StrEnum):
    """How a table is written."""

    terminal = "terminal"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"


class Rows(StrEnum):
    """What is exported."""

    runs = "runs"
    heads = "heads"


SpecName = Annotated[str, typer.Argument(metavar="SPEC", help="A name from `bench list`, or a .toml file.")]
StorePath = Annotated[Path, typer.Option("--store", help="The SQLite file with all results.")]
DataFolder = Annotated[Path | None, typer.Option("--data", help="Folder with the datasets.")]
Code = Annotated[str | None, typer.Option(help="Show runs of another code version than this one.")]
STORE = Path("openset-bench.sqlite")
PAGE = ".md"
FORMS = {".csv": Form.csv, ".tex": Form.latex, ".txt": Form.terminal}
"""What the end of a file's name says; a page of results is more than a table."""


@app.command("list")
def list_command(data: DataFolder = None) -> None:
    """List the experiments, and the data that each still needs.

    Example: openset bench list --data ../shared/data
    """
    from rich.console import Console
    from rich.table import Table

    from openset.bench.problems import problem_sources
    from openset.bench.spec import built_in_specs

    table = Table(title="Experiments", title_justify="left")
    table.add_column("name", no_wrap=True)
    for heading in ("what", "ready"):
        table.add_column(heading, overflow="fold")
    for spec in built_in_specs().values():
        table.add_row(spec.name, spec.title, _readiness(spec, data))
    sources = Table(title="Datasets that a spec may name", title_justify="left")
    for heading in ("dataset", "what", "files below --data"):
        sources.add_column(heading, overflow="fold")
    for source in problem_sources():
        instead = f" (else {source.stand_in})" if source.stand_in else ""
        sources.add_row(source.name, source.about, f"{', '.join(source.files) or 'none'}{instead}")
    console = Console()
    console.print(table, sources)


def _readiness(spec: Spec, data: Path | None) -> str:
    from openset.bench.runs import expand

    if spec.unavailable:
        return f"no: {', '.join(spec.unavailable)} not in this version"
    missing = spec.missing_files(data)
    if missing:
        return f"needs --data with {', '.join(missing)}"
    replaced = [f"{name} by {stand_in}" for name, stand_in in spec.stand_ins(data).items()]
    on_stand_ins = f", on stand-ins ({', '.join(replaced)})" if replaced else ""
    return f"yes, {len(expand(spec, data))} runs{on_stand_ins}"


@app.command("run")
def run_command(
    spec: SpecName,
    data: DataFolder = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 1,
    on: Annotated[Place, typer.Option(help="Here, or on a Ray cluster.")] = Place.local,
    store: StorePath = STORE,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try stored failures again.")] = False,
) -> None:
    """Run an experiment and print its table; interrupted, the same command continues.

    Examples:

        openset bench run quick --jobs 2

        openset bench run my-experiment.toml --data ../shared/data --jobs 2
    """
    from openset.bench.runner import check_available, sweep
    from openset.bench.spec import load_spec
    from openset.bench.store import Store
    from openset.bench.tables import results_of

    options: dict[str, Any] = {"data_dir": data, "jobs": jobs, "on": on.value, "retry_failed": retry_failed}
    with helpful_errors(verbose=False):
        chosen = load_spec(spec)
        check_available(chosen, data)
        kept = Store(store)
        for name, stand_in in chosen.stand_ins(data).items():
            typer.echo(f"{name} is not in {data or '--data'}: {stand_in} stands in for it.", err=True)
        try:
            report = sweep(chosen, kept, **options, show_progress=True)
        except KeyboardInterrupt:
            typer.echo(f"Stopped. Finished runs are in {store}; the same command continues.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        results = results_of(chosen, kept, data_dir=data)
    _print(results)
    typer.echo(f"{_what_was_done(report)}; results in {store}.", err=True)
    if report.failed or report.failed_before:
        raise typer.Exit(FAILED)


def _what_was_done(report: SweepReport) -> str:
    again = (
        f" ({report.failed_before} of them failed: --retry-failed tries again)" if report.failed_before else ""
    )
    done = report.planned - report.skipped
    return (
        f"{done} runs in {report.seconds:.0f} s, {report.skipped} already stored{again}, {report.failed} failed"
    )


@app.command("table")
def table_command(
    spec: SpecName,
    form: Annotated[
        Form | None, typer.Option("--format", help="How to write it; a file's name says it too.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", help="A file instead of the screen.")
    ] = None,
    data: DataFolder = None,
    store: StorePath = STORE,
    code: Code = None,
) -> None:
    """Print or write the table of stored runs; an .md file has the commands, versions and times too.

    Examples:

        openset bench table quick --format latex

        openset bench table quick --out docs/results/quick.md
    """
    from openset.bench.page import results_page

    with helpful_errors(verbose=False):
        if output is not None:
            _check_output(output)
            form = form or _form_of(output)
        results = _results(spec, store, code, data)
    if form is not None:
        text = _text(results, form)
    elif output is not None:
        text = results_page(results, output, data, None if store == STORE else store, code)
    else:
        _print(results)
        return
    if output is None:
        typer.echo(text, nl=False)
        return
    with helpful_errors(verbose=False):
        output.write_text(text, encoding="utf-8")


def _form_of(output: Path) -> Form | None:
    """What a file of that name gets: a table in some form, or None for a page."""
    if output.suffix not in (PAGE, *FORMS):
        known = ", ".join((PAGE, *FORMS))
        raise ValueError(f"cannot tell the format of {str(output)!r}: end its name in {known}, or say --format.")
    return FORMS.get(output.suffix)


@app.command("figure")
def figure_command(
    spec: SpecName,
    output: Annotated[Path, typer.Option("--output", "--out", help="An .svg or .png file.")],
    data: DataFolder = None,
    store: StorePath = STORE,
    code: Code = None,
) -> None:
    """Draw stored runs as the spec's figure.

    Example: openset bench figure quick --output quick.svg
    """
    from openset.bench.figures import draw

    with helpful_errors(verbose=False):
        _check_output(output)
        draw(_results(spec, store, code, data), output)


@app.command("export")
def export_command(
    output: Annotated[Path, typer.Option(help="A .parquet or .csv file.")],
    what: Annotated[Rows, typer.Option(help="One row a run, or one row a novelty head.")] = Rows.runs,
    store: StorePath = STORE,
) -> None:
    """Write every stored run to Parquet or CSV.

    Example: openset bench export --output runs.parquet
    """
    from openset.bench.store import Store, export, head_rows, run_rows

    with helpful_errors(verbose=False):
        _check_output(output)
        stored = Store(store, read_only=True).all()
        rows = run_rows(stored) if what is Rows.runs else head_rows(stored)
        export(rows, output)
    typer.echo(f"{len(rows)} rows in {output}.", err=True)


def _results(spec: str, store: Path, code: str | None, data: Path | None) -> Results:
    from openset.bench.spec import load_spec
    from openset.bench.store import Store
    from openset.bench.tables import results_of

    return results_of(load_spec(spec), Store(store, read_only=True), code, data)


def _check_output(output: Path) -> None:
    """Before anything is computed for it."""
    from openset.bench.store import check_place

    check_place(output, "--output")


def _print(results: Results) -> None:
    from rich.console import Console

    from openset.bench.spec import REFERENCE
    from openset.bench.suite import tables_of
    from openset.bench.tables import TESTABLE_SPLITS, comparison_table, terminal

    console = Console()
    console.print(*(terminal(table, console.width) for table in tables_of(results)))
    if results.spec.table in ("methods", "heads") and comparison_table(results) is None:
        needed = (
            f"a method called {REFERENCE!r}, another, and {TESTABLE_SPLITS} splits of one dataset and setting"
        )
        console.print(f"Paired tests need {needed}.", style="dim")


def _text(results: Results, form: Form) -> str:
    from openset.bench import tables
    from openset.bench.suite import tables_of

    shown = tables_of(results)
    if form is Form.csv:
        is_of_methods = results.spec.table != "settings"
        return tables.comma_separated(results) if is_of_methods else tables.table_as_csv(shown[0])
    if form is Form.latex:
        return "\n".join(map(tables.latex, shown))
    if form is Form.markdown:
        return "\n".join(map(tables.markdown, shown))
    import io

    from rich.console import Console

    file = io.StringIO()
    Console(file=file, width=80).print(*map(tables.terminal, shown))
    return file.getvalue()
