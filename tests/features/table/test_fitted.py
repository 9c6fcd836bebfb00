"""What was learned from a table: names of features, and what became of each column, in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.features.table.column_kinds import USED
from openset.features.table.fitted import FittedTable, TableColumn

NUMBER = TableColumn("pay", "number", fill=1.0)
TOWN = TableColumn("town", "category", fill="Ulm", levels=["Bonn", "Ulm"], has_flag=True, missing=0.25)
DAY = TableColumn("day", "date", fill=0.0, parts=["month", "elapsed days"])
HASHED = TableColumn("street", "category", fill="a", levels=[f"s{i}" for i in range(300)], buckets=3)
UNUSED = TableColumn("nr", "id", note="not used: nearly every value occurs once")


@pytest.mark.parametrize(
    ("column", "features"),
    [
        (NUMBER, ["pay"]),
        (TableColumn("pay", "number", fill=1.0, has_flag=True, tail=3.0), ["pay", "pay is missing"]),
        (TOWN, ["town=Bonn", "town=Ulm", "town=(other)", "town is missing"]),
        (HASHED, ["street#0", "street#1", "street#2", "street=(other)"]),
        (DAY, ["day month", "day elapsed days"]),
        (UNUSED, []),
    ],
)
def test_names_of_features(column, features):
    assert column.features == features and column.is_used == bool(features)


@pytest.mark.parametrize(
    ("column", "became"),
    [
        (NUMBER, "as it is"),
        (TableColumn("pay", "number", fill=1.0, tail=3.0), "its logarithm, as its tail is heavy"),
        (TableColumn("is_new", "boolean", fill=0.0), "1 for true, 0 for false"),
        (TableColumn("took", "duration", fill=0.0), "seconds"),
        (DAY, "month, elapsed days"),
        (HASHED, "300 levels in 3 hashed columns"),
        (TableColumn("town", "category", fill="a", levels=["a"]), "1 level, a column each"),
        (TOWN, "2 levels, a column each; 25 % missing (target 0 %): most common level and a flag"),
        (
            TableColumn("pay", "number", fill=1.0, has_flag=True, missing=0.5, missing_in_target=0.012, note="x"),
            "as it is; 50 % missing (target 1.2 %): median and a flag; x",
        ),
        (UNUSED, "not used: nearly every value occurs once"),
    ],
)
def test_what_became_of_a_column_in_words(column, became):
    assert column.became == became


@given(st.floats(0, 1), st.floats(0, 1))
def test_shares_are_never_written_as_powers(missing, in_target):
    column = TableColumn("pay", "number", fill=1.0, has_flag=True, missing=missing, missing_in_target=in_target)
    if min(share for share in (missing, in_target, 1) if share) > 1e-5:
        assert "e+" not in column.became and "e-" not in column.became


def test_a_table_has_the_features_of_its_used_columns_in_order():
    fitted = FittedTable([UNUSED, DAY, NUMBER, TOWN])
    assert fitted.used == [DAY, NUMBER, TOWN]
    assert fitted.features == [*DAY.features, "pay", *TOWN.features]
    assert {column.kind for column in fitted.used} <= set(USED)
