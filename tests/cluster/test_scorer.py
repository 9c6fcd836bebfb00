"""A scorer gives the rows of ``openset.score``, in the form that the rows came in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

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


def test_no_rows_give_no_rows_with_the_same_columns(problem_files, parts):
    table = pq.read_table(parts / "part-0.parquet")
    for carry in (None, ["width", "rid"], "all"):
        scorer = Scorer(problem_files / "run", carry=carry)
        some = scorer(table)
        for empty in (table[:0], table[:0].to_pandas(), pl.from_arrow(table[:0])):
            none = scorer(empty)
            assert none.num_rows == 0 and none.column_names == some.column_names
        assert scorer(table[:0]).schema.equals(some.schema)
    numbers = Scorer(problem_files / "run")({name: np.zeros(0) for name in ("width", "height", "weight")})
    assert numbers["novelty_score"].shape == (0,) and "id" in numbers
    with pytest.raises(ValueError, match="no column 'height'"):
        Scorer(problem_files / "run")(table[:0].drop_columns("height"))


def test_a_column_that_is_missing_is_told(problem_files):
    with pytest.raises(ValueError, match="no column 'height'"):
        Scorer(problem_files / "run")({"width": np.zeros(3)})


SPARK = """
import sys
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

run, rows, out = sys.argv[1:]


def load():
    from openset.cluster import Scorer

    scorer = Scorer(run)

    def predict(width, height, weight):
        scored = scorer({"width": width, "height": height, "weight": weight})
        return {"novelty_score": scored["novelty_score"], "predicted": scored["predicted"]}

    return predict


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
types = StructType().add("novelty_score", "double").add("predicted", "string")
score = predict_batch_udf(load, return_type=types, batch_size=25)
frame = spark.read.parquet(rows).withColumn("scored", score("width", "height", "weight"))
frame.select("rid", "scored.*").toPandas().to_parquet(out)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None, reason="needs pyspark and a Java runtime"
)
def test_the_recipe_for_spark(problem_files, parts, expected, tmp_path):
    command = [
        sys.executable,
        "-c",
        SPARK,
        problem_files / "run",
        parts / "part-0.parquet",
        tmp_path / "spark.parquet",
    ]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = pd.read_parquet(tmp_path / "spark.parquet").set_index("rid").sort_index()
    here = expected.to_pandas().set_index("rid").sort_index()
    assert found["novelty_score"].tolist() == here["novelty_score"].tolist()
    assert found["predicted"].tolist() == here["predicted"].tolist()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("dask") is None, reason="needs dask")
def test_the_recipe_for_dask(problem_files, parts, tmp_path):
    import dask.dataframe as dd

    scorer = Scorer(problem_files / "run")
    rows = dd.read_parquet(parts / "*.parquet")
    empty = scorer(pd.read_parquet(parts / "part-0.parquet")[:1]).to_pandas()[:0]
    found = rows.map_partitions(lambda part: scorer(part).to_pandas(), meta=empty).compute(
        scheduler="synchronous"
    )
    here = pd.concat(scorer(pd.read_parquet(path)).to_pandas() for path in sorted(parts.iterdir()))
    pd.testing.assert_frame_equal(found.reset_index(drop=True), here.reset_index(drop=True), check_dtype=False)
