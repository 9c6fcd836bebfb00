"""What a column holds is decided by its cells alone."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.cells import ISO, cells_of
from openset.features.table.column_kinds import MOSTLY, USED, Kind, kind_of_cells, set_kind

DAYS = [datetime(2024, 1, 1) + timedelta(days=9 * i) for i in range(40)]
WORDS = ["some", "words", "that", "a", "person", "wrote", "down", "here"]


def kind_of(values):
    return kind_of_cells(cells_of(values))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", "-3e4"] * 5, "number"),
        (["true", "False"] * 5, "boolean"),
        (["0", "1"] * 5, "number"),
        (["2024-03-01", "2024-03-02 12:00"] * 5, "date"),
        (["2024-03-01T00:00:00Z"] * 5, "date"),
        (["1:30:00", "2 days 00:00:00", "PT5M"], "duration"),
        (["red", "blue"] * 5, "category"),
        ([str(i) + "x" for i in range(21)], "id"),
        ([str(i) + "x" for i in range(20)], "category"),
        ([f"{i}x" for i in range(30)] * 2, "category"),
        ([f"{' '.join(WORDS)} {i}" for i in range(30)], "text"),
        ([f"two {i}x" for i in range(30)], "text"),
        ([f"{' '.join(WORDS)} {i}" for i in range(5)] * 5, "category"),
        ([None, "", "NA"], "empty"),
        (np.full(3, np.nan), "empty"),
        ([[1], [2]], "nested"),
        (np.arange(3), "number"),
        (np.array([True, False]), "boolean"),
        (pa.array(DAYS), "date"),
        (pa.array([timedelta(1), None]), "duration"),
    ],
)
def test_kinds(values, kind):
    assert kind_of(values).name == kind


@given(st.integers(0, 40), st.sampled_from(["number", "boolean", "date", "duration"]))
def test_a_few_cells_that_cannot_be_read_change_nothing(n_bad, kind):
    good = {"number": "1.5", "boolean": "true", "date": "2024-03-01", "duration": "1:30:00"}[kind]
    found = kind_of([good] * (100 - n_bad) + ["?"] * n_bad)
    if n_bad <= 100 * (1 - MOSTLY):
        assert found.name == kind and found.unusable == pytest.approx(n_bad / 100)
    else:
        assert found == Kind("category")


@given(st.lists(st.sampled_from([None, "", "NA"]), max_size=200))
def test_missing_cells_do_not_count(gaps):
    values = ["1", "2", "x"] * 20 + ["1"] * 340 + gaps
    assert kind_of(values).name == "number" and kind_of(values).unusable == pytest.approx(20 / 400)
    assert kind_of(["red", "blue", *gaps]).name == "category"


@given(st.randoms())
def test_the_order_of_rows_does_not_matter(order):
    for values in (["03.02.2024", "25.02.2024", "x"] * 3 + ["14.02.2024"] * 60, [f"{i}x" for i in range(25)]):
        shuffled = list(values)
        random.Random(order.random()).shuffle(shuffled)
        assert kind_of(shuffled) == kind_of(values)


@pytest.mark.parametrize(
    ("form", "fits"),
    [("%d.%m.%Y", True), ("%m/%d/%Y", True), ("%d/%m/%Y", True), ("%Y/%m/%d", True), ("%d.%m.%Y %H:%M", True)],
)
def test_dates_of_other_forms_are_told_by_days_above_twelve(form, fits):
    found = kind_of([day.strftime(form) for day in DAYS])
    assert (found.name, found.form, found.unusable) == ("date", form, 0.0)
    cells = cells_of([day.strftime(form) for day in DAYS])
    assert cells.times(found.form).tolist() == [day.replace(tzinfo=UTC).timestamp() for day in DAYS]


def test_dates_that_could_be_either_are_no_dates():
    either = ["03/04/2024", "05/06/2024"] * 10
    assert kind_of(either) == Kind("category")
    same = ["03/03/2024", "05/05/2024"] * 10  # the same dates in both forms
    assert kind_of(same).name == "date"
    assert kind_of(["1.5.2", "3.7.1"] * 5) == Kind("category")


@pytest.mark.parametrize("name", ["category", "text", "id"])
def test_a_person_can_set_what_any_cells_may_be(name):
    for values in (["1", "2"], ["a", None], np.arange(3)):
        assert set_kind(cells_of(values), name) == Kind(name)


@pytest.mark.parametrize("name", ["category", "number", "date", "text", "id"])
def test_a_column_without_values_is_empty_whatever_a_person_set(name):
    assert set_kind(cells_of([None, ""]), name) == Kind("empty")


@pytest.mark.parametrize("name", ["category", "number", "date"])
def test_lists_and_records_are_refused(name):
    with pytest.raises(ValueError, match="it holds lists or records"):
        set_kind(cells_of([[1], [2]]), name)


def test_a_person_can_set_numbers_and_dates():
    assert set_kind(cells_of(["1", "2", "x"]), "number") == Kind("number", ISO, pytest.approx(1 / 3))
    assert set_kind(cells_of(np.array([True, False])), "number") == Kind("number")
    assert set_kind(cells_of(["2024-03-01"]), "date") == Kind("date")
    assert set_kind(cells_of(["2024-03-01", "x"]), "date") == Kind("date", ISO, 0.5)
    assert set_kind(cells_of(["25.03.2024", None]), "date") == Kind("date", "%d.%m.%Y")


def test_dates_of_any_form_that_a_person_set_may_have_as_many_bad_cells_as_others():
    assert set_kind(cells_of(["25.03.2024", "26.03.2024", "x"]), "date").form == "%d.%m.%Y"


@pytest.mark.parametrize(
    ("values", "name", "words"),
    [
        (["red", "blue", "1"], "number", "most of its values are no numbers: the first is 'red'"),
        (["red", "2024-03-01", "x"], "date", "no dates such as 2024-03-31: the first is 'red'"),
        (["03/04/2024"] * 9, "date", "no dates such as 2024-03-31: the first is '03/04/2024'"),
    ],
)
def test_a_kind_that_most_cells_are_not_is_refused(values, name, words):
    with pytest.raises(ValueError, match=words):
        set_kind(cells_of(values), name)


def test_kinds_that_features_are_made_of():
    assert USED == ("number", "boolean", "category", "date", "duration")
