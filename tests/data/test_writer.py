"""Tables written batch by batch come back as they were, in every format, or not at all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data import read_table
from openset.data.writer import check_writable, writing_table

FORMATS = ["parquet", "csv", "csv.gz", "tsv", "tsv.gz", "jsonl", "jsonl.gz", "arrow", "feather", "npz"]
plain_text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=7).map("k{}".format)


def write(path, ids, scores, cut):
    with writing_table(path) as add:
        for part in (slice(None, cut), slice(cut, None)):
            if len(ids[part]):
                add({"id": np.array(ids[part], dtype=object), "score": np.array(scores[part], dtype=float)})


@pytest.mark.parametrize("suffix", FORMATS)
@given(ids=st.lists(plain_text, min_size=1, max_size=9, unique=True), cut=st.integers(0, 9), data=st.data())
def test_rows_come_back_in_order(tmp_path_factory, suffix, ids, cut, data):
    numbers = st.floats(-1e9, 1e9)
    scores = data.draw(st.lists(numbers, min_size=len(ids), max_size=len(ids)))
    path = tmp_path_factory.mktemp("w") / f"t.{suffix}"
    write(path, ids, scores, cut)
    read = read_table(path, id="id", features="score")
    assert read.ids.tolist() == ids
    assert read.X[:, 0].tolist() == scores
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_error_leaves_the_old_file(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_text("old")

    def fail():
        with writing_table(path) as add:
            add({"id": np.arange(5)})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_column_keeps_its_type(tmp_path):
    def change():
        with writing_table(tmp_path / "t.parquet") as add:
            add({"id": np.array([1])})
            add({"id": np.array([1.5])})

    with pytest.raises(ValueError, match="changes its type"):
        change()
    with pytest.raises(ValueError, match="write .npz"), writing_table(tmp_path / "t.npy"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_small_batches_share_a_row_group(tmp_path, monkeypatch):
    monkeypatch.setattr("openset.data.writer._ROW_GROUP", 10)
    with writing_table(tmp_path / "rows.parquet") as write:
        for first in range(0, 23, 3):
            write({"id": np.arange(first, min(first + 3, 23))})
    file = pq.ParquetFile(tmp_path / "rows.parquet")
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert sizes == [12, 11] and file.read()["id"].to_pylist() == list(range(23))


def test_a_path_is_checked_before_anything_is_written(tmp_path):
    check_writable(tmp_path / "t.CSV.gz")
    with pytest.raises(ValueError, match="the extension '.xlsx' is unknown. Known are .parquet, .csv"):
        check_writable(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="a .npy file is one array and cannot hold ids and labels: write .npz"):
        check_writable(tmp_path / "t.npy")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_writable(tmp_path / "absent" / "t.csv")
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        check_writable(tmp_path / "t.csv")


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_values_keep_their_type(tmp_path, suffix):
    columns = {
        "n": np.array([1, 2], np.int16),
        "s": np.array([0.5, 1.5], np.float32),
        "b": np.array([True, False]),
    }
    with writing_table(tmp_path / f"t.{suffix}") as add:
        add(columns)
    if suffix == "npz":
        with np.load(tmp_path / "t.npz") as stored:
            found = {name: stored[name] for name in stored}
    else:
        table = pq.read_table(tmp_path / "t.parquet")
        found = {name: table[name].to_numpy() for name in table.column_names}
    assert {name: (column.dtype, column.tolist()) for name, column in found.items()} == {
        name: (column.dtype, column.tolist()) for name, column in columns.items()
    }


def test_texts_of_an_npz_grow_with_the_widest(tmp_path):
    with writing_table(tmp_path / "t.npz") as add:
        for text in ("a", "longer", "b"):
            add({"t": np.array([text], dtype=object)})
    with np.load(tmp_path / "t.npz") as stored:
        assert stored["t"].tolist() == ["a", "longer", "b"] and stored["t"].dtype == "<U6"


def test_no_formula_in_a_column_that_is_carried_along(tmp_path):
    carried = {
        "text": pa.array(["=1+1", None]),
        "level": pa.array(["@a", "b"]).dictionary_encode(),
        "large": pa.array(["-x", "y"], pa.large_string()),
        "number": pa.array([-1, 2]),
    }
    with writing_table(tmp_path / "t.csv", csv_safe=True) as add:
        add({"id": np.array(["+7", "8"], dtype=object), **carried})
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        '"id","text","level","large","number"',
        '"\'+7","\'=1+1","\'@a","\'-x",-1',
        '"8",,"b","y",2',
    ]
