"""A scorer gives the rows of ``openset.score``, in the form that the rows came in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import openset
from openset.cluster import Scorer


@pytest.fixture
def expected(problem_files, parts, tmp_path):
    openset.score(problem_files / "run", parts / "part-0.parquet", tmp_path / "one.parquet")
    return pq.read_table(tmp_path / "one.parquet")


def test_tables_and_frames(problem_files, parts, expected, on_s3):
    scorer = Scorer(problem_files / "run")
    assert scorer(pq.read_table(parts / "part-0.parquet")).equals(expected)
    assert scorer(pd.read_parquet(parts / "part-0.parquet")).equals(expected)
    assert Scorer("s3://bucket/run")(pl.read_parquet(parts / "part-0.parquet")).equals(expected)


def test_arrays_by_name_and_columns_that_come_back(problem_files, parts, expected):
    table = pq.read_table(parts / "part-0.parquet")
    arrays = {name: table[name].to_numpy() for name in ("width", "height", "weight")}
    found = Scorer(problem_files / "run", carry="all")(arrays)
    assert found["id"].tolist() == list(range(60))  # the run's id column is not there
    np.testing.assert_array_equal(found["novelty_score"], expected["novelty_score"].to_numpy())
    np.testing.assert_array_equal(found["height"], arrays["height"])


def test_vectors(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4)).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
    source = pa.table({"e": vectors, "kind": np.where(X[:, 0] > 0, "a", "b")})
    openset.run(source, source.drop_columns("kind"), label="kind", features="e", method="knn").save(
        tmp_path / "run"
    )
    scorer = Scorer(tmp_path / "run")
    np.testing.assert_array_equal(scorer({"e": X})["novelty_score"], scorer(source)["novelty_score"].to_numpy())


def test_a_column_that_is_missing_is_told(problem_files):
    with pytest.raises(ValueError, match="no column 'height'"):
        Scorer(problem_files / "run")({"width": np.zeros(3)})
