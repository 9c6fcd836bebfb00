"""The command line as tests use it: in this process, or as a command of its own."""

from __future__ import annotations

import sys

from typer.testing import CliRunner

from openset.cli import app

COMMAND = [sys.executable, "-m", "openset.cli"]
QUICK = ("--method", "mahalanobis", "--set", "validation_fraction=0.4")


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "80", "NO_COLOR": "1"})


def fit(folder, out, *more):
    files = (folder / "source.parquet", folder / "target.parquet")
    return call("fit", *files, "--label", "kind", "--id", "rid", *QUICK, "--out", out, *more)
