"""Options that several commands take, each written once."""

from __future__ import annotations

from typing import Annotated

import typer


def _method_names(begun: str) -> list[str]:
    """For the shell: methods whose name begins so."""
    from openset.registry import methods

    return [method.name for method in methods("table") if method.name.startswith(begun)]


Label = Annotated[str | None, typer.Option(metavar="COL", help="Column of known classes in SOURCE.")]
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="Column of numbers, or of vectors; repeatable.", show_default="all numbers"),
]
Text = Annotated[str | None, typer.Option(metavar="COL", help="Column of text, to be encoded.")]
Image = Annotated[str | None, typer.Option(metavar="COL", help="Column of image paths, to be encoded.")]
Encoder = Annotated[str | None, typer.Option(help="Encoder of text or images: a name or folder.")]
Method = Annotated[
    str | None,
    typer.Option(help="A method of 'openset methods'.", show_default="color", autocompletion=_method_names),
]
Fpr = Annotated[float | None, typer.Option(help="Share of source that may be called novel.", show_default="0.01")]
Seed = Annotated[int | None, typer.Option(help="Equal seeds give equal results.", show_default="0")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method; repeatable."),
]
SkipBad = Annotated[
    bool | None, typer.Option("--skip-bad", help="Leave out rows with missing or unusable values.")
]
IgnoreTargetLabels = Annotated[
    bool | None, typer.Option("--ignore-target-labels", help="Go on though TARGET has the label column.")
]
