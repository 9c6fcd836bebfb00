"""Carried columns: the values, as they are, whatever array they came in."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.carried import as_carried, joined_carried

values = st.one_of(
    st.lists(st.none() | st.integers(-(2**60), 2**60)),
    st.lists(st.none() | st.floats(allow_nan=False)),
    st.lists(st.none() | st.text(max_size=5)),
    st.lists(st.none() | st.booleans()),
    st.lists(st.none() | st.dates()),
)


@given(values)
def test_arrow_arrays_are_kept_with_their_type(column):
    carried = as_carried(pa.array(column))
    assert carried.to_pylist() == column and carried.type == pa.array(column).type


@given(values, st.data())
def test_parts_joined_are_the_column(column, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(column)), max_size=3)))
    parts = [column[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(column)], strict=True)]
    joined = joined_carried([as_carried(pa.array(part)) for part in parts])
    assert joined.to_pylist() == column and len(joined) == len(column)
    if any(value is not None for value in column):
        assert joined.type == pa.array(column).type
    # Python values have one type in every chunk, so that files can be written chunk by chunk
    kind = "number" if all(value is None or type(value) in (int, float) for value in column) else "other"
    chunks = [as_carried(part, kind) for part in parts]
    assert {chunk.type for chunk in chunks} == {pa.float64() if kind == "number" else pa.string()}
    assert joined_carried(chunks).to_pylist() == as_carried(column, kind).to_pylist()


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        (pa.array([b"a", None, "ü".encode()]), "other", ["a", None, "ü"]),
        (pa.array([b"\xff", b"b"]), "other", ["\ufffd", "b"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "other", ["a", "b", "a"]),
        (np.array([1.5, 2.5], np.float32), "number", [1.5, 2.5]),
        (np.array([[1, 2], [3, 4]]), "vector", [[1, 2], [3, 4]]),
        (np.array(["a", "b"]), "other", ["a", "b"]),
        ([1, 2.5, None], "number", [1.0, 2.5, None]),
        ([1, "a", None], "number", ["1", "a", None]),
        ([1, "a", None], "other", ["1", "a", None]),
        ([True, None], "other", ["true", None]),
        ([{"a": "ü"}, [2]], "other", ['{"a": "ü"}', "[2]"]),
    ],
)
def test_any_array_is_carried(column, kind, expected):
    assert as_carried(column, kind).to_pylist() == expected


def test_types_are_kept():
    day = pa.array([date(2024, 3, 1), None])
    assert as_carried(day).type == pa.date32() and as_carried(np.array([1], np.int16)).type == pa.int16()
    assert as_carried(pa.array(["a"]).dictionary_encode()).type == pa.string()


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (([1], ["a"]), ["1", "a"]),
        (([True], ["a"]), ["true", "a"]),
        (([None], [2]), [None, 2]),
        (([None], [None]), [None, None]),
        (([1], [1.5]), [1, 1.5]),
        (([[1]], ["a"]), ["[1]", "a"]),
        (([{"a": 1}], [2]), ['{"a": 1}', "2"]),
    ],
)
def test_parts_of_different_types_are_joined_and_nothing_is_lost(parts, expected):
    """Numbers stay numbers, as they are when the column is read at once; other types become text."""
    assert joined_carried([pa.array(part) for part in parts]).to_pylist() == expected
