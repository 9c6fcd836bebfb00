"""Cells: one meaning, whatever file or frame they came from."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openset.data import read_table
from openset.data.readers.cells import DATE_FORMATS, MISSING, Cells, cells_of, joined_cells, taken_cells

DAY = 86400
words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6)
VALUES = {
    "number": st.floats(-1e12, 1e12).map(lambda number: float(f"{number:.12g}")) | st.integers(-(2**53), 2**53),
    "boolean": st.booleans(),
    "time": st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
    "duration": st.timedeltas(timedelta(days=-999), timedelta(days=999)),
    "text": words.filter(lambda word: word not in MISSING).map(lambda word: f"w{word}"),
}


def column_of(kind):
    return st.lists(st.none() | VALUES[kind], min_size=1, max_size=12)


def written(value):
    """A value as people write it into a CSV file."""
    if isinstance(value, timedelta):
        days, seconds = divmod(abs(value), timedelta(days=1))
        return f"{'-' if value < timedelta(0) else ''}{days} days {seconds}" if value else "0:00:00"
    return str(value)


def readings(values, kind, folder):
    """The same column as a data frame of each library, Arrow, CSV text and JSON lines."""
    types = {"number": pa.float64(), "boolean": pa.bool_(), "time": pa.timestamp("us"), "text": pa.string()}
    arrow = pa.array(values, types.get(kind, pa.duration("us")))
    sources = {
        "arrow": pa.table({"x": arrow, "n": range(len(values))}),
        "pandas": pd.DataFrame({"x": arrow.to_pandas()}),
        "object": pd.DataFrame({"x": pd.Series(values, dtype=object)}),
        "polars": pl.DataFrame({"x": pl.from_arrow(arrow)}),
    }
    with (folder / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["x", "n"]] + [["" if v is None else written(v), 0] for v in values])
    sources["csv"] = folder / "t.csv"
    if kind in ("number", "boolean", "text"):
        (folder / "t.jsonl").write_text("".join(json.dumps({"x": value, "n": 0}) + "\n" for value in values))
        sources["jsonl"] = folder / "t.jsonl"
    return {name: read_table(source, cells=["x"]).table["x"] for name, source in sources.items()}


NUMBERS_OF = {"number": "numbers", "boolean": "booleans", "time": "times", "duration": "durations"}


@pytest.mark.parametrize("kind", list(VALUES))
@settings(max_examples=25)
@given(data=st.data())
def test_a_cell_means_the_same_in_every_file_and_frame(tmp_path_factory, kind, data):
    values = data.draw(column_of(kind))
    found = readings(values, kind, tmp_path_factory.mktemp("cells"))
    missing = [value is None for value in values]
    for name, cells in found.items():
        assert len(cells) == len(values) and cells.missing.tolist() == missing, name
        if kind == "text" and not all(missing):
            codes, levels = cells.coded()
            assert [None if code < 0 else levels[code] for code in codes] == values, name
            assert len(set(levels)) == len(levels)
    if kind == "text":
        return
    epoch = datetime(1970, 1, 1)
    seconds = {"time": lambda v: (v - epoch).total_seconds(), "duration": timedelta.total_seconds}.get(
        kind, float
    )
    expected = [np.nan if value is None else seconds(value) for value in values]
    for name, cells in found.items():
        read = getattr(cells, NUMBERS_OF[kind])()
        np.testing.assert_allclose(
            read, expected, rtol=0, atol=1e-6 * (kind in ("time", "duration")), err_msg=name
        )


@pytest.mark.parametrize("kind", list(VALUES))
@given(data=st.data())
def test_joining_the_parts_of_a_column_changes_nothing(kind, data):
    values = data.draw(column_of(kind))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=3)))
    parts = [values[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    whole, joined = cells_of(values), joined_cells([cells_of(part) for part in parts])
    assert same(whole, joined)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), dtype=bool)
    some = [value for value, kept in zip(values, keep, strict=True) if kept]
    assert same(taken_cells(whole, np.flatnonzero(keep)), cells_of(some), but_kind=True)


def same(one, other, *, but_kind=False):
    """Whether cells are the same; a column without any value may be of any kind."""
    assert len(one) == len(other) and one.missing.tolist() == other.missing.tolist()
    (codes, levels), (other_codes, other_levels) = one.coded(), other.coded()
    texts = [levels[code] for code in codes if code >= 0]
    assert texts == [other_levels[code] for code in other_codes if code >= 0]
    return one.missing.all() or but_kind or one.kind == other.kind


def test_parts_of_different_kinds_are_joined_as_text():
    joined = joined_cells([cells_of([1.0, None]), cells_of(["a"]), cells_of([True]), cells_of(np.array([0.5]))])
    assert joined.kind == "text" and joined.values.to_pylist() == ["1", None, "a", "true", "0.5"]
    assert joined.values.to_pylist() == cells_of([1.0, None, "a", True, 0.5]).values.to_pylist()
    empty = cells_of(pa.nulls(2))
    for kind, values in (("time", [date(2024, 1, 1)]), ("boolean", [True]), ("text", ["a"])):
        gaps = joined_cells([empty, cells_of(values)])
        assert gaps.kind == kind and gaps.missing.tolist() == [True, True, False]
    assert joined_cells([cells_of([[1]]), cells_of(["a"])]).kind == "nested"
    assert len(joined_cells([cells_of(np.zeros(0)), cells_of(np.zeros(0))])) == 0


@pytest.mark.parametrize("word", [*MISSING, " ", " NA "])
def test_words_for_a_missing_cell(word):
    cells = cells_of(pa.array(["a", word, None]))
    assert cells.missing.tolist() == [False, True, True] and cells.coded()[0].tolist() == [0, -1, -1]
    assert cells_of(["a", word]).missing.tolist() == [False, True]


@pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT, float("inf"), -float("inf")])
def test_values_that_are_no_value_are_missing(value):
    assert cells_of([1.0, value]).missing.tolist() == [False, True]
    if isinstance(value, float):
        for kind in (np.float16, np.float32, np.float64):
            cells = cells_of(np.array([1, value], kind))
            assert cells.missing.tolist() == [False, True] and cells.values.dtype == kind


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        (pa.array([1, None], pa.int8()), "number", [1, np.nan]),
        (pa.array([2**60], pa.uint64()), "number", [2**60]),
        (pa.array([Decimal("1.25"), None]), "number", [1.25, np.nan]),
        (pa.array([date(1970, 1, 3)]), "time", [2 * DAY]),
        (pa.array([datetime(1970, 1, 1, 2, tzinfo=UTC)], pa.timestamp("ns", "Asia/Tokyo")), "time", [7200]),
        (pa.array([time(0, 1, 30)]), "duration", [90]),
        (pa.array([timedelta(hours=2)], pa.duration("ms")), "duration", [7200]),
        (pa.array([True, None, False]), "boolean", [1, np.nan, 0]),
        (pa.nulls(2), "number", [np.nan, np.nan]),
        (np.array([True, False]), "boolean", [1, 0]),
        ([time(1), None], "duration", [3600, np.nan]),
        (pa.chunked_array([[1.5], [2.5]]), "number", [1.5, 2.5]),
    ],
)
def test_kinds_of_columns_with_types(column, kind, values):
    cells = cells_of(column)
    assert cells.kind == kind
    np.testing.assert_array_equal(cells.numbers(), values)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([" a ", None, "b"], pa.large_string()),
        pa.array([b"a", None, b" b"]),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.chunked_array([["a", None], ["b"]]),
        np.array(["a", "", "b"]),
        np.array(["a", None, "b"], dtype=object),
        pd.Series(["a", None, "b"], dtype="category").to_numpy(),
    ],
)
def test_text_in_any_array(column):
    cells = cells_of(column)
    assert cells.kind == "text" and cells.values.to_pylist() == ["a", None, "b"]


def test_bytes_that_are_no_text_are_read_all_the_same():
    assert cells_of(pa.array([b"a\xff", b"b"])).values.to_pylist() == ["a\ufffd", "b"]


@pytest.mark.parametrize(
    "column", [np.zeros((2, 3)), pa.array([[1], [2]]), [{"a": 1}, [2]], pa.array([{"a": 1}] * 2)]
)
def test_lists_and_records_are_nested(column):
    cells = cells_of(column)
    assert cells.kind == "nested" and len(cells) == 2
    assert taken_cells(cells, np.array([0])).kind == "nested"


def test_dates_of_numpy_are_times():
    cells = cells_of(np.array(["1970-01-02", "NaT"], dtype="datetime64[ns]"))
    assert cells.kind == "time" and cells.values.tolist()[0] == DAY and cells.missing.tolist() == [False, True]


def test_text_that_is_mostly_numbers():
    cells = cells_of(["1", " 2.5", "-1e3", "x", "1_000", "inf", "0x10", None])
    np.testing.assert_array_equal(cells.numbers(), [1, 2.5, -1000, *[np.nan] * 5])
    np.testing.assert_array_equal(cells_of(["1", None, "2"]).numbers(), [1, np.nan, 2])


def test_words_that_are_true_or_false():
    cells = cells_of(["true", "False", "TRUE", "yes", "1", None])
    np.testing.assert_array_equal(cells.booleans(), [1, 0, 1, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(cells_of(np.array([0.0, 1, 2])).booleans(), [0, 1, np.nan])


@pytest.mark.parametrize(
    "text", ["2024-03-01", "2024-03-01 00:00", "2024-03-01T00:00:00", "2024-03-01T01:00:00+01:00"]
)
def test_iso_times(text):
    expected = datetime(2024, 3, 1, tzinfo=UTC).timestamp()
    np.testing.assert_array_equal(cells_of([text, None, "x"]).times(), [expected, np.nan, np.nan])
    np.testing.assert_array_equal(cells_of([text, None]).times(), [expected, np.nan])


@pytest.mark.parametrize("form", DATE_FORMATS)
def test_other_forms_of_dates(form):
    moment = datetime(2024, 3, 21, 4 * ("%H" in form), 5 * ("%M" in form), 6 * ("%S" in form), tzinfo=UTC)
    cells = cells_of([moment.strftime(form), "2024-03-21", None])
    np.testing.assert_array_equal(cells.times(form), [moment.timestamp(), np.nan, np.nan])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1:30", 5400), ("0:01:30.5", 90.5), ("2 days 00:00:01", 2 * DAY + 1), ("1 day, 1:00:00", DAY + 3600),
        ("-1:00", -3600), ("PT2H30M", 9000), ("P1W", 7 * DAY), ("P1DT1S", DAY + 1), ("-PT1S", -1),
        ("P", np.nan), ("2024-03-01", np.nan), ("90", np.nan), ("1:2", np.nan),
    ],
)  # fmt: skip
def test_durations(text, seconds):
    np.testing.assert_array_equal(cells_of([text]).durations(), [seconds])


@pytest.mark.parametrize("form", ["%d.%m.%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S"])
def test_midnight_is_a_time_like_any_other(form):
    midnight = datetime(2024, 3, 21, tzinfo=UTC)
    cells = cells_of([midnight.strftime(form), (midnight + timedelta(hours=1)).strftime(form)])
    assert cells.times(form).tolist() == [midnight.timestamp(), midnight.timestamp() + 3600]
    assert cells_of(["2 days 00:00:00", "1:00"]).durations().tolist() == [2 * DAY, 3600]


def test_numbers_as_levels_are_written_as_short_as_they_can_be():
    codes, levels = cells_of(np.array([2.0, np.nan, 0.5, 2.0])).coded()
    assert levels == ["0.5", "2"] and codes.tolist() == [1, -1, 0, 1]
    assert cells_of(np.array([3, 1])).coded()[1] == ["1", "3"]
    assert cells_of([True, False, None]).coded()[1] == ["false", "true"]
    assert Cells("number", np.full(2, np.nan)).coded()[0].tolist() == [-1, -1]


@pytest.mark.parametrize("values", [[12.0, 7.0, None], [True, False, None], [1.5, 2.0, None]])
def test_levels_have_the_same_names_in_csv_text_as_in_typed_columns(values):
    """A column that a person set to be a category: pandas writes 12.0 and True into CSV files."""
    as_text = cells_of(pa.array([None if value is None else str(value) for value in values]))
    assert sorted(as_text.coded()[1]) == sorted(cells_of(values).coded()[1])
