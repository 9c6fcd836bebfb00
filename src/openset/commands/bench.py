"""``openset bench``: run the paper's experiments, print their tables, draw their figures, export the runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openset._utils.downloads import downloads
from openset._utils.text import counted
from openset.commands.console import FAILED, INTERRUPTED, helpful_errors
from openset.commands.options import AllowDownload

if TYPE_CHECKING:
    from openset.bench.results import Results
    from openset.bench.spec import Spec
    from openset.bench.sweep import SweepReport

app = typer.Typer(help="The paper's experiments: run, continue, print tables, draw.", no_args_is_help=True)


class Where(StrEnum):
    """Where runs are carried out."""

    local = "local"
    ray = "ray"


class Form(StrEnum):
    """How a table is written."""

    terminal = "terminal"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"


class Exported(StrEnum):
    """What is exported."""

    runs = "runs"
    heads = "heads"


SpecName = Annotated[str, typer.Argument(metavar="SPEC", help="A name from `bench list`, or a .toml file.")]
StorePath = Annotated[Path, typer.Option("--store", help="The SQLite file with all results.")]
DataFolder = Annotated[Path | None, typer.Option("--data", help="Folder with the datasets.")]
Code = Annotated[str | None, typer.Option(help="Show the runs made with this code version.")]
STORE = Path("openset-bench.sqlite")
PAGE = ".md"
FORMS = {".csv": Form.csv, ".tex": Form.latex, ".txt": Form.terminal}
"""The format by the suffix of a file; an .md file is a whole page of results."""


@app.command("list")
def list_command(data: DataFolder = None) -> None:
    """List the experiments and the data that each of them needs.

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
    for heading in ("dataset", "what", "files in --data"):
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
    missing = spec.missing_datasets(data)
    if missing:
        return f"needs --data with the files of {' and '.join(missing)}, see below"
    replaced = [f"{name} by {stand_in}" for name, stand_in in spec.stand_ins(data).items()]
    replaced += [f"{name} lacks {files}" for name, files in spec.partly_here(data).items()]
    on_stand_ins = f", on stand-ins ({'; '.join(replaced)})" if replaced else ""
    return f"yes, {len(expand(spec, data))} runs{on_stand_ins}"


