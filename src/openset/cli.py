"""The ``openset`` command. Thin: every command imports what it needs when it runs, so that help is instant."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from openset._version import __version__
from openset.commands import add_commands
from openset.commands.bench import app as bench
from openset.commands.theory import app as theory

app = typer.Typer(
    name="openset",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Open-set domain adaptation under background shift.\n\n"
    "Is there a new class in the target batch, how large is it, which rows are of it, and what are the others?"
    "\n\nExit codes: 0 done, 2 wrong input or usage, 1 anything else (a full disk, a bug), 3 too many "
    "rows called new (score --fail-if-novel) or a new class noticed (watch), 4 cannot tell (watch), "
    "130 interrupted, 143 terminated. NO_COLOR=1 turns colours off.",
)

add_commands(app)
app.add_typer(bench, name="bench")
app.add_typer(theory, name="theory")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"openset {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of every command."""
    for stream in (sys.stdout, sys.stderr):  # a class may have a name that the terminal has no letters for
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@app.command()
def methods(
    as_json: Annotated[bool, typer.Option("--json", help="For machines: one JSON list.")] = False,
) -> None:
    """List the methods, what each needs and what it assumes.

    Example: openset methods
    """
    from openset.registry import methods as registered

    if as_json:
        import json

        keys = ("name", "class_name", "title", "reference", "needs", "assumes")
        typer.echo(json.dumps([{key: getattr(m, key) for key in keys} for m in registered()], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Methods", title_justify="left", show_lines=True)
    for heading in ("name", "method", "needs", "assumes"):
        table.add_column(heading, overflow="fold")
    for method in registered():
        about = f"{method.title}\n[dim]{method.class_name}; {method.reference}[/dim]"
        table.add_row(f"[bold]{method.name}[/bold]", about, method.needs, method.assumes)
    Console().print(table)


if __name__ == "__main__":
    app()
