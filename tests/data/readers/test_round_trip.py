"""What was written is what is read: every row once, in order, with its id, in every format."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from table_files import as_arrow, as_lists, frames, write_table

from openset.data import iter_batches, read_table

TABLES = ["parquet", "feather", "arrow", "csv", "csv.gz", "tsv", "jsonl", "jsonl.gz"]
VECTORS = ["parquet", "feather", "arrow", "jsonl", "stored.npz", "packed.npz"]
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from('\n\t",'), max_size=8
)
ID = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 23))

    def column(values, **how):
        return draw(st.lists(values, min_size=n, max_size=n, **how))

    label = (
        column(st.integers(-3, 3)) if draw(st.booleans()) else column(st.sampled_from(["a", "b", "çé", "007"]))
    )
    return {
        "a": column(NUMBERS), "b": column(st.integers(-9, 9)), "kind": label, "text": column(TEXTS),
        "key": column(ID, unique=True),
    }  # fmt: skip


def assert_same(records, table, *, n=None):
    n = len(table["key"]) if n is None else n
    assert len(records) == n and records.skipped == () and records.rows.tolist() == list(range(n))
    np.testing.assert_array_equal(records.X, np.column_stack([table["a"], table["b"]]))
    assert records.feature_names == ("a", "b")
    assert records.y.tolist() == table["kind"]
    assert records.ids.tolist() == table["key"]
    assert records.texts.tolist() == table["text"]


@pytest.mark.parametrize("suffix", TABLES)
@settings(max_examples=15)
@given(table=tables(), batch_rows=st.integers(1, 30))
def test_tables(suffix, table, batch_rows):
    roles = {"label": "kind", "features": ["a", "b"], "text": "text", "id": "key"}
    with tempfile.TemporaryDirectory() as folder:
        path = write_table(Path(folder) / f"t.{suffix}", table)
        assert_same(read_table(path, **roles), table)
        batches = list(iter_batches(path, **roles, batch_rows=batch_rows))
        assert all(0 < len(batch) <= batch_rows for batch in batches)
        for name in ("rows", "X", "y", "ids", "texts"):
            joined = np.concatenate([getattr(batch, name) for batch in batches])
            np.testing.assert_array_equal(joined, getattr(read_table(path, **roles), name))


@settings(max_examples=15)
@given(table=tables())
def test_frames(table):
    for frame in frames(table):
        assert_same(read_table(frame, label="kind", features=["a", "b"], text="text", id="key"), table)


@pytest.mark.parametrize("suffix", VECTORS)
@settings(max_examples=15)
@given(
    x=hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64]),
        st.tuples(st.integers(1, 20), st.integers(1, 6)),
        elements=st.floats(-100, 100, width=16),
    ),
    batch_rows=st.integers(1, 8),
)
def test_vectors(suffix, x, batch_rows):
    table = {"x": x, "n": list(range(len(x))), "key": list(range(7, 7 + len(x)))}
    with tempfile.TemporaryDirectory() as folder:
        path = write_table(Path(folder) / f"t.{suffix}", table)
        records = read_table(path, features="x", id="key")
        np.testing.assert_array_equal(records.X, x)
        assert records.X.dtype == (x.dtype if suffix != "jsonl" else np.float64)
        assert records.feature_names == ("x",) and records.ids.tolist() == table["key"]
        batches = list(iter_batches(path, features="x", batch_rows=batch_rows))
        np.testing.assert_array_equal(np.concatenate([batch.X for batch in batches]), x)


@settings(max_examples=20)
@given(
    x=hnp.arrays(
        np.float32, hnp.array_shapes(min_dims=2, max_dims=4, max_side=5), elements=st.floats(-9, 9, width=32)
    )
)
def test_npy(x):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        np.save(path, x)
        records = read_table(path)
        np.testing.assert_array_equal(records.X, x)
        assert isinstance(records.X, np.memmap)
        np.testing.assert_array_equal(np.concatenate([b.X for b in iter_batches(path, batch_rows=2)]), x)
        del records


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_vectors_of_arrow_are_not_copied(fixed, dtype):
    lists = as_lists(np.arange(12, dtype=dtype).reshape(4, 3), fixed)
    import pyarrow as pa

    X = read_table(pa.table({"x": lists})).X
    start = lists.values.buffers()[1].address
    assert X.__array_interface__["data"][0] == start and X.dtype == dtype
    second = list(iter_batches(pa.table({"x": lists}), batch_rows=2))[1].X
    assert second.tolist() == [[6, 7, 8], [9, 10, 11]]
    assert second.__array_interface__["data"][0] == start + 6 * np.dtype(dtype).itemsize


def test_stored_npz_is_mapped_and_packed_is_not(tmp_path):
    table = {"x": np.asfortranarray(np.arange(6.0).reshape(3, 2)), "y": np.array(["a", "b", "a"])}
    stored = read_table(write_table(tmp_path / "t.stored.npz", table), label="y")
    packed = read_table(write_table(tmp_path / "t.packed.npz", table), label="y")
    assert isinstance(stored.X, np.memmap) and not isinstance(packed.X, np.memmap)
    np.testing.assert_array_equal(stored.X, packed.X)
    assert stored.y.tolist() == ["a", "b", "a"]


def test_columns_of_numbers_are_found(tmp_path):
    table = {"a": [1.5, 2], "y": [0, 1], "n": ["p", "q"], "b": [True, False], "key": [4, 5]}
    for suffix in ("parquet", "jsonl"):
        records = read_table(write_table(tmp_path / f"t.{suffix}", table), label="y", id="key")
        assert records.feature_names == ("a", "b") and records.X.tolist() == [[1.5, 1], [2, 0]]
    assert read_table(as_arrow({"e": np.eye(2, dtype=np.float16), "y": [0, 1]}), label="y").feature_names == (
        "e",
    )
    assert read_table(as_arrow({"t": ["u"], "n": [1]}), text="t").X is None


def test_what_is_no_feature_is_left_out(tmp_path):
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5]}, index=[3, 5, 9])
    frame.drop(5).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").feature_names == ("x",)
    table = {"x": [1, 2], "tags": [["red"], ["red", "blue"]]}
    for suffix in ("jsonl", "parquet"):
        assert read_table(write_table(tmp_path / f"tags.{suffix}", table)).feature_names == ("x",)


def test_labels_of_csv_are_integers_only_if_all_are(tmp_path):
    for labels, expected in ((["1", "-2", "0"], [1, -2, 0]), (["1", "02", "3"], ["1", "02", "3"])):
        path = tmp_path / "t.csv"
        path.write_text("x,y,k\n" + "".join(f"1,{label},0{i}\n" for i, label in enumerate(labels)))
        records = read_table(path, label="y", id="k")
        assert records.y.tolist() == expected and records.ids.tolist() == ["00", "01", "02"]
        assert [b.y.tolist() for b in iter_batches(path, label="y", batch_rows=1)] == [
            [label] for label in expected
        ]


def test_dictionaries_decimals_and_large_strings_of_arrow():
    import decimal

    import pyarrow as pa

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