@app.command("run")
def run_command(
    context: typer.Context,
    spec: SpecName,
    data: DataFolder = None,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 1,
    on: Annotated[Where, typer.Option(help="On this machine, or on a Ray cluster.")] = Where.local,
    store: StorePath = STORE,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try stored failures again.")] = False,
    allow_download: AllowDownload = False,
) -> None:
    """Run an experiment and print its table; the same command continues an interrupted one.

    Examples:

        openset bench run quick --jobs 2

        openset bench run my-experiment.toml --data ../shared/data --jobs 2
    """
    from openset.bench.results import results_of
    from openset.bench.spec import load_spec
    from openset.bench.store import Store
    from openset.bench.sweep import check_available, sweep

    options: dict[str, Any] = {"data_dir": data, "jobs": jobs, "on": on.value, "retry_failed": retry_failed}
    with helpful_errors(verbose=False, context=context), downloads(allow_download):
        chosen = load_spec(spec)
        check_available(chosen, data)
        kept = Store(store)
        missing = chosen.partly_here(data)
        for name, stand_in in chosen.stand_ins(data).items():
            lacks = (
                f"{data} lacks {missing[name]} of {name}"
                if name in missing
                else f"{name} is not in {data or '--data'}"
            )
            typer.echo(f"{lacks}: using {stand_in} instead.", err=True)
        try:
            report = sweep(chosen, kept, **options, show_progress=True)
        except KeyboardInterrupt:
            typer.echo(f"Stopped. Finished runs are in {store}; the same command continues.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        results = results_of(chosen, kept, data_dir=data)
    _print(results)
    typer.echo(f"{_summary(report)}; results in {store}.", err=True)
    if report.failed or report.failed_before:
        raise typer.Exit(FAILED)


def _summary(report: SweepReport) -> str:
    stored = f"{report.skipped} already stored"
    if report.failed_before:
        stored += f" ({report.failed_before} of them failed: --retry-failed tries again)"
    done = report.planned - report.skipped
    return f"{done} runs in {report.seconds:.0f} s, {stored}, {report.failed} failed"


@app.command("table")
def table_command(
    spec: SpecName,
    form: Annotated[
        Form | None, typer.Option("--format", help="The format; by default that of the file's suffix.")
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
    from openset._utils.files import write_atomically
    from openset.bench.results_page import results_page

    with helpful_errors(verbose=False):
        if output is not None:
            _check_output(output, store)
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
        write_atomically(output, text.encode())


def _form_of(output: Path) -> Form | None:
    """The format of a file by its suffix; None for a page of results."""
    if output.suffix not in (PAGE, *FORMS):
        known = ", ".join((PAGE, *FORMS))
        raise ValueError(f"{str(output)!r} has no known suffix: use one of {known}, or give --format.")
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
        _check_output(output, store)
        draw(_results(spec, store, code, data), output)


@app.command("summary")
def summary_command(
    results: Annotated[Path, typer.Option(help="The folder with the pages of results.")],
    output: Annotated[Path, typer.Option("--output", "--out", help="An .md file.")],
) -> None:
    """Write the paper's headline table with ours beside it, and which of its claims hold, from pages of results.

    Example: openset bench summary --results docs/results --out docs/results/summary.md
    """
    from openset._utils.files import write_atomically
    from openset.bench.summary import summary_page

    with helpful_errors(verbose=False):
        if output.suffix != PAGE:
            raise ValueError(f"{str(output)!r} is no page: its name must end in {PAGE}.")
        command = f"openset bench summary --results {results} --out {output}"
        write_atomically(output, summary_page(results, command).encode())


@app.command("export")
def export_command(
    output: Annotated[Path, typer.Option(help="A .parquet or .csv file.")],
    what: Annotated[Exported, typer.Option(help="One row per run, or per novelty head.")] = Exported.runs,
    store: StorePath = STORE,
) -> None:
    """Write every stored run to Parquet or CSV.

    Example: openset bench export --output runs.parquet
    """
    from openset.bench.exchange import export, head_rows, run_rows
    from openset.bench.store import Store

    with helpful_errors(verbose=False):
        _check_output(output, store)
        stored = Store(store, read_only=True).all()
        rows = run_rows(stored) if what is Exported.runs else head_rows(stored)
        export(rows, output)
    typer.echo(f"{len(rows)} rows in {output}.", err=True)


@app.command("import")
def import_command(
    runs: Annotated[Path, typer.Argument(help="A .parquet or .csv file of `bench export`.")],
    store: StorePath = STORE,
) -> None:
    """Add exported runs to a store, so that a sweep continues where another machine stopped.

    Of novelty heads, runs have those with metrics: all heads of the network that was kept.

    Example: openset bench import runs.parquet
    """
    from openset.bench.exchange import read_runs
    from openset.bench.store import Store

    with helpful_errors(verbose=False):
        found = read_runs(runs)
        added = Store(store).add(found)
    typer.echo(f"{added} runs added to {store}; {len(found) - added} were there already.", err=True)


@app.command("adopt")
def adopt_command(
    spec: SpecName,
    data: DataFolder = None,
    sample: Annotated[int, typer.Option(min=1, help="Runs of each method and dataset to compute again.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes, one thread each.")] = 1,
    store: StorePath = STORE,
) -> None:
    """Keep stored runs of older code, if a sample of them gives the same numbers with today's code.

    For a change of code that should alter no number: else a sweep starts from the beginning.

    Example: openset bench adopt results-sun --data ../shared/data --jobs 2
    """
    from openset.bench.adopt import adopt
    from openset.bench.spec import load_spec
    from openset.bench.store import Store

    options: dict[str, Any] = {"data_dir": data, "sample": sample, "jobs": jobs}
    with helpful_errors(verbose=False):
        found = adopt(load_spec(spec), Store(store), **options, show_progress=True)
    for group in found:
        kept = f"{counted(group.n_adopted, 'run')} kept, {group.n_checked} computed again and equal"
        answer = f"none kept: {group.difference}" if group.difference else kept
        typer.echo(f"{group.method} on {group.dataset}: {answer}.")
    if not found:
        typer.echo(f"{store} has no runs of older code that {spec} lacks.")


@app.command("encoder")
def encoder_command(
    weights: Annotated[Path, typer.Argument(metavar="WEIGHTS", help="A ResNet of torchvision: resnet50-….pth.")],
    data: Annotated[Path, typer.Option("--data", help="Folder with the datasets.")],
    name: Annotated[str | None, typer.Option(help="Its name in specs; that of the file by default.")] = None,
) -> None:
    """Make an encoder of the data folder from a ResNet of torchvision, such as the paper's ResNet50.

    Example: openset bench encoder resnet50-0676ba61.pth --data DATA --name resnet-50
    """
    from openset.features.torchvision_resnet import save_torchvision_resnet

    folder = data / "encoders" / (name or weights.stem)
    with helpful_errors(verbose=False):
        save_torchvision_resnet(weights, folder)
    typer.echo(f'{folder} was written: in a spec, encoder = "{folder.name}".', err=True)


def _results(spec: str, store: Path, code: str | None, data: Path | None) -> Results:
    from openset.bench.results import results_of
    from openset.bench.spec import load_spec
    from openset.bench.store import Store

    return results_of(load_spec(spec), Store(store, read_only=True), code, data)


def _check_output(output: Path, store: Path) -> None:
    """Raise if the file cannot be written or is the store, before anything is computed for it."""
    from openset._utils.files import check_not_input
    from openset.bench.store import check_output_path

    check_output_path(output, "--output")
    check_not_input(output, store)


def _print(results: Results) -> None:
    from rich.console import Console

    from openset.bench.spec import REFERENCE
    from openset.bench.table_formats import terminal
    from openset.bench.tables import TESTABLE_SPLITS, comparison_table, tables_of

    console = Console()
    console.print(*(terminal(table, console.width) for table in tables_of(results)))
    if results.spec.table in ("methods", "heads") and comparison_table(results) is None:
        needed = (
            f"a method labelled {REFERENCE!r}, another, and {TESTABLE_SPLITS} splits of one dataset and setting"
        )
        console.print(f"Paired tests need {needed}.", style="dim")


def _text(results: Results, form: Form) -> str:
    from openset.bench.results import results_as_csv
    from openset.bench.table_formats import latex, markdown, table_as_csv, terminal
    from openset.bench.tables import tables_of

    shown = tables_of(results)
    if form is Form.csv:
        return table_as_csv(shown[0]) if results.spec.table == "settings" else results_as_csv(results)
    if form is Form.latex:
        return "\n".join(map(latex, shown))
    if form is Form.markdown:
        return "\n".join(map(markdown, shown))
    import io

    from rich.console import Console

    file = io.StringIO()
    Console(file=file, width=80).print(*map(terminal, shown))
    return file.getvalue()
