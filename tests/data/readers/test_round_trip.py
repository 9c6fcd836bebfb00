"""Of all readers together: every row is read once, in order, with its id, from every format."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from table_files import frames, write_table

from openset.data import iter_batches, read_table

TABLES = ["parquet", "feather", "arrow", "csv", "csv.gz", "tsv", "jsonl", "jsonl.gz"]
VECTORS = ["parquet", "feather", "arrow", "jsonl", "stored.npz", "packed.npz"]
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from('\n\t",'), max_size=8
)
ID = st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=5).map("k{}".format)  # no integers


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
