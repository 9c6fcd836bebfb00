"""Two files to a table of simulations: the same as ``openset.tune`` on the rows in them."""

from __future__ import annotations

import numpy as np
import pytest

import openset
from openset.data import read_table
from openset.pipeline.settings import RunSettings
from openset.pipeline.simulate import SHARES, simulate
from product_files import NAMES

SETTINGS = RunSettings(
    label="kind", id="rid", method="mahalanobis", fpr=0.02, seed=3, parameters={"validation_fraction": 0.4}
)


def test_it_is_tune_on_the_rows_of_the_files(problem_files):
    files = problem_files / "source.parquet", problem_files / "target.parquet"
    found = simulate(SETTINGS, *files, novel_fractions=[0.1])
    source, target = read_table(files[0], label="kind", features=NAMES), read_table(files[1], features=NAMES)
    estimator = openset.Mahalanobis(fpr=0.02, random_state=3, validation_fraction=0.4)
    expected = openset.tune(
        source.X, source.y, target.X, estimator=estimator, grids={"as it is": {}}, novel_fractions=(0.1,),
        random_state=3,
    )  # fmt: skip
    for ours, theirs in zip((*found.table, *found.controls), (*expected.table, *expected.controls), strict=True):
        assert ours.novel_class == theirs.novel_class and ours.verdict == theirs.verdict
        np.testing.assert_equal(ours.auprc, theirs.auprc)  # NaN in a control
        assert (ours.low, ours.noticed) == (theirs.low, theirs.noticed)


def test_the_method_is_checked_before_anything_is_read():
    with pytest.raises(ValueError, match="method='magic' is not valid"):
        simulate(RunSettings(method="magic"), "nowhere.csv", "nowhere.csv")
    with pytest.raises(FileNotFoundError, match="nowhere.csv"):
        simulate(RunSettings(), "nowhere.csv", "nowhere.csv")
    assert SHARES == (0.05, 0.1)
