from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.columns import (
    arrow_kind,
    has_value,
    kind_of,
    missing_in,
    read_keys,
    read_numbers,
    read_texts,
    read_vectors,
    without_blanks,
)

MISSING = {1: "column 'c' is missing"}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None, "x"], "number"),
        (["x", 1, "y"], "other"),
        ([True, False], "number"),
        ([[1, 2], [None, 3]], "vector"),
        ([["a"]], "other"),
        (["1", "2"], "other"),
        ([None], "other"),
        ([], "other"),
        ([10**400], "other"),
    ],
)
def test_kinds_of_values(values, kind):
    assert kind_of(values) == kind


def test_text_is_a_number_only_where_it_is_parsed():
    assert kind_of([b"1", b" 2.5 ", b"1e3", b"nan"], parse=True) == "number"
    assert kind_of([b"1_000", b"x", b"\xff"], parse=True) == "other"


@pytest.mark.parametrize(
    ("arrow_type", "kind"),
    [
        (pa.int8(), "number"),
        (pa.float16(), "number"),
        (pa.bool_(), "number"),
        (pa.decimal128(5, 2), "number"),
        (pa.string(), "other"),
        (pa.timestamp("s"), "other"),
        (pa.list_(pa.float32()), "vector"),
        (pa.list_(pa.float32(), 3), "vector"),
        (pa.large_list(pa.int64()), "vector"),
        (pa.list_(pa.string()), "other"),
    ],
)
def test_kinds_of_arrow_types(arrow_type, kind):
    assert arrow_kind(arrow_type) == kind


def test_numbers():
    whole = np.arange(3, dtype=np.int8)
    assert read_numbers(whole, "c")[0] is whole, "no copy"
    for column in (pa.array([b"1", b"2.5"]), pa.array([decimal.Decimal("1"), decimal.Decimal("2.5")]), [1, 2.5]):
        values, problems = read_numbers(column, "c")
        assert values.tolist() == [1, 2.5] and values.dtype == np.float64 and problems == {}
    assert read_numbers(pa.array([True, False]), "c")[0].tolist() == [1, 0]
    assert read_numbers(pa.array([1.5, None]), "c")[1] == read_numbers([1.5, None], "c")[1] == MISSING
    values, problems = read_numbers(pa.array([b"1", b"two", None]), "c")
    assert values[0] == 1 and np.isnan(values[1:]).all()
    assert problems == {1: "column 'c' holds 'two' (text), not a number", 2: "column 'c' is missing"}
    assert read_numbers(["1"], "c")[1] == {0: "column 'c' holds '1' (str), not a number"}


def test_a_long_value_is_cut_in_its_error():
    (reason,) = read_numbers(["x" * 100], "c")[1].values()
    assert reason == f"column 'c' holds '{'x' * 38}… (str), not a number"


def test_vectors():
    matrix = np.eye(2)
    assert read_vectors(matrix, "c", None)[0] is matrix
    assert read_vectors([[1, 2], [3, 4]], "c", None)[0].dtype == np.float64
    lists = pa.array([[1, 2], [3, 4]], pa.list_(pa.float32()))
    assert read_vectors(lists, "c", 2)[0].dtype == np.float32
    values, problems = read_vectors([[1, 2], None, [1, None], "x", [], [3], [5, 6]], "c", None)
    assert values.tolist() == [[1, 2], *[[0, 0]] * 5, [5, 6]]
    assert problems == {
        1: "column 'c' is missing",
        2: "column 'c' has a missing value at index 1",
        3: "column 'c' holds 'x' (str), not a list of numbers",
        4: "column 'c' holds [] (list), not a list of numbers",
        5: "column 'c' holds 1 numbers where the rows before hold 2",
    }
    assert sorted(read_vectors(lists, "c", 3)[1]) == [0, 1], "the width of the rows before counts"
    assert read_vectors([None], "c", None)[0].shape == (1, 0)


