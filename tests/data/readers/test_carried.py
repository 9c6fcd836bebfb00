"""Carried columns: the values, as they are, whatever array they came in."""

from __future__ import annotations

from datetime import date, datetime

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
def test_values_of_one_type_are_kept_with_their_type(column):
    for given_ in (column, pa.array(column)):
        carried = as_carried(given_)
        assert carried.to_pylist() == column
        assert carried.type == pa.array(column).type


@given(values, st.data())
def test_parts_joined_are_the_column(column, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(column)), max_size=3)))
    parts = [column[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(column)], strict=True)]
    joined = joined_carried([as_carried(part) for part in parts])
    assert joined.to_pylist() == column and len(joined) == len(column)
    if any(value is not None for value in column):
        assert joined.type == pa.array(column).type


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([b"a", None, "ü".encode()]), ["a", None, "ü"]),
        (pa.array([b"\xff", b"b"]), ["\ufffd", "b"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (np.array([1.5, 2.5], np.float32), [1.5, 2.5]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(["a", "b"]), ["a", "b"]),
        ([1, "a", None], ["1", '"a"', None]),
        ([{"a": 1}, [2]], ['{"a": 1}', "[2]"]),
        ([datetime(2024, 3, 1), "x"], ['"2024-03-01 00:00:00"', '"x"']),
    ],
)
def test_any_array_is_carried(column, expected):
    assert as_carried(column).to_pylist() == expected


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
    joined = joined_carried([as_carried(part) for part in parts]).to_pylist()
    assert joined == expected
