"""The product's commands. Modules here import what they need when a command runs, so that help is instant."""

from __future__ import annotations

import typer

from openset.commands.demo import demo
from openset.commands.export import export
from openset.commands.fit import fit
from openset.commands.ids import ids
from openset.commands.look import compare, evaluate, inspect, report
from openset.commands.promote import promote
from openset.commands.review import review
from openset.commands.sample import sample
from openset.commands.score import score
from openset.commands.simulate import simulate
from openset.commands.watch import watch


def add_commands(app: typer.Typer) -> None:
    """Mount the commands on ``openset``."""
    for command in (
        sample,
        fit,
        review,
        promote,
        score,
        watch,
        ids,
        report,
        inspect,
        compare,
        evaluate,
        simulate,
        export,
        demo,
    ):
        app.command()(command)
