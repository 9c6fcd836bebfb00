"""Options that several commands take, each written once, and the settings that they make up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from openset.pipeline.settings import RunSettings


def _method_names(begun: str) -> list[str]:
    """For the shell: methods whose name starts like this."""
    from openset.registry import methods

    return [method.name for method in methods("table") if method.name.startswith(begun)]


Label = Annotated[str | None, typer.Option(metavar="COL", help="Column of known classes in SOURCE.")]
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="Column that is a feature; repeatable.", show_default="all columns"),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="Column that is no feature; repeatable; '*' stands for any text."),
]
As = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="COL=KIND",
        help="Read a column as category, number, date, text or id; repeatable.",
        show_default="by its values",
    ),
]
Carry = Annotated[
    list[str] | None,
    typer.Option(metavar="COLS", help="Columns that the scored table has too: a,b or all; repeatable."),
]
Text = Annotated[str | None, typer.Option(metavar="COL", help="Column of text, to be encoded.")]
Image = Annotated[str | None, typer.Option(metavar="COL", help="Column of image paths, to be encoded.")]
Encoder = Annotated[str | None, typer.Option(help="Encoder of text or images: a name or folder.")]
Method = Annotated[
    str | None,
    typer.Option(help="A method of 'openset methods'.", show_default="color", autocompletion=_method_names),
]
Fpr = Annotated[float | None, typer.Option(help="Share of source that may be called new.", show_default="0.01")]
Fdr = Annotated[
    float | None,
    typer.Option(help="Mark rows to list, at most this share of them known.", show_default="none marked"),
]
MaxDensityRatio = Annotated[
    float | None,
    typer.Option(
        help="How many times as common a known kind of row may be in TARGET.",
        show_default="color reads it off the rows; 12 for color_paper and conop, else 1",
    ),
]
Align = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="none, classes, clusters, standardize, coral or transport.",
        show_default="classes if TARGET moved as a whole",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Equal seeds give equal results.", show_default="0")]
FitRows = Annotated[
    str | None,
    typer.Option(
        metavar="N|all",
        help="Fit on a sample of N rows where SOURCE or TARGET has more.",
        show_default="100000",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; repeatable."),
]
SkipBad = Annotated[
    bool | None, typer.Option("--skip-bad", help="Skip rows that cannot be read, or whose id came before.")
]
AllowDownload = Annotated[
    bool, typer.Option("--allow-download", help="An encoder may be downloaded from its hub.")
]
IgnoreTargetLabels = Annotated[
    bool | None, typer.Option("--ignore-target-labels", help="Accept a TARGET that has labels, and ignore them.")
]


def settings_from(context: typer.Context, file: RunSettings | None = None) -> RunSettings:
    """The settings that a command was given, over those of a file: its options have the names of settings."""
    from dataclasses import fields

    from openset.pipeline.settings import RunSettings, merged, parse_assignments

    given = {field.name: context.params.get(field.name) for field in fields(RunSettings)}
    paths = {name: str(value) for name, value in given.items() if isinstance(value, Path)}
    named = {
        name: tuple(context.params[name]) if context.params.get(name) else None for name in ("features", "drop")
    }
    named["carry"] = split_columns(context.params.get("carry"))
    parameters = parse_assignments(context.params.get("set_") or [])
    if context.params.get("align") is not None:
        parameters["align"] = context.params["align"]
    lists = {**named, "parameters": parameters, "kinds": _kinds(context.params.get("as_") or [])}
    return merged(file or RunSettings(), {**given, **paths, **lists})


def split_columns(given: list[str] | None) -> tuple[str, ...] | None:
    """The names in ``--carry a,b --carry c``; None if there are none.

    >>> split_columns(["a, b", "c"])
    ('a', 'b', 'c')
    """
    names = [name.strip() for part in given or () for name in part.split(",")]
    return tuple(name for name in names if name) or None


def _kinds(assignments: list[str]) -> dict[str, str]:
    """``COL=KIND`` of ``--as``; a column's name may hold the sign, a kind does not."""
    found = {}
    for assignment in assignments:
        column, equals, kind = assignment.rpartition("=")
        if not equals or not column:
            raise ValueError(f"--as {assignment} is not valid: write --as COL=KIND, such as zip=category.")
        found[column] = kind.strip()
    return found
