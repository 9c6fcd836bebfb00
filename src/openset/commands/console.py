"""How the commands speak: text on stdout, errors in one message on stderr, exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

BAD_INPUT, FAILED, INTERRUPTED, TERMINATED = 2, 1, 130, 143

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more; show where an error arose.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines: print one JSON object.")]


@contextmanager
def helpful_errors(verbose: bool, flags: Mapping[str, str] | None = None) -> Iterator[None]:
    """One message and an exit code in place of a traceback: 2 for what the user gave, 1 for a failing machine.

    ``flags`` says how words of the Python interface are put on the command line. An interrupt and a request to
    terminate unwind, so that nothing half-written stays. Other errors are ours, and keep their traceback.
    """
    from openset.errors import MissingExtraError

    with _terminating():
        try:
            yield
        except KeyboardInterrupt:
            _tell("interrupted: nothing was written.", verbose)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, FileNotFoundError, IsADirectoryError, MissingExtraError) as error:
            message = " ".join(str(error).split())
            for words, flag in (flags or {}).items():
                message = message.replace(words, flag)
            _tell(message, verbose)
            raise typer.Exit(BAD_INPUT) from None
        except BrokenPipeError:  # who reads our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            _tell(f"the system refused: {error}. What was there before is unchanged.", verbose)
            raise typer.Exit(FAILED) from None


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
