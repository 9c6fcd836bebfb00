from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import as_lists, write_table

from openset.data import iter_batches, read_table
from openset.data.readers.arrow_files import open_ipc, open_parquet


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_vectors_of_arrow_are_not_copied(fixed, dtype):
    lists = as_lists(np.arange(12, dtype=dtype).reshape(4, 3), fixed)

    X = read_table(pa.table({"x": lists})).X
    start = lists.values.buffers()[1].address
    assert X.__array_interface__["data"][0] == start and X.dtype == dtype
    second = list(iter_batches(pa.table({"x": lists}), batch_rows=2))[1].X
    assert second.tolist() == [[6, 7, 8], [9, 10, 11]]
    assert second.__array_interface__["data"][0] == start + 6 * np.dtype(dtype).itemsize


def test_dictionaries_decimals_and_large_strings_of_arrow():

    table = pa.table(
        {
            "d": pa.array([decimal.Decimal("1.5"), decimal.Decimal("2.5")]),
            "y": pa.array(["a", "b"]).dictionary_encode(),
            "k": pa.array(["p", "q"], pa.large_string()),
        }
    )
    records = read_table(table, label="y", id="k")
    assert (
        records.X.tolist() == [[1.5], [2.5]]
        and records.y.tolist() == ["a", "b"]
        and records.ids.tolist() == ["p", "q"]
    )


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow"])
@pytest.mark.parametrize("batch_rows", [None, 1, 3, 100])
def test_chunks_are_numbered_and_of_bounded_size(tmp_path, suffix, batch_rows):
    table = {"n": list(range(23)), "t": [f"t{i}" for i in range(23)]}
    path = write_table(tmp_path / f"t.{suffix}", table)  # in row groups of 7, or batches of 5
    opened = (open_parquet if suffix == "parquet" else open_ipc)(path)
    assert opened.kinds == {"n": "number", "t": "other"}
    chunks = list(opened.chunks(["n"], batch_rows))
    assert all(list(chunk.columns) == ["n"] and len(chunk.rows) <= (batch_rows or 23) for chunk in chunks)
    assert [row for chunk in chunks for row in chunk.rows.tolist()] == table["n"]
    assert [value for chunk in chunks for value in chunk.columns["n"].to_pylist()] == table["n"]


def test_a_file_that_ends_too_early_names_the_row(tmp_path):
    path = tmp_path / "t.arrow"
    table = pa.table({"n": np.arange(4000)})
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)
    path.write_bytes(path.read_bytes()[:-6000])
    with pytest.raises(ValueError, match="is not a readable Arrow.* beyond row [123]000"):
        read_table(path)


def test_repeated_columns_are_refused(tmp_path):
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="several columns named 'x'"):
        open_parquet(tmp_path / "t.parquet")
