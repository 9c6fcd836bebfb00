"""One file into one file, here or on a store."""

from __future__ import annotations

import pytest

import openset
from openset.cluster.one_file import score_file


def test_a_file_of_a_store_gives_the_bytes_of_a_file_here(problem_files, parts, on_s3, tmp_path):
    answer = openset.score(problem_files / "run", parts / "part-1.parquet", tmp_path / "here.parquet")
    expected = (tmp_path / "here.parquet").read_bytes()
    for data, out in (
        ("s3://bucket/in/part-1.parquet", "s3://bucket/scored.parquet"),
        (str(parts / "part-1.parquet"), "s3://bucket/scored.parquet"),
        ("s3://bucket/in/part-1.parquet", str(tmp_path / "there.parquet")),
    ):
        on_s3.buckets["bucket"].pop("scored.parquet", None)
        assert score_file("s3://bucket/run", data, out) == answer
        local = tmp_path / "there.parquet"
        assert (
            local.read_bytes() if out == str(local) else on_s3.buckets["bucket"]["scored.parquet"]
        ) == expected


def test_what_is_not_there_or_more_than_one_file_is_told(problem_files, on_s3, tmp_path):
    run, out = str(problem_files / "run"), str(tmp_path / "out.parquet")
    with pytest.raises(FileNotFoundError, match="s3://bucket/in/none.csv does not exist"):
        score_file(run, "s3://bucket/in/none.csv", out)
    with pytest.raises(ValueError, match="scored part by part: name a folder"):
        score_file(run, "s3://bucket/in/*.parquet", out)
