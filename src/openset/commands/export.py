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

    Input x: rows of features in float32, in the run's order of columns. Outputs:
    novelty_score, probabilities and label, an index into the list of labels in
    the file's metadata. For a run on text or images, x is what the encoder
    returns for them.

    Example: openset export run --onnx model.onnx
    """
    with helpful_errors(verbose):
        from openset._utils.files import check_not_input
        from openset.pipeline.result import load_model, read_summary

        if onnx.suffix != ".onnx":
            check_not_input(onnx, run)
        summary = read_summary(run)
        model = load_model(run)
        model.to_onnx(onnx)
        if as_json:
            show_json({"out": str(onnx), "features": summary.to_dict()["data"]["features"]})
        elif not quiet:
            features = summary.data.features
            columns = ", ".join(features) if isinstance(features, list) else f"encoder {features.encoder}"
            typer.echo(f"{type(model).__name__} written to {onnx}. Its input x is made of: {columns}")
