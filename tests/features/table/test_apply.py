"""A fitted table applied to rows: formulas by hand, no row lost, and what is odd is told."""

from __future__ import annotations

import zlib
from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.cells import cells_of, joined_cells, taken_cells
from openset.features.table.apply import TableNotes, bucket, date_parts, scaled, tamed, values_of
from openset.features.table.fit import fit_table
from openset.features.table.fitted import FittedTable, TableColumn

PAY = TableColumn("pay", "number", fill=5.0, has_flag=True, tail=2.0)
SIZE = TableColumn("size", "number", fill=1.0)
TOWN = TableColumn("town", "category", fill="Ulm", levels=["Bonn", "Ulm"], has_flag=True)


def table(**columns):
    return {name: cells_of(column) for name, column in columns.items()}


def test_values_flags_and_levels_by_hand():
    rows = table(
        pay=[1.0, None, -3.0, 8.0],
        size=np.array([1, 2, 3, 4]),
        town=["Bonn", "Rome", None, "Ulm"],
        other=["x"] * 4,
    )
    found = values_of(FittedTable([PAY, SIZE, TOWN]), rows)
    assert found.values.tolist() == [
        [1, 0, 1, 1, 0, 0, 0],
        [5, 1, 2, 0, 0, 1, 0],
        [-3, 0, 3, 0, 1, 0, 1],  # the most common level, and the flag
        [8, 0, 4, 0, 1, 0, 0],
    ]
    assert found.notes == TableNotes({"town": Counter(Rome=1)})
    features = FittedTable([PAY, SIZE, TOWN], mean=[0.5] * 7, factor=[2.0] * 7)
    heavy = np.arcsinh(found.values[:, 0] / 2)
    np.testing.assert_allclose(scaled(features, found.values)[:, 0], (heavy - 0.5) * 2)
    np.testing.assert_allclose(scaled(features, found.values)[:, 1:], (found.values[:, 1:] - 0.5) * 2)
    np.testing.assert_allclose(tamed(features, found.values)[:, 0], heavy)


def test_without_scaling_values_are_the_features():
    found = values_of(FittedTable([SIZE]), table(size=[3.0, 4.0])).values
    assert scaled(FittedTable([SIZE]), found) is found and found.tolist() == [[3.0], [4.0]]


def test_precision_is_kept():
    plain = FittedTable([SIZE, TableColumn("x", "number", fill=0.0)])
    for one, other, kind in (
        (np.float32, np.float32, np.float32),
        (np.float32, np.float64, np.float64),
        (np.int8, np.int64, np.float64),
    ):
        rows = table(size=np.ones(2, one), x=np.ones(2, other))
        assert values_of(plain, rows).values.dtype == kind


def test_booleans_and_durations():
    fitted = FittedTable([TableColumn("new", "boolean", fill=0.0), TableColumn("took", "duration", fill=60.0)])
    typed = table(new=np.array([True, False, True]), took=pa.array([timedelta(minutes=2), None, timedelta(0)]))
    text = table(new=["true", "False", "TRUE"], took=["0:02:00", "", "PT0S"])
    for rows in (typed, text):
        found = values_of(fitted, rows)
        assert found.values.tolist() == [[1, 120], [0, 60], [1, 0]]
        assert found.notes.missing == Counter(took=1) and found.notes.unusable == Counter()


@given(st.datetimes(datetime(1800, 1, 1), datetime(2300, 1, 1)))
def test_parts_of_a_date(moment):
    seconds = moment.replace(tzinfo=UTC).timestamp()
    names = ["month", "day", "weekday", "hour", "elapsed days"]
    month, day, weekday, hour, elapsed = date_parts(np.array([seconds]), names, 86400.0)
    assert (month[0], day[0], weekday[0]) == (moment.month, moment.day, moment.weekday())
    clock = moment - moment.replace(hour=0, minute=0, second=0, microsecond=0)
    assert hour[0] == pytest.approx(clock.total_seconds() / 3600, abs=1e-8)
    assert elapsed[0] == pytest.approx(seconds / 86400 - 1)
    assert date_parts(np.array([seconds]), ["hour", "month"], 0.0)[1][0] == moment.month


def test_a_missing_date_has_the_parts_of_the_median():
    column = TableColumn("day", "date", fill=86400.0 * 31, has_flag=True, parts=["month", "elapsed days"])
    found = values_of(FittedTable([column]), table(day=["1970-03-01", None])).values
    assert found.tolist() == [[3, 28, 0], [2, 0, 1]]  # 1 March is 28 days after 1 February


def test_hashed_levels():
    levels = [f"s{i}" for i in range(200)]
    column = TableColumn("street", "category", fill="s7", levels=levels, buckets=8)
    found = values_of(FittedTable([column]), table(street=["s3", None, "new", "s3"]))
    places = found.values.argmax(axis=1).tolist()
    assert places == [zlib.crc32(b"s3") % 8, zlib.crc32(b"s7") % 8, 8, zlib.crc32(b"s3") % 8]
    assert (found.values.sum(axis=1) == 1).all() and found.notes.unseen == {"street": Counter(new=1)}
    assert bucket("\ud800", 8) in range(8), "half a character is a level too"


KINDS = {
    "number": st.floats(-1e6, 1e6),
    "text": st.sampled_from(["red", "blue", "3", "2024-01-01", "true", "1:30", "x"]),
    "day": st.datetimes(datetime(1950, 1, 1), datetime(2050, 1, 1)),
    "flag": st.booleans(),
}


def rows_of(n):
    return st.fixed_dictionaries(
        {name: st.lists(st.none() | kind, min_size=n, max_size=n) for name, kind in KINDS.items()}
    )


