"""``openset sample``: two small real files to try ``openset fit`` on, and the command to type next."""

from __future__ import annotations

import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openset.commands.console import (
    AsJson,
    Quiet,
    Verbose,
    command_lines,
    helpful_errors,
    show_json,
    show_text,
)

if TYPE_CHECKING:
    from openset.shift.samples import Sample

_WIDTH = 78


def _sample_names(begun: str) -> list[str]:
    """For the shell: samples whose name starts like this."""
    from openset.shift.samples import SAMPLES

    return [name for name in SAMPLES if name.startswith(begun)]


def sample(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Which sample, see above.", autocompletion=_sample_names)
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write to.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files of the same names.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Write two small real files to try, and print the next command.

    digits: handwritten digits; the known ones shifted, digit 9 is new.
    digits-known: the same without the new digit.
    breast-cancer: benign tumours are known, malignant ones are new.
    wine: three cultivars, one is new; few rows.

    The data comes with scikit-learn, nothing is downloaded. DIR gets known.csv
    (labelled rows), batch.csv (unlabelled rows) and truth.csv (the batch with its
    labels, to check the answer with 'openset evaluate').

    Example: openset sample digits demo
    """
    with helpful_errors(verbose, context):
        from openset.shift.samples import make_sample, write_sample

        made = make_sample(name)
        write_sample(made, folder, overwrite=overwrite)
        if as_json:
            show_json(_described(name, made, folder))
        elif not quiet:
            show_text(_text(made, folder))


def fit_arguments(label: str, folder: Path) -> list[str]:
    """What to type after ``openset`` to fit a sample."""
    from openset.shift.samples import BATCH, ID, KNOWN

    files = [str(folder / KNOWN), str(folder / BATCH)]
    return ["fit", *files, "--label", label, "--id", ID, "--out", str(folder / "run")]


def typed(arguments: list[str]) -> str:
    """A command as it is typed.

    >>> typed(["inspect", "my run"])
    "openset inspect 'my run'"
    """
    return shlex.join(["openset", *arguments])


def _next_commands(made: Sample, folder: Path) -> list[list[str]]:
    from openset.shift.samples import TRUTH

    run = str(folder / "run")
    commands = [fit_arguments(made.label, folder), ["inspect", run]]
    if made.n_new:  # to evaluate takes rows of both
        commands.append(["evaluate", run, str(folder / TRUTH)])
    return commands


def _text(made: Sample, folder: Path) -> str:
    from importlib.util import find_spec

    from openset.shift.samples import BATCH, KNOWN, TRUTH

    new = f"{made.n_new} of them are new" if made.n_new else "none of them is new"
    fit, *others = map(command_lines, _next_commands(made, folder))
    install = [] if find_spec("pyarrow") else ["  (needs pyarrow: pip install 'openset[data]')"]
    return "\n".join(
        [
            *textwrap.wrap(made.about, _WIDTH),
            *textwrap.wrap(made.news, _WIDTH),
            "",
            f"Written to {folder}:",
            f"  {KNOWN}  {len(made.X)} labelled rows of {_counted(len(made.known_classes))}",
            f"  {BATCH}  {len(made.X_target)} unlabelled rows; {new}",
            f"  {TRUTH}  the batch with its labels, to check the answer",
            "",
            "Next: is there a new class in the batch? Half a minute:",
            *fit,
            *install,
            f"Then open {folder / 'run' / 'report.html'} in a browser, or type:",
            *(line for command in others for line in command),
        ]
    )


def _counted(classes: int) -> str:
    return "1 known class" if classes == 1 else f"{classes} known classes"


def _described(name: str, made: Sample, folder: Path) -> dict[str, Any]:
    from openset.shift.samples import BATCH, ID, KNOWN, TRUTH

    return {
        "name": name,
        "known": str(folder / KNOWN),
        "batch": str(folder / BATCH),
        "truth": str(folder / TRUTH),
        "label": made.label,
        "id": ID,
        "known_rows": len(made.X),
        "batch_rows": len(made.X_target),
        "known_classes": made.known_classes,
        "new_classes": made.new_classes,
        "new_rows": made.n_new,
        "next": [typed(command) for command in _next_commands(made, folder)],
    }
