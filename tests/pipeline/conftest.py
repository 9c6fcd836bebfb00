"""Runs that several of these files look at."""

from __future__ import annotations

import pytest

import openset
from product_files import fit_problem


@pytest.fixture(scope="package")
def result(problem_files):
    return fit_problem(problem_files)


@pytest.fixture(scope="package")
def color(problem_files):
    """CoLOR on the same files, in few steps: a run with a test of its own."""
    return openset.run(
        problem_files / "source.parquet",
        problem_files / "target.parquet",
        label="kind",
        id="rid",
        fdr=0.1,
        max_density_ratio=8,
        parameters={"max_steps": 200, "evaluate_every": 100, "grid": [0.05, 0.1], "groups": [(0.3, 0.0, 0.6)]},
    )
