"""What commands print: text and tables on stdout, one message for an error on stderr, exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from openset.errors import Parameter

BAD_INPUT, FAILED, INTERRUPTED, TERMINATED = 2, 1, 130, 143
TOO_MANY_NOVEL = 3
"""Exit code of ``openset score --fail-if-novel``: all went well, and more rows are called novel than allowed."""
_WIDTH = 80
NOTICED, CANNOT_TELL = 3, 4
"""Exit codes of ``openset watch``: a new class was noticed; the last batch could not be judged.

``openset score --fail-if-novel`` ends with the second one too.
"""

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more; show where an error arose.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines: print one JSON object.")]


@contextmanager
def helpful_errors(
    verbose: bool, context: typer.Context | None = None, options: Mapping[str, str] | None = None
) -> Iterator[None]:
    """One message and an exit code in place of a traceback: 2 for what the user gave, 1 for a failing machine.

    A parameter that an error names is written as the option of the command in ``context``; ``options`` has the
    parameters whose option has another name. An interrupt and a request to terminate unwind, so that nothing
    half-written stays. Other errors are ours, and keep their traceback.
    """
    from openset._utils.files import written_paths
    from openset.errors import MissingExtraError, ParameterError

    before = len(written_paths())
    with _terminating():
        try:
            yield
        except KeyboardInterrupt:
            _tell(f"interrupted. {_written(written_paths()[before:])}", verbose)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, FileNotFoundError, IsADirectoryError, MissingExtraError) as error:
            message = str(error)
            if isinstance(error, ParameterError):
                message = error.written(lambda parameter: as_option(parameter, context, options or {}))
            _tell(" ".join(message.split()), verbose)
            raise typer.Exit(BAD_INPUT) from None
        except BrokenPipeError:  # who reads our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (OSError, MemoryError) as error:
            what = (
                "there is not enough memory" if isinstance(error, MemoryError) else f"the system refused: {error}"
            )
            _tell(f"{what.rstrip('.')}. {_written(written_paths()[before:])}", verbose)
            raise typer.Exit(FAILED) from None


def _written(paths: Sequence[Path]) -> str:
    """What was written before an error, each whole."""
    if not paths:
        return "Nothing was written; what was there before is unchanged."
    return f"Written before that, and whole: {', '.join(map(str, paths))}."


def as_option(parameter: Parameter, context: typer.Context | None, options: Mapping[str, str]) -> str:
    """A parameter as a command takes it: ``--fdr 0.1``, or ``--set name=value`` for one of the method."""
    own = [] if context is None else context.command.params
    known = {option.name: option for option in own if option.param_type_name == "option"}
    option = known.get(options.get(parameter.name, parameter.name))
    if option is None:
        return f"--set {parameter}" if "set_" in known and parameter.name.isidentifier() else str(parameter)
    flag = max(option.opts, key=len)
    if not parameter.value or getattr(option, "is_flag", False):
        return flag
    (value,) = parameter.value
    return f"{flag} {option.metavar or '...' if value is ... else value}"


@contextmanager
def _terminating() -> Iterator[None]:
    def unwind(*_: Any) -> None:
        raise SystemExit(TERMINATED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, unwind)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell(message: str, verbose: bool) -> None:
    if verbose:
        import traceback

        traceback.print_exc()
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text.assemble(("error: ", "bold red"), message), soft_wrap=not sys.stderr.isatty())


def show_text(text: str) -> None:
    """Print plain text, its first line bold where there is a terminal."""
    from rich.console import Console
    from rich.text import Text

    first, _, rest = text.partition("\n")
    Console().print(Text.assemble((first, "bold"), "\n", rest), soft_wrap=True)


def command_lines(arguments: Sequence[str], indent: str = "  ") -> list[str]:
    """A command as it is typed, at most 80 columns wide: a long one goes on behind a backslash.

    >>> command_lines(["inspect", "my run"])
    ["  openset inspect 'my run'"]
    """
    import shlex

    lines = [f"{indent}{shlex.join(['openset', *arguments])}"]
    if len(lines[0]) <= _WIDTH:
        return lines
    lines = [f"{indent}openset"]
    for word in map(shlex.quote, arguments):
        if len(lines[-1]) + 1 + len(word) > _WIDTH - 2:
            lines[-1] += " \\"
            lines.append(f"{indent}   ")
        lines[-1] += f" {word}"
    return lines


def show_table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], caption: str = "") -> None:
    """Print a table, with headings if there are; words in it are never read as markup."""
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    table = Table(
        *(Column(heading, overflow="fold") for heading in headings or [""] * len(rows[0])),
        box=box.SIMPLE_HEAD,
        show_header=bool(headings),
        caption=caption or None,
        caption_justify="left",
        pad_edge=False,
    )
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def show_json(value: Any) -> None:
    """Print one JSON value."""
    import json

    plain = "utf" not in (sys.stdout.encoding or "").lower()
    typer.echo(json.dumps(value, indent=1, ensure_ascii=plain, allow_nan=False))
