from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.source import refuse_repeated, sliced, slices


@given(st.integers(0, 40), st.none() | st.integers(1, 50))
def test_slices_cover_every_row_once(n_rows, batch_rows):
    parts = list(slices(n_rows, batch_rows))
    assert [row for start, stop in parts for row in range(start, stop)] == list(range(n_rows))
    assert all(0 < stop - start <= (batch_rows or n_rows) for start, stop in parts)


def test_chunks_are_views_with_row_numbers():
    numbers = np.arange(5.0)
    first, second = sliced("t", {"n": numbers, "t": list("abcde"), "unused": [1]}, ["n", "t"], 3)
    assert (first.rows.tolist(), second.rows.tolist()) == ([0, 1, 2], [3, 4])
    assert second.columns["t"] == ["d", "e"] and np.shares_memory(second.columns["n"], numbers)
    assert first.broken == {}


def test_chunked_arrow_columns_become_plain_arrays():
    column = pa.chunked_array([[1, 2], [3, 4]])
    chunks = list(sliced("t", {"n": column}, ["n"], 3))
    assert all(isinstance(chunk.columns["n"], pa.Array) for chunk in chunks)
    assert [chunk.columns["n"].to_pylist() for chunk in chunks] == [[1, 2, 3], [4]]


def test_columns_must_be_equally_long():
    with pytest.raises(ValueError, match=r"t: columns of different lengths \('a' 2, 'b' 3\)"):
        next(sliced("t", {"a": [1, 2], "b": [1, 2, 3]}, ["a", "b"], None))
    assert list(sliced("t", {"a": []}, ["a"], None)) == []


def test_repeated_names_are_listed():
    refuse_repeated(["a", "b"], "t.csv")
    with pytest.raises(ValueError, match="t.csv has several columns named 'b', 'c': rename them"):
        refuse_repeated(["a", "b", "c", "b", "c", "c"], "t.csv")
