"""``openset export``: a run's network for programs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openset.commands.console import AsJson, Quiet, Verbose, helpful_errors, show_json


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder that 'openset fit' wrote.")],
    onnx: Annotated[Path, typer.Option(metavar="FILE", help="ONNX file to write.")],
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Write a run's network as one ONNX graph.

    For a table with categories or gaps, the graph has one input for each column:
    numbers in float64 (NaN where missing), categories as text ("" where missing).
    Otherwise its input is x: rows of features in float32, in the run's order of
    columns; for text or images, what the encoder returns for them. Dates, hashed
    categories and several blocks cannot be in the graph: x has their features.

    Outputs: novelty_score, probabilities and label, an index into the list of
    labels in the file's metadata.

    Example: openset export run --onnx model.onnx
    """
    with helpful_errors(verbose):
        from openset._utils.files import check_not_input
        from openset.pipeline.export import export_run

        if onnx.suffix != ".onnx":
            check_not_input(onnx, run)
        exported = export_run(run, onnx)
        if as_json:
            show_json({"out": str(onnx), **exported.to_dict()})
        elif not quiet:
            typer.echo(f"{exported.method} written to {onnx}. {exported.sentence}")
