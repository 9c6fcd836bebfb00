"""``openset ids``: ids that occur in several parts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from openset.commands.console import BAD_INPUT, AsJson, Quiet, Verbose, helpful_errors, show_json


def ids(
    context: typer.Context,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder of parts that 'openset score' wrote.")],
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Look for ids that occur more than once in the scored parts of OUT.

    'openset score' checks ids in each part. This reads the ids of all parts, sorts
    them on disk (eight bytes each, in the temporary folder), and names those that
    occur more than once, with their parts. Memory does not grow with the rows.

    Exit codes: 0 all different, 2 some are not, or wrong input, 1 anything else, 130
    interrupted.

    Example: openset ids s3://bucket/out/
    """
    with helpful_errors(verbose, context):
        from openset.cluster.ids import check_ids

        answer = check_ids(out)
        if as_json:
            show_json(asdict(answer))
        elif answer.n_repeated:
            raise ValueError(answer())
        elif not quiet:
            typer.echo(answer())
        if answer.n_repeated:
            raise typer.Exit(BAD_INPUT)
