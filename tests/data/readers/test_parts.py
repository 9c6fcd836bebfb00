"""Several files as one table: patterns, folders of parts, hive partitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openset
from openset.data import iter_batches, read_table
from openset.data.readers.open import OPENERS, open_source
from openset.data.readers.parts import HIVE_NULL, is_pattern, open_parts, part_paths, parts_in
from product_files import NAMES

TABLE = pd.DataFrame({"x": np.arange(10.0), "town": list("abcdefghij"), "nr": np.arange(10)})


def write(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    {"parquet": table.to_parquet, "csv": table.to_csv, "jsonl": table.to_json}[path.suffix[1:]](
        path,
        **{"parquet": {}, "csv": {"index": False}, "jsonl": {"orient": "records", "lines": True}}[
            path.suffix[1:]
        ],
    )


def write_parts(folder, suffix, cuts, table=TABLE):
    for number, part in enumerate(np.split(np.arange(len(table)), cuts)):
        write(folder / f"part-{number:02}.{suffix}", table.iloc[part])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
@settings(max_examples=15)
@given(cuts=st.lists(st.integers(1, 9), max_size=4, unique=True).map(sorted), batch_rows=st.integers(1, 12))
def test_parts_are_the_table_that_was_cut(tmp_path_factory, suffix, cuts, batch_rows):
    folder = tmp_path_factory.mktemp("parts")
    write_parts(folder, suffix, cuts)
    asked = {"features": "x", "id": "nr", "cells": ["town"], "carry": ["town"]}
    for source in (folder, f"{folder}/*.{suffix}", f"{folder}/**/part-*.{suffix}"):
        found = read_table(source, **asked)
        assert found.rows.tolist() == found.ids.tolist() == list(range(10))
        assert found.X[:, 0].tolist() == TABLE["x"].tolist()
        assert (
            found.table["town"].values.to_pylist() == found.carried["town"].to_pylist() == TABLE["town"].tolist()
        )
        batches = list(iter_batches(source, batch_rows=batch_rows, **asked))
        assert [row for batch in batches for row in batch.rows.tolist()] == list(range(10))
        assert max(map(len, batches)) <= batch_rows


def test_parts_may_have_their_columns_in_another_order(tmp_path):
    write(tmp_path / "a.parquet", TABLE.iloc[:4])
    write(tmp_path / "b.parquet", TABLE.iloc[4:][["nr", "town", "x"]])
    assert read_table(tmp_path, features=["x", "nr"]).X.tolist() == TABLE[["x", "nr"]].to_numpy().tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_hive_partitions_are_columns(tmp_path, suffix):
    for year in (2023, 2024):
        for town in ("New%20York", HIVE_NULL):
            write(tmp_path / f"year={year}" / f"town={town}" / f"p.{suffix}", TABLE[["x"]].iloc[: year - 2020])
    found = read_table(tmp_path, cells=["x", "year", "town"])
    # in the order of the names: New%20York comes before the null partition
    assert found.table["year"].values.to_pylist() == ["2023"] * 6 + ["2024"] * 8
    assert (
        found.table["town"].values.to_pylist() == (["New York"] * 3 + [None] * 3) + ["New York"] * 4 + [None] * 4
    )
    assert found.table["x"].numbers().tolist() == [*range(3), *range(3), *range(4), *range(4)]
    assert read_table(tmp_path, cells=["year"]).rows.tolist() == list(range(14)), (
        "a partition alone is counted too"
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_partition_can_be_the_label(tmp_path, suffix):
    for number, kind in enumerate(("cat", "dog")):
        write(tmp_path / f"kind={kind}" / f"p.{suffix}", TABLE[["x", "nr"]].iloc[3 * number : 3 * number + 3])
    found = read_table(tmp_path, label="kind", id="nr", features="x")
    assert found.y.tolist() == ["cat"] * 3 + ["dog"] * 3 and found.ids.tolist() == list(range(6))


def test_folders_above_the_data_are_no_partitions(tmp_path):
    """The columns of a table do not depend on where it lies."""
    for place in ("plain", "run=5"):
        write_parts(tmp_path / place, "csv", [5])
        for source in (tmp_path / place, f"{tmp_path}/{place}/*.csv"):
            assert list(open_source(source).kinds) == ["x", "town", "nr"]


def test_broken_rows_are_numbered_through_all_parts(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4,5\n")
    (tmp_path / "b.csv").write_text("x,y\n6,7\n8\n9,10\n")
    found = read_table(f"{tmp_path}/*.csv", features=["x", "y"], skip_bad=True)
    assert found.rows.tolist() == [0, 2, 4] and [bad.row for bad in found.skipped] == [1, 3]
    assert found.X.tolist() == [[1, 2], [6, 7], [9, 10]]


def test_what_is_a_pattern_and_which_files_it_names(tmp_path):
    (tmp_path / "a[1].csv").write_text("x\n1\n")
    (tmp_path / "b1.csv").write_text("x\n2\n")
    (tmp_path / "_log.csv").write_text("")
    (tmp_path / ".hidden.csv").write_text("")
    (tmp_path / "c.csv").mkdir()
    assert not is_pattern(tmp_path / "a[1].csv") and is_pattern(tmp_path / "b[1].csv")
    assert part_paths(tmp_path / "a[1].csv") == [tmp_path / "a[1].csv"]
    assert part_paths(tmp_path / "*.csv") == [tmp_path / "a[1].csv", tmp_path / "b1.csv"]
    assert part_paths(tmp_path / "none.csv") == part_paths(tmp_path / "none*") == []
    assert read_table(tmp_path / "a[1].csv").X.tolist() == [[1]]
    assert parts_in(tmp_path, (".csv",)) == [tmp_path / "a[1].csv", tmp_path / "b1.csv"]


def test_hidden_and_unknown_files_of_a_folder_are_no_parts(tmp_path):
    for name in (
        "a.csv",
        "deep/b.csv",
        "_delta/c.csv",
        ".git/d.csv",
        ".writing-0123456789abcdef.csv",
        "notes.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    assert parts_in(tmp_path, tuple(OPENERS)) == [tmp_path / "a.csv", tmp_path / "deep" / "b.csv"]


def test_a_folder_and_one_file_of_it_are_named_as_they_were_given(tmp_path):
    write_parts(tmp_path / "d", "csv", [5])
    opened = open_source(tmp_path / "d")
    assert opened.name == str(tmp_path / "d") and opened.folder == tmp_path / "d" and not opened.typed
    assert open_source(f"{tmp_path}/d/*.csv").name == f"{tmp_path}/d/*.csv"
    write(tmp_path / "e" / "deep" / "a.csv", TABLE)
    write(tmp_path / "e" / "b.csv", TABLE)
    assert open_source(tmp_path / "e").folder == tmp_path / "e", "where image paths start"


def test_a_column_that_holds_numbers_in_some_parts_only_is_of_no_kind():
    def opened(path):
        kinds = {"x": "number" if path.stem == "a" else "other", "y": "number"}
        return openset.data.readers.source.Source(str(path), Path(), kinds, None)

    assert open_parts(Path(), "both", [Path("a.csv"), Path("b.csv")], opened).kinds == {
        "x": "other",
        "y": "number",
    }


def test_parts_that_do_not_fit_together_are_told(tmp_path):
    write(tmp_path / "a.csv", TABLE)
    write(tmp_path / "b.csv", TABLE.rename(columns={"town": "city"}))
    with pytest.raises(
        ValueError,
        match=r"b\.csv lacks 'town' and also has 'city', unlike .*a\.csv: parts of one table have the same",
    ):
        read_table(tmp_path)
    write(tmp_path / "b.csv", TABLE.drop(columns="nr"))
    with pytest.raises(ValueError, match=r"b\.csv lacks 'nr', unlike"):
        read_table(tmp_path / "*.csv")
    (tmp_path / "b.csv").unlink()
    write(tmp_path / "b.parquet", TABLE)
    with pytest.raises(
        ValueError, match=r"holds files of several formats \(\.csv, \.parquet\): keep one of them"
    ):
        read_table(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"\*\.feather matches no file. Give a pattern such as 'data/"):
        read_table(tmp_path / "*.feather")


def test_a_run_is_fitted_and_scored_from_parts_as_from_one_file(problem_files, tmp_path):
    target = pd.read_parquet(problem_files / "target.parquet")
    write_parts(tmp_path / "target", "parquet", [100, 250], target)
    given_ = {"label": "kind", "id": "rid", "features": list(NAMES), "method": "mahalanobis",
              "parameters": {"validation_fraction": 0.4}}  # fmt: skip
    source = problem_files / "source.parquet"
    whole = openset.run(source, problem_files / "target.parquet", **given_)
    for name, path in (("folder", tmp_path / "target"), ("pattern", f"{tmp_path}/target/part-*.parquet")):
        parts = openset.run(source, path, **given_)
        pd.testing.assert_frame_equal(parts.to_frame(), whole.to_frame())
        parts.save(tmp_path / name)
        pd.testing.assert_frame_equal(openset.load_run(tmp_path / name).to_frame(), whole.to_frame())
    target.iloc[:5].to_parquet(tmp_path / "target" / "part-09.parquet")
    for name in ("folder", "pattern"):
        with pytest.raises(ValueError, match="changed since the run was fitted"):
            openset.load_run(tmp_path / name)
