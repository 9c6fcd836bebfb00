"""features.json: what was fitted is read again as it was, and refused in one sentence where it is damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutations import mutations, outcome
from openset._version import __version__
from openset.data.readers.cells import cells_of
from openset.features.fitted import Block, FittedFeatures, read_features, write_features
from openset.features.table.apply import scaled, values_of
from openset.features.table.fit import fit_table
from openset.features.table.fitted import FittedTable, TableColumn

words = st.text(st.characters(codec="utf-8"), max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False)
about = {"name": words, "has_flag": st.booleans(), "missing": st.floats(0, 1), "note": words}
parts = st.lists(st.sampled_from(["month", "day", "weekday", "hour"]), min_size=1, unique=True)
table_columns = st.one_of(
    st.builds(TableColumn, kind=st.just("number"), fill=numbers, tail=st.none() | st.floats(0.1, 1e9), **about),
    st.builds(TableColumn, kind=st.sampled_from(["boolean", "duration"]), fill=numbers, **about),
    st.builds(TableColumn, kind=st.just("date"), fill=numbers, parts=parts, **about),
    st.builds(TableColumn, kind=st.sampled_from(["constant", "id", "not in target"]), name=words, note=words),
    st.lists(words, min_size=1, max_size=3, unique=True).flatmap(
        lambda levels: st.builds(
            TableColumn,
            kind=st.just("category"),
            levels=st.just(levels),
            fill=st.sampled_from(levels),
            buckets=st.integers(0, 9),
            **about,
        )
    ),
)


def mixed():
    days = [datetime(2024, 1, 1) + timedelta(days=5 * i) for i in range(40)]
    return {
        "pay": cells_of([1.0, 2.0, None, 4000.1] * 10),
        "town": cells_of(["Ulm", "ü", None, "Bonn"] * 10),
        "day": cells_of([str(day) for day in days]),
        "new": cells_of([True, False] * 20),
    }


@given(st.lists(table_columns, max_size=4), st.lists(st.builds(Block, kind=words, column=words, factor=numbers)))
def test_written_and_read_again(tmp_path_factory, columns, blocks):
    path = tmp_path_factory.mktemp("features") / "features.json"
    for fitted in (FittedFeatures(blocks, FittedTable(columns)), FittedFeatures(blocks)):
        write_features(fitted, path)
        assert read_features(path) == fitted


def test_a_table_makes_the_same_features_after_a_round_trip(tmp_path):
    fitted = FittedFeatures([Block("table")], fit_table(mixed()))
    write_features(fitted, tmp_path / "features.json")
    again = read_features(tmp_path / "features.json")
    assert again == fitted and again.openset_version == __version__
    values = [values_of(one.table, mixed()).values for one in (fitted, again)]
    np.testing.assert_array_equal(*values)
    np.testing.assert_array_equal(scaled(fitted.table, values[0]), scaled(again.table, values[1]))
    assert "ü" in (tmp_path / "features.json").read_text(encoding="utf-8")


def test_a_run_of_an_earlier_openset_has_none(tmp_path):
    assert read_features(tmp_path / "features.json") is None


def test_columns_and_scales():
    table = fit_table(mixed())
    alone = FittedFeatures([Block("table")], table)
    assert alone.columns == ["pay", "town", "day", "new"] and alone.is_scaled
    plain = FittedFeatures([Block("table")], replace(table, mean=None, factor=None))
    assert not plain.is_scaled
    both = FittedFeatures([Block("table"), Block("text", "review", 0.5)], plain.table)
    assert both.is_scaled and both.columns[-1] == "review"
    vectors = FittedFeatures([Block("vector")])
    assert vectors.columns == [] and not vectors.is_scaled


def test_a_file_of_a_later_openset(tmp_path):
    path = tmp_path / "features.json"
    write_features(FittedFeatures([], openset_version="9.0", format_version=99), path)
    with pytest.raises(ValueError, match="openset 9.0 wrote it in a later format: upgrade openset"):
        read_features(path)


@pytest.mark.parametrize("change", [{"mean": [0.0]}, {"factor": [1.0]}, {"factor": None}])
def test_a_scaling_of_other_features_is_refused(tmp_path, change):
    path = tmp_path / "features.json"
    table = fit_table(mixed())
    write_features(FittedFeatures([Block("table")], replace(table, **change)), path)
    with pytest.raises(ValueError, match=r"features.json is damaged: its scaling is not of its \d+ features"):
        read_features(path)


def test_a_file_with_one_thing_changed_is_read_or_refused_in_one_sentence(tmp_path):
    path = tmp_path / "features.json"
    write_features(FittedFeatures([Block("table")], fit_table({**mixed()})), path)
    content = json.loads(path.read_text(encoding="utf-8"))
    read = refused = 0
    for mutation in mutations(content):
        path.write_text(json.dumps(mutation.content), encoding="utf-8")
        found, message = outcome(read_features, path)
        if message:
            refused += 1
            assert message.startswith(str(path)) and "\n" not in message and "Traceback" not in message
        else:
            read += 1
            assert isinstance(found, FittedFeatures) and isinstance(found.columns, list)
    assert refused > 50 and read > 20


@pytest.mark.parametrize("content", ["", "{", "[]", "3", '{"blocks": 3}'])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / "features.json").write_text(content)
    with pytest.raises(ValueError, match=r"features\.json"):
        read_features(tmp_path / "features.json")


@pytest.mark.parametrize(
    ("column", "change"),
    [
        (0, {"fill": None}),
        (0, {"fill": "x"}),
        (0, {"tail": 0.0}),
        (1, {"fill": "Rome"}),
        (1, {"fill": None}),
        (1, {"levels": []}),
        (1, {"buckets": -3}),
        (2, {"parts": ["year"]}),
        (2, {"fill": "Monday"}),
        (2, {"form": "%q"}),
        (3, {"fill": None}),
    ],
)
def test_a_column_that_cannot_make_features_is_refused_when_it_is_read(tmp_path, column, change):
    """Rather than a traceback, or scores of NaN, when the first batch is scored."""
    path = tmp_path / "features.json"
    table = fit_table(mixed())
    assert [one.kind for one in table.columns] == ["number", "category", "date", "boolean"]
    columns = [replace(one, **change) if i == column else one for i, one in enumerate(table.columns)]
    if change.keys() & {"levels", "buckets"}:  # a scaling of as many features
        n_features = max(0, len(FittedTable(columns).features))
        table = replace(table, mean=[0.0] * n_features, factor=[1.0] * n_features)
    write_features(FittedFeatures([Block("table")], replace(table, columns=columns)), path)
    with pytest.raises(ValueError, match=r"features\.json is damaged"):
        read_features(path)