def test_texts():
    for column in (
        pa.array(["a", "é"]),
        pa.array(["a", "é"]).dictionary_encode(),
        np.array(["a", "é"]),
        ["a", "é"],
    ):
        values, problems = read_texts(column, "c")
        assert values.tolist() == ["a", "é"] and values.dtype == object and problems == {}
    values, problems = read_texts(pa.array(["é".encode(), b"\xff", None]), "c")
    assert values.tolist() == ["é", "", ""]
    assert problems == {1: "column 'c' is not UTF-8 text", 2: "column 'c' is missing"}
    assert read_texts([5, "\ud800"], "c")[1] == {
        0: "column 'c' holds 5 (int), not text",
        1: "column 'c' holds text that is not valid Unicode: half of a surrogate pair",
    }


@pytest.mark.parametrize(
    ("column", "values", "kind"),
    [
        (np.array([3, 1]), [3, 1], "number"),
        (np.array([True, False]), [True, False], "boolean"),
        (np.array(["a", "b"]), ["a", "b"], "text"),
        (pa.array(["a", "b"]), ["a", "b"], "text"),
        (pa.array([3, 1]), [3, 1], "number"),
        (pa.array([b"a", b"b"]), ["a", "b"], "text"),
        ([1.5, 2], [1.5, 2], "number"),
        ([True, False], [True, False], "boolean"),
    ],
)
def test_keys(column, values, kind):
    keys, problems, found = read_keys(column, "c", None)
    assert keys.tolist() == values and problems == {} and found == kind


def test_keys_are_of_the_kind_of_the_rows_before():
    keys, problems, kind = read_keys(["a", 2, True, None, " "], "c", None)
    assert kind == "text" and keys[0] == "a" and sorted(problems) == [1, 2, 3, 4]
    assert problems[1] == "column 'c' mixes types: it holds 2 (int) after rows of text"
    assert problems[3] == problems[4] == "column 'c' is missing"
    assert read_keys(np.array([1, 2]), "c", "text")[1].keys() == {0, 1}
    assert read_keys([None, float("nan")], "c", None)[2] is None, "missing values tell no kind"
    assert read_keys([[1], b"\xff"], "c", None)[1] == {
        0: "column 'c' holds [1] (list), not a number or text",
        1: "column 'c' holds bytes that are not UTF-8 text, not a number or text",
    }


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), "", "  "])
def test_every_missing_value_is_a_missing_key(missing):
    assert read_keys(["a", missing], "c", None)[1] == MISSING
    assert not has_value([missing]) and has_value([missing, "a"])


def test_text_of_csv_becomes_integers_where_that_is_asked_for():
    keys, problems, kind = read_keys(pa.array([b"3", b"-1"]), "c", None, integers=True)
    assert keys.tolist() == [3, -1] and problems == {} and kind == "number"


@given(st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=6))
def test_integers_of_64_bits_are_never_rounded(values):
    assert read_keys([None, *values], "c", None)[0].tolist()[1:] == values


def test_blank_text_and_nan_count_as_missing_in_arrow():
    assert without_blanks(pa.array(["a", " ", ""])).to_pylist() == ["a", None, None]
    assert without_blanks(pa.array([1.0, float("nan")])).to_pylist() == [1.0, None]
    column = pa.array([1, 2])
    assert without_blanks(column) is column
    assert has_value(pa.array(["", "a"])) and not has_value(pa.array(["", None]))


@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, np.nan, np.inf, -np.inf]), min_size=2, max_size=2)),
    st.booleans(),
)
def test_rows_that_are_not_finite_are_named(rows, half):
    matrix = np.array(rows, dtype=np.float16 if half else np.float64).reshape(len(rows), 2)
    problems = missing_in(matrix, ("a", "b"))
    assert list(problems) == np.flatnonzero(~np.isfinite(matrix).all(axis=1)).tolist()
    for row, reason in problems.items():
        index = 0 if not np.isfinite(matrix[row, 0]) else 1
        what = "missing (NaN)" if np.isnan(matrix[row, index]) else "infinite"
        assert reason == f"column {('a', 'b')[index]!r} is {what}"


def test_the_search_for_nan_goes_in_blocks(monkeypatch):
    monkeypatch.setattr("openset.data.readers.columns._BLOCK", 7)
    matrix = np.ones((10, 3))
    matrix[[0, 5, 9], 1] = np.nan
    assert missing_in(matrix, ("v",)) == dict.fromkeys((0, 5, 9), "column 'v' at index 1 is missing (NaN)")
    assert missing_in(np.ones((2, 2), dtype=int), ("a", "b")) == {}
