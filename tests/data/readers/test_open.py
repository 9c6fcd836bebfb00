from __future__ import annotations

import gzip
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from table_files import jsonl, write_table

from openset.data import read_table
from openset.data.readers.open import open_source


def test_files_that_are_not_what_they_seem(tmp_path):
    for suffix in ("parquet", "feather", "arrow", "npy", "npz"):
        (tmp_path / f"t.{suffix}").write_bytes(b"something else entirely")
        with pytest.raises(ValueError, match="is not a readable"):
            read_table(tmp_path / f"t.{suffix}")
    (tmp_path / "t.xlsx").write_bytes(b"x")
    with pytest.raises(ValueError, match="extension '.xlsx' is unknown. Known are .parquet, .csv"):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match="expected a path or a data frame, got list"):
        read_table([1, 2])


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = write_table(tmp_path / "t.parquet", {"x": [1.0]})
    np.savez(tmp_path / "t.npz", x=np.eye(2))
    jsonl(tmp_path / "t.jsonl", [{"x": 1.5, "y": "a"}])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"openset\\[data\\]".replace("\\\\", "\\")):
        read_table(path)
    assert read_table(tmp_path / "t.npz").X.shape == (2, 2)
    assert read_table(tmp_path / "t.jsonl", label="y").X.tolist() == [[1.5]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.csv.gz", b"x,kind\n1,a\n2,b\n"),
        ("ROWS.CSV.GZ", b"x,kind\n1,a\n2,b\n"),
        ("rows.jsonl.GZ", b'{"x": 1, "kind": "a"}\n{"x": 2, "kind": "b"}\n'),
    ],
)
def test_a_gzip_file_without_its_name_is_read(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text))
    assert read_table(path, label="kind").y.tolist() == ["a", "b"]


def test_the_last_extension_counts(tmp_path):
    (tmp_path / "rows.tsv.csv").write_text("x,kind\n1,a\n")
    assert read_table(tmp_path / "rows.tsv.csv", label="kind").y.tolist() == ["a"]


def test_frames_with_numbered_and_with_repeated_columns():
    numbered = pd.DataFrame(np.eye(2)).assign(kind=["a", "b"])
    assert read_table(numbered, label="kind").feature_names == ("0", "1")
    with pytest.raises(ValueError, match="several columns of the same name"):
        read_table(pd.DataFrame(np.eye(2), columns=["x", "x"]))
    with pytest.raises(ValueError, match="several columns named '0'"):
        read_table(pd.DataFrame(np.eye(2), columns=[0, "0"]))


def test_every_extension_is_opened_by_its_own_reader(tmp_path):
    table = {"x": [1.5, 2.5], "t": ["a", "b"]}
    for suffix in ("parquet", "csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "arrow", "feather", "stored.npz"):
        opened = open_source(write_table(tmp_path / f"t.{suffix}", table))
        assert opened.kinds == {"x": "number", "t": "other"} and opened.folder == tmp_path
        assert opened.typed == (suffix not in ("csv", "tsv", "csv.gz"))
        assert [len(chunk.rows) for chunk in opened.chunks(["x"], 1)] == [1, 1]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_are_sources(make):
    opened = open_source(make({"x": [1, 2, 3], "t": ["a", "b", "c"]}))
    assert opened.name == "the data frame" and opened.kinds == {"x": "number", "t": "other"}
    assert [chunk.columns["x"].to_pylist() for chunk in opened.chunks(["x"], 2)] == [[1, 2], [3]]


def test_a_column_that_arrow_refuses_is_a_list():
    opened = open_source(pd.DataFrame({"y": pd.Series(["a", 5, pd.NA, float("nan")], dtype=object)}))
    (chunk,) = opened.chunks(["y"], None)
    assert chunk.columns["y"] == ["a", 5, None, None]


def test_a_folder_is_a_folder_of_images(tmp_path):
    with pytest.raises(ValueError, match="is a folder without images"):
        open_source(tmp_path)


def test_the_number_of_rows_where_it_is_known_unread(tmp_path):
    columns = {"x": [1.0, 2.0, 3.0]}
    (tmp_path / "parts").mkdir()
    for number in range(2):
        write_table(tmp_path / "parts" / f"{number}.parquet", columns)
    np.save(tmp_path / "t.npy", np.eye(4))
    np.savez(tmp_path / "t.npz", a=np.ones(4), b=np.zeros((4, 2)))
    np.savez(tmp_path / "odd.npz", a=np.ones(4), b=np.zeros(3))
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    known = {"parts": 6, "parts/1.parquet": 3, "t.npy": 4, "t.npz": 4, "odd.npz": None, "t.csv": None}
    assert {name: open_source(tmp_path / name).n_rows for name in known} == known
    assert open_source(pd.DataFrame(columns)).n_rows == open_source(pl.DataFrame(columns)).n_rows == 3
