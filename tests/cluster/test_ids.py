"""Ids in several parts are found and named, in bounded memory; chance collisions of keys are not."""

from __future__ import annotations

import pandas as pd
import pytest

import openset
from openset.cluster import ids
from openset.cluster.ids import RepeatedId, check_ids
from openset.cluster.score import score_parts


@pytest.fixture
def out(problem_files, parts, tmp_path):
    score_parts(problem_files / "run", parts, tmp_path / "out")
    return tmp_path / "out"


def repeat_ids(parts):
    """One id in three parts, another in two."""
    table = pd.read_parquet(parts / "part-4.parquet")
    table.loc[[7, 8], "rid"] = ["p0-3", "p1-5"]
    table.to_parquet(parts / "part-4.parquet")
    table = pd.read_parquet(parts / "part-2.parquet")
    table.loc[0, "rid"] = "p0-3"
    table.to_parquet(parts / "part-2.parquet")


def test_ids_that_are_all_different(out):
    answer = check_ids(out)
    assert (answer.rows, answer.parts, answer.n_repeated, answer.is_complete) == (300, 5, 0, True)
    assert answer() == "300 ids in 5 parts, all different."
    (out / "_SUCCESS").unlink()
    assert check_ids(out)().endswith("Not all parts are there yet: there is no _SUCCESS.")


@pytest.mark.parametrize("memory", [2**26, 256])
def test_ids_in_several_parts_are_named(problem_files, parts, tmp_path, monkeypatch, memory):
    monkeypatch.setattr(ids, "MEMORY", memory)  # so that there are several partitions
    repeat_ids(parts)
    score_parts(problem_files / "run", parts, tmp_path / "out")
    answer = check_ids(tmp_path / "out")
    assert answer.n_repeated == 2
    assert sorted(answer.repeated, key=lambda entry: entry.id) == [
        RepeatedId("p0-3", ["part-0.parquet", "part-2.parquet", "part-4.parquet"]),
        RepeatedId("p1-5", ["part-1.parquet", "part-4.parquet"]),
    ]
    assert "2 of them more than once: 'p0-3' (part-0.parquet, part-2.parquet" in answer()


def test_different_ids_with_one_key_are_not_repeated(out, monkeypatch):
    monkeypatch.setattr(ids, "hash", lambda text: 1, raising=False)
    answer = check_ids(out)
    assert answer.n_repeated == 0 and answer.repeated == []


def test_numbers_as_ids_and_a_store(problem_files, parts, on_s3, tmp_path):
    for number in range(2):
        table = pd.read_parquet(parts / f"part-{number}.parquet").assign(rid=range(60))
        table.to_csv(tmp_path / "part.csv", index=False)
        on_s3.put("bucket", f"csv/part-{number}.csv", (tmp_path / "part.csv").read_bytes())
    score_parts(problem_files / "run", "s3://bucket/csv/", "s3://bucket/out/")
    assert check_ids("s3://bucket/out").n_repeated == 60


def test_without_ids_or_parts_there_is_nothing_to_look_at(problem_files, parts, tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no scored parts"):
        check_ids(tmp_path)
    result = openset.run(
        problem_files / "source.parquet",
        problem_files / "target.parquet",
        label="kind",
        features=["width", "height", "weight"],
        method="mahalanobis",
    )
    result.save(tmp_path / "run")
    score_parts(tmp_path / "run", parts, tmp_path / "out")
    with pytest.raises(ValueError, match="scored without an id column"):
        check_ids(tmp_path / "out")