FIT = {
    "number": [1.0, 2.0, 3.0, 1000.0] * 5,
    "text": ["red", "blue", "blue", "green"] * 5,
    "day": [datetime(2020, 1, 1) + timedelta(days=9 * i) for i in range(20)],
    "flag": [True, False, True, False] * 5,
}
FITTED = fit_table(table(**FIT))


@given(st.integers(1, 12).flatmap(rows_of))
def test_no_row_is_lost_and_every_value_is_finite(columns):
    rows = table(**columns)
    found = values_of(FITTED, rows)
    assert found.values.shape == (len(columns["number"]), len(FITTED.features))
    assert np.isfinite(found.values).all() and np.isfinite(scaled(FITTED, found.values)).all()
    new = {value for value in columns["text"] if value not in (None, "red", "blue", "green")}
    assert set(found.notes.unseen.get("text", ())) == new
    other = FITTED.features.index("text=(other)")
    assert found.values[:, other].tolist() == [float(value in new) for value in columns["text"]]


@given(st.integers(1, 12).flatmap(rows_of), st.data())
def test_rows_are_the_same_in_parts(columns, data):
    n = len(columns["number"])
    cut = data.draw(st.integers(0, n))
    whole, first = table(**columns), np.arange(n) < cut
    parts = [
        {name: taken_cells(cells, np.flatnonzero(keep)) for name, cells in whole.items()}
        for keep in (first, ~first)
    ]
    found = [values_of(FITTED, part) for part in parts]
    together = values_of(FITTED, whole)
    np.testing.assert_array_equal(np.concatenate([part.values for part in found]), together.values)
    assert found[0].notes.joined(found[1].notes) == together.notes
    joined = {name: joined_cells([part[name] for part in parts]) for name in whole}
    np.testing.assert_array_equal(values_of(FITTED, joined).values, together.values)


@pytest.mark.parametrize(
    ("column", "now", "words"),
    [
        (
            SIZE,
            ["tall", "small"],
            "'size' holds numbers in the fit, and now categories, such as 'tall': correct it",
        ),
        (SIZE, ["2024-03-01", "2024-03-02"], "'size' holds numbers in the fit, and now dates"),
        (SIZE, pa.array([datetime(2024, 3, 1)] * 2), "'size' holds numbers in the fit, and now dates"),
        (SIZE, pa.array([timedelta(1)] * 2), "'size' holds numbers in the fit, and now durations"),
        (SIZE, [[1], [2]], "'size' holds numbers in the fit, and now lists or records"),
        (TOWN, [[1], [2]], "'town' holds categories in the fit, and now lists or records"),
        (
            TableColumn("day", "date", fill=0.0, parts=["month"]),
            [1.0, 2.0],
            "holds dates in the fit, and now numbers",
        ),
        (
            TableColumn("day", "date", fill=0.0, parts=["month"]),
            ["1", "2"],
            "holds dates in the fit, and now numbers",
        ),
        (TableColumn("took", "duration", fill=0.0), [1.0, 2.0], "holds durations in the fit, and now numbers"),
        (TableColumn("new", "boolean", fill=0.0), ["yes", "no"], "holds true and false in the fit, and now cat"),
    ],
)
def test_a_column_of_another_kind_is_refused_with_clear_words(column, now, words):
    with pytest.raises(ValueError, match=words):
        values_of(FittedTable([column]), {column.name: cells_of(now)})


def test_a_column_that_is_gone_is_named():
    with pytest.raises(
        ValueError, match=r"column 'town' is missing; the run was fitted with it\. Did you mean 'towns'"
    ):
        values_of(FittedTable([SIZE, TOWN]), table(size=[1.0], towns=["a"]))


def test_a_few_cells_that_cannot_be_read_are_filled_in_and_counted():
    found = values_of(FittedTable([SIZE, PAY]), table(size=["2", "tall", "", "4"], pay=["1", "?", None, "3"]))
    assert found.values.tolist() == [[2, 1, 0], [1, 5, 1], [1, 5, 1], [4, 3, 0]]
    assert found.notes.unusable == Counter(size=1, pay=1)
    assert found.notes.missing == Counter(size=1), "pay has a flag for its gaps"
    every = values_of(FittedTable([SIZE]), table(size=[None, None]))
    assert every.values.tolist() == [[1], [1]] and every.notes.missing == Counter(size=2)


def test_notes_are_sentences():
    notes = TableNotes({"town": Counter(Ulm=3, Bonn=1, Kiel=2, Rome=1, Oslo=1)}, Counter(pay=1), Counter(size=2))
    levels, unusable, missing = notes.sentences()
    assert levels == (
        "Column 'town' has levels that source lacks: 'Ulm' (3 rows), 'Kiel' (2 rows), 'Bonn' (1 row) and 2 more. "
        "They count as one level, (other)."
    )
    assert unusable.startswith("1 value of column 'pay' cannot be read as in source")
    assert missing.startswith("2 values missing in column 'size', which was complete in the fit")
    assert TableNotes().sentences() == []


def test_notes_of_many_levels_keep_the_most_common():
    many = values_of(FittedTable([TOWN]), table(town=[f"n{i}" for i in range(50)] + ["n7"] * 3))
    assert len(many.notes.unseen["town"]) == 20 and many.notes.unseen["town"]["n7"] == 4
    joined = many.notes.joined(TableNotes({"town": Counter(new=9), "street": Counter(a=1)}))
    assert len(joined.unseen["town"]) == 20 and joined.unseen["town"]["new"] == 9
    assert joined.unseen["street"] == Counter(a=1)
