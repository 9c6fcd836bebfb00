"""Fitting a table: what becomes of each column, by hand, and the scale of its features."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.cells import cells_of
from openset.features.table.apply import scaled, tamed, values_of
from openset.features.table.fit import ARRAY, BUCKETS, HEAVY, LEAST_VARIANCE, ONE_HOT, fit_table

RANDOM = np.random.default_rng(0)
PLAIN = RANDOM.normal(size=60)
START = datetime(2024, 1, 1)


def table(**columns):
    return {name: cells_of(column) for name, column in columns.items()}


def only(columns, target=None, kinds=None):
    """What became of the first column."""
    source = table(**columns, plain=PLAIN)
    aim = None if target is None else table(**target, plain=PLAIN)
    return fit_table(source, aim, kinds).columns[0]


def test_complete_numbers_stay_as_they_are():
    fitted = fit_table(table(a=PLAIN, b=PLAIN > 0, c=pa.array([timedelta(seconds=i) for i in range(60)])))
    assert [column.kind for column in fitted.columns] == ["number", "boolean", "duration"]
    assert fitted.mean is fitted.factor is None and fitted.features == ["a", "b", "c"]
    assert [column.fill for column in fitted.columns] == [np.median(PLAIN), np.median(PLAIN > 0), 29.5]


def test_gaps_get_the_median_and_a_flag():
    column = only({"x": [1.0, None, 3.0, 4.0, None, 9.0] * 10})
    assert (column.fill, column.has_flag, column.missing) == (3.5, True, 1 / 3)
    town = only({"town": ["Ulm", "Bonn", "Ulm", None, "Bonn", "Kiel"] * 10})
    assert (town.fill, town.levels, town.has_flag) == ("Bonn", ["Bonn", "Kiel", "Ulm"], True), "ties by name"


def test_a_column_with_gaps_in_target_alone_gets_a_flag_too():
    column = only({"x": PLAIN}, {"x": np.where(PLAIN > 1, np.nan, PLAIN)})
    assert column.has_flag and column.missing == 0 and column.missing_in_target == (PLAIN > 1).mean()
    assert column.fill == np.median(PLAIN), "the target says where flags are needed, not what is filled in"


def test_constants_are_not_used_unless_the_target_has_another_value():
    for values in (np.ones(60), ["a"] * 60, [True] * 60, ["2024-01-01"] * 60):
        column = only({"x": values})
        assert (column.kind, column.became, column.features) == ("constant", "not used: one value everywhere", [])
    assert only({"x": np.ones(60)}, {"x": np.full(60, 2.0)}).kind == "number"
    assert only({"x": ["a"] * 60}, {"x": ["b"] * 60}).kind == "category"
    assert only({"x": np.ones(60)}, {"x": np.ones(60)}).kind == "constant"
    assert only({"x": [1.0, None] * 30}).features == ["x", "x is missing"], "a gap tells something"


@pytest.mark.parametrize(
    ("values", "kind", "note"),
    [
        ([None] * 60, "empty", "not used: no values"),
        (
            [f"k{i}" for i in range(60)],
            "id",
            "not used: nearly every value occurs once; pass --id, or --as x=category",
        ),
        (
            [f"a person wrote down {i}" for i in range(60)],
            "text",
            "not used: free text; pass --text x to encode it",
        ),
        ([[1, 2]] * 60, "nested", "not used: lists or records"),
    ],
)
def test_columns_that_nothing_is_made_of_say_why(values, kind, note):
    column = only({"x": values})
    assert (column.kind, column.became, column.features) == (kind, note, [])


@pytest.mark.parametrize("kind", ["number", "category", "date", "text", "id"])
def test_an_empty_column_is_not_used_whatever_a_person_set(kind):
    column = only({"x": [None] * 60}, kinds={"x": kind})
    assert (column.kind, column.became) == ("empty", "not used: no values")


def test_kinds_that_a_person_set():
    zips = np.arange(60) % 3 + 100
    assert only({"zip": zips}, kinds={"zip": "category"}).levels == ["100", "101", "102"]
    assert only({"zip": [f"k{i}" for i in range(60)]}, kinds={"zip": "category"}).features[0] == "zip=k0"
    assert only({"zip": zips}, kinds={"zip": "id"}).kind == "id"
    with pytest.raises(
        ValueError, match="column 'x' cannot be a number: most of its values are no numbers: the fir"
    ):
        only({"x": ["a", "b"] * 30}, kinds={"x": "number"})
    with pytest.raises(ValueError, match=r"column 'x' cannot be a date: .* no dates such as 2024-03-31"):
        only({"x": ["a", "b"] * 30}, kinds={"x": "date"})


def test_cells_that_cannot_be_read_are_gaps_and_counted():
    column = only({"x": ["1", "2", "3"] * 19 + ["?", "4", "5"]})
    assert column.kind == "number" and column.has_flag and column.missing == 1 / 60
    assert column.note == "1.67 % cannot be read and count as missing" and column.note in column.became


def test_many_levels_are_hashed_and_few_get_a_column_each():
    few, many = ([f"k{i}" for i in range(n)] * 3 for n in (ONE_HOT, ONE_HOT + 1))
    assert fit_table(table(x=few)).columns[0].buckets == 0
    hashed = fit_table(table(x=many))
    assert hashed.columns[0].buckets == BUCKETS and len(hashed.features) == BUCKETS + 1
    assert len(hashed.columns[0].levels) == ONE_HOT + 1, "so that an unseen level is noticed"


@pytest.mark.parametrize(("largest", "is_heavy"), [(HEAVY * 2 + 0.1, True), (HEAVY * 2, False)])
def test_a_heavy_tail_becomes_its_logarithm(largest, is_heavy):
    values = np.array([2.0] * 40 + [0.0] * 19 + [largest])
    fitted = fit_table(table(x=values, y=PLAIN))
    assert fitted.columns[0].tail == (2.0 if is_heavy else None)
    assert (fitted.mean is not None) == is_heavy
    if is_heavy:
        np.testing.assert_allclose(tamed(fitted, np.column_stack([values, PLAIN]))[:, 0], np.arcsinh(values / 2))


def test_dates_have_the_parts_that_vary():
    days = [START + timedelta(days=7 * i) for i in range(60)]
    column = only({"day": pa.array(days)})
    assert column.parts == ["month", "day", "elapsed days"], "always a Monday at midnight"
    assert column.fill == pytest.approx(np.median([(day - datetime(1970, 1, 1)).total_seconds() for day in days]))
    assert only({"day": [str(day.date()) for day in days]}).parts == column.parts
    hours = only({"day": pa.array([START + timedelta(hours=i) for i in range(20)] * 3)})
    assert hours.parts == ["hour", "elapsed days"]


def test_parts_of_a_date_that_alone_tell_source_from_target_are_left_out():
    source = [START + timedelta(days=i) for i in range(60)]
    target = [START + timedelta(days=400 + i) for i in range(60)]
    column = only({"day": pa.array(source)}, {"day": pa.array(target)})
    assert "elapsed days" not in column.parts and "weekday" in column.parts
    assert "elapsed days" in column.note and column.note.endswith("which alone tell source from target")
    same = only({"day": pa.array(source)}, {"day": pa.array(source[::-1])})
    assert "elapsed days" in same.parts and same.note == ""


def test_every_number_and_every_category_as_a_whole_has_variance_one():
    towns = np.array(["Ulm", "Bonn", "Kiel", "Rome"])[RANDOM.integers(0, 4, 60)].tolist()
    rows = table(pay=1000 * PLAIN, town=towns, day=[str((START + timedelta(i)).date()) for i in range(60)])
    fitted = fit_table(rows)
    X = scaled(fitted, values_of(fitted, rows).values)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    variance = dict(zip(fitted.features, X.var(axis=0), strict=True))
    assert variance["pay"] == pytest.approx(1)
    assert sum(v for name, v in variance.items() if name.startswith("town=")) == pytest.approx(1)
    assert all(v == pytest.approx(1) for name, v in variance.items() if name.startswith("day "))


def test_what_source_hardly_has_counts_at_most_ten_times_its_indicator():
    values = RANDOM.normal(size=2000)
    rows = table(x=values, town=["Ulm"] + ["Bonn"] * 1999)
    fitted = fit_table(rows, table(x=np.where(values > 0, values, np.nan), town=["Ulm"] * 2000))
    factor = dict(zip(fitted.features, fitted.factor, strict=True))
    assert factor["x is missing"] == factor["town=Ulm"] == 1 / np.sqrt(LEAST_VARIANCE) == 10


def test_numbers_of_one_unit_are_left_as_they_are():
    pixels = {f"p{i:02}": RANDOM.normal(size=60) + (i == 3) * 50 for i in range(ARRAY)}
    pixels["p00"] = np.zeros(60)
    fitted = fit_table(table(**pixels))
    assert fitted.mean is None and len(fitted.features) == ARRAY, "constants and all"
    gaps = {**pixels, "p05": np.where(PLAIN > 1, np.nan, pixels["p05"]), "town": ["Ulm", "Bonn"] * 30}
    one = fit_table(table(**gaps))
    factors = {f for name, f in zip(one.features, one.factor, strict=True) if name in pixels}
    assert len(factors) == 1, "numbers of one unit share one factor"
    fewer = fit_table(table(**dict(list(pixels.items())[: ARRAY - 1])))
    assert fewer.columns[0].kind == "constant", "a few columns are no array"


def test_a_table_without_a_column_to_use_is_told():
    with pytest.raises(
        ValueError, match="no column can be a feature: 'x' is not used: no values, 'y' is not used: li"
    ):
        fit_table(table(x=[None] * 9, y=[[1]] * 9))
    with pytest.raises(ValueError, match="no column can be a feature: each has one value everywhere"):
        fit_table(table(x=np.ones(9)))
    with pytest.raises(ValueError, match="no column can be a feature: there is none"):
        fit_table({})


columns = st.fixed_dictionaries(
    {
        "n": st.lists(st.none() | st.floats(-1e9, 1e9), min_size=8, max_size=8),
        "t": st.lists(st.none() | st.sampled_from(["a", "b", "(other)", "1 kg"]), min_size=8, max_size=8),
        "d": st.lists(st.none() | st.datetimes(datetime(1990, 1, 1), START), min_size=8, max_size=8),
        "b": st.lists(st.none() | st.booleans(), min_size=8, max_size=8),
    }
)


@given(columns, columns)
def test_any_two_tables_give_finite_features_and_the_same_again(source, target):
    rows, aim = ({**table(**given_), "plain": cells_of(PLAIN[:8])} for given_ in (source, target))
    fitted = fit_table(rows, aim)
    assert fitted == fit_table(rows, aim)
    assert len(set(fitted.features)) == len(fitted.features)
    for part in (rows, aim):
        found = values_of(fitted, part)
        X = scaled(fitted, found.values)
        assert X.shape == (8, len(fitted.features)) and np.isfinite(X).all()
        assert found.notes.missing == {}, "every column with gaps in source or target has a flag"
    assert values_of(fitted, rows).notes.unseen == {}
    assert [column.name for column in fitted.columns] == list(rows)


@given(columns)
def test_source_alone_decides_what_is_learned(source):
    """Another order of target rows changes nothing, and labels are not there to be looked at."""
    rows = {**table(**source), "plain": cells_of(PLAIN[:8])}
    back = {name: cells_of(values[::-1]) for name, values in source.items()} | {"plain": cells_of(PLAIN[7::-1])}
    assert fit_table(rows, rows) == fit_table(rows, back)
