"""Rows of a run: each file is opened once, and what only a whole run can check is checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import openset
from command_line import QUICK, call
from openset.data.readers import open as opening
from openset.data.readers.open import open_source
from openset.errors import ParameterError
from openset.features.fitted import Block, FittedFeatures
from openset.features.table.fitted import FittedTable, TableColumn
from openset.pipeline.choose_columns import ChosenColumns
from openset.pipeline.load import (
    columns_of,
    has_labels,
    read_data,
    read_fitted,
    read_labelled,
    read_source,
    read_target,
    stream,
)
from openset.pipeline.settings import RunSettings
from product_files import NAMES, frame, make_rows

SETTINGS = RunSettings(label="kind", id="rid")
TABLE = ChosenColumns(table=NAMES)


def rows(n=40, **columns):
    """Rows of two kinds as a data frame, with these columns too."""
    X, y = make_rows(np.random.default_rng(0), {"cat": n // 2, "dog": n // 2})
    return frame(X, kind=y).assign(**columns)


@pytest.fixture
def opened(monkeypatch):
    """Counts of files opened, and of passes over their rows by the columns read."""
    openings, passes = Counter(), Counter()

    def counting(opener):
        def count(path):
            openings[path.name] += 1
            source = opener(path)

            def chunks(columns, batch_rows):
                passes[path.name, tuple(columns)] += 1
                return source.chunks(columns, batch_rows)

            return replace(source, chunks=chunks)

        return count

    for suffix, opener in list(opening.OPENERS.items()):
        monkeypatch.setitem(opening.OPENERS, suffix, counting(opener))
    return openings, passes


@pytest.fixture
def files(problem_files, tmp_path):
    """Source and target of each format; the target's label column is there and has no value."""
    for name in ("source", "target"):
        data = pd.read_parquet(problem_files / f"{name}.parquet")
        data = data if name == "source" else data.assign(kind=pd.Series([None] * len(data), dtype="str"))
        data.to_parquet(tmp_path / f"{name}.parquet")
        data.to_csv(tmp_path / f"{name}.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_fit_opens_each_file_once_and_reads_its_rows_once(files, opened, suffix):
    openings, passes = opened
    source, target = files / f"source.{suffix}", files / f"target.{suffix}"
    done = call("fit", source, target, "--label", "kind", "--id", "rid", *QUICK, "--out", files / "run")
    assert done.exit_code == 0, done.output
    assert openings == {source.name: 1, target.name: 1}
    both = {(source.name, ("kind", "rid", *NAMES)): 1, (target.name, ("rid", *NAMES)): 1}
    expected = {**both, (target.name, ("kind",)): 1}
    if suffix == "csv":  # which has no types: are all labels integers? all ids?
        expected |= {(source.name, ("kind",)): 1, (source.name, ("rid",)): 1, (target.name, ("rid",)): 1}
    assert {(name, tuple(sorted(columns))): n for (name, columns), n in passes.items()} == {
        (name, tuple(sorted(columns))): n for (name, columns), n in expected.items()
    }


def test_the_other_commands_open_each_file_once(problem_files, opened, tmp_path):
    openings, _ = opened
    run, out = problem_files / "run", tmp_path / "scored.csv"
    assert call("score", run, problem_files / "target.csv", "--fdr", "0.2", "--out", out).exit_code == 0
    assert call("evaluate", run, problem_files / "labelled.csv").exit_code == 0
    openset.load_run(run)
    names = ("target.csv", "labelled.csv", "source.parquet", "target.parquet")
    assert openings == dict.fromkeys(names, 1)


def test_a_target_that_has_labels_is_refused_at_the_first_of_them(problem_files):
    labelled = open_source(problem_files / "labelled.csv")
    with pytest.raises(ParameterError, match="labelled.csv has labels in 'kind'.*ignore_target_labels=True; to"):
        read_target(SETTINGS, labelled, TABLE)
    ignoring = replace(SETTINGS, ignore_target_labels=True)
    found = read_target(ignoring, labelled, TABLE)
    assert len(found) == 130 and found.y is None and tuple(found.table) == NAMES


def test_labels_are_there_only_with_a_value():
    X = np.zeros((3, 3))
    assert has_labels(open_source(frame(X, kind=[None, None, "a"])), "kind")
    assert not has_labels(open_source(frame(X, kind=[None, " ", np.nan])), "kind")
    assert not has_labels(open_source(frame(X)), "kind") and not has_labels(open_source(frame(X)), None)


def test_columns_that_target_lacks_are_not_used_and_named(problem_files):
    data = read_data(SETTINGS, problem_files / "source.parquet", problem_files / "target.csv")
    assert data.settings == SETTINGS
    assert [(column.name, column.kind, column.note) for column in data.unread] == [
        ("town", "not in target", "not used: not in target")
    ]
    assert len(data.source) == 600 and data.source.ids[0] == "s0" and data.source.y is not None
    assert len(data.target) == 400 and data.target.ids[0] == "t0" and data.target.y is None
    for records in (data.source, data.target):
        assert tuple(records.table) == NAMES and records.X is None
        assert {len(cells) for cells in records.table.values()} == {len(records)}
    # the same numbers, whether a file has types or text
    as_text = data.target.table["width"].numbers()
    np.testing.assert_array_equal(as_text, pd.read_parquet(problem_files / "target.parquet")["width"])


def test_row_numbers_and_dropped_columns_are_named_with_the_reason():
    source = rows(**{"Unnamed: 0": range(40), "town": "Rome", "x1": 1.0, "x2": 2.0})
    data = read_data(RunSettings(label="kind", drop="x*"), source, source.drop(columns=["kind"]))
    assert {column.name: column.kind for column in data.unread} == {
        "Unnamed: 0": "row numbers", "x1": "dropped", "x2": "dropped"
    }  # fmt: skip
    assert tuple(data.source.table) == tuple(data.target.table) == (*NAMES, "town")
    named = read_data(RunSettings(label="kind", features=NAMES), source, source.drop(columns=["kind"]))
    assert tuple(named.source.table) == NAMES and named.unread == []


def test_columns_of_the_target_in_another_order_and_more_of_them_change_nothing():
    source = rows()
    target = source[[*NAMES[::-1]]].assign(extra="x")
    data = read_data(RunSettings(label="kind"), source, target)
    assert tuple(data.target.table) == NAMES and data.unread == []
    np.testing.assert_array_equal(data.target.table["height"].numbers(), source["height"])


def test_source_rows_without_a_label_are_skipped_and_counted():
    source = rows()
    source.loc[[3, 7], "kind"] = None
    source.loc[11, "kind"] = "  "
    source.loc[5, "width"] = np.nan  # filled in later, so no reason to skip the row
    found = read_source(RunSettings(label="kind"), open_source(source), TABLE)
    assert [bad.row for bad in found.skipped] == [3, 7, 11] and found.n_skipped == 3
    assert {bad.reason for bad in found.skipped} == {"column 'kind' is missing"}
    assert found.rows.tolist() == [row for row in range(40) if row not in (3, 7, 11)]
    assert len(found.y) == 37 == len(found.table["width"]) and found.table["width"].missing.sum() == 1
    assert found.table["width"].missing[list(found.rows).index(5)]


def test_every_target_row_is_read_whatever_is_missing_in_it():
    target = rows(note="fine").drop(columns="kind")
    target.loc[4, list(NAMES)] = np.nan
    target.loc[[0, 9], "note"] = None
    target.loc[2, "note"] = " "
    found = read_target(replace(SETTINGS, id=None, text="note"), open_source(target), TABLE)
    assert found.rows.tolist() == list(range(40)) and found.n_skipped == 0
    assert all(cells.missing.tolist() == (np.arange(40) == 4).tolist() for cells in found.table.values())
    assert [row for row, text in enumerate(found.texts) if not text.strip()] == [0, 2, 9], "blank text is kept"


def test_labelled_rows_need_no_ids():
    source = rows()
    records = read_source(SETTINGS, open_source(source), TABLE)
    assert records.ids is None and len(records) == 40
    later = read_labelled(SETTINGS, source.rename(columns={"kind": "what"}), "what", fitted_on(*NAMES))
    assert later.y.tolist() == source["kind"].tolist() and later.ids is None and tuple(later.table) == NAMES


def fitted_on(*names, blocks=()):
    """Features of a table of these numbers, and of further blocks."""
    table = FittedTable([TableColumn(name, "number", fill=0.0) for name in names])
    return FittedFeatures([Block("table"), *blocks], table)


def test_a_fitted_run_reads_the_columns_that_it_was_fitted_with():
    table = FittedTable([TableColumn("width", "number", fill=0.0), TableColumn("town", "constant")])
    fitted = FittedFeatures([Block("table"), Block("vector", "e"), Block("text", "note")], table)
    assert columns_of(SETTINGS, fitted) == ChosenColumns(("width",), ("e",))
    assert columns_of(SETTINGS, FittedFeatures([Block("text", "note")])) == ChosenColumns()
    # an earlier openset wrote no fitted features: numbers alone, which must be complete
    earlier = replace(SETTINGS, features=NAMES)
    assert columns_of(earlier, None) == ChosenColumns(features=NAMES)
    data = read_fitted(replace(earlier, id=None), rows(), rows().drop(columns="kind"), None)
    assert data.source.feature_names == NAMES and data.target.X.shape == (40, 3) and data.unread == []


def test_without_a_label_the_error_lists_likely_columns():
    source = rows(town=np.resize(["Rome", "Ulm", "Bonn"], 40), nr=range(40), what=np.resize(list("abcd"), 40))
    target = source.drop(columns=["kind", "what"])
    with pytest.raises(ParameterError, match="no label column is named: pass label=..., the column") as caught:
        read_data(RunSettings(), source, target)
    assert str(caught.value).endswith("Likely ones: 'kind', 'what', 'town'.")


def test_swapped_files_are_recognised(problem_files):
    files = problem_files / "source.parquet", problem_files / "target.parquet"
    with pytest.raises(ParameterError, match="target.parquet has no column 'kind', and .*source.parquet has one"):
        read_data(SETTINGS, *files[::-1])
    with pytest.raises(
        ParameterError, match="source and target seem to be swapped. Give the labelled file first"
    ):
        read_data(SETTINGS, *files[::-1])


@pytest.mark.parametrize(
    ("settings", "more", "words"),
    [
        (RunSettings(), {}, "no label column is named: pass label=..., the column"),
        (replace(SETTINGS, features=("town",)), {}, "features='town' is no column of the data frame"),
        (replace(SETTINGS, features=("widht",)), {}, "features='widht' is no column.*Did you mean 'width'?"),
        (replace(SETTINGS, label="knd"), {}, "no column 'knd'.*Did you mean 'kind'?"),
        (replace(SETTINGS, text="note"), {"note": " "}, "every text in column 'note' is blank"),
        (replace(SETTINGS, drop=("*",)), {}, r"drop=\['\*'\] leaves no feature"),
        (replace(SETTINGS, carry="widht"), {}, "carry='widht' is no column of the data frame. Did you mean"),
    ],
)
def test_a_source_that_cannot_be_used_is_told(settings, more, words):
    source = rows(rid=range(40), **more)
    with pytest.raises(ValueError, match=words):
        read_data(settings, source, source.drop(columns="kind"))


def test_a_target_without_a_column_is_told():
    source = rows(town="Rome")
    with pytest.raises(ValueError, match="the data frame has no column 'town'; it has width, height, weight"):
        read_data(RunSettings(label="kind", features=("width", "town")), source, source[list(NAMES)])
    with pytest.raises(ValueError, match="no column of the data frame is in the target: it lacks 'width', "):
        read_data(RunSettings(label="kind"), source, pd.DataFrame({"other": range(40)}))


def test_too_few_rows_are_refused_for_either_role():
    few = open_source(frame(np.eye(3), kind=["a", "b", "a"], rid=["1", "2", "3"]))
    with pytest.raises(ValueError, match="the data frame has 3 rows to use, .*the source needs at least 20"):
        read_source(SETTINGS, few, TABLE)
    with pytest.raises(ValueError, match="the target needs at least 20"):
        read_target(replace(SETTINGS, ignore_target_labels=True), few, TABLE)


def test_a_folder_of_images_brings_its_columns(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for kind in ("cat", "dog"):
        (tmp_path / kind).mkdir()
        for number in range(20):
            image.new("RGB", (4, 4), "red").save(tmp_path / kind / f"{number}.png")
    data = read_data(RunSettings(), tmp_path, tmp_path / "cat")
    named = data.settings
    assert (named.image, named.id, named.label, named.features) == ("image", "image", "label", None)
    assert len(data.source) == 40 and set(data.source.y.tolist()) == {"cat", "dog"} and len(data.target) == 20
    assert data.source.table is None and data.unread == []
    with pytest.raises(ValueError, match=r"cat has no class folders: expected <class>/<name>\.jpg"):
        read_data(RunSettings(), tmp_path / "cat", tmp_path / "dog")


def test_carried_columns_are_kept_as_they_are():
    day = pd.to_datetime("2024-03-01")
    target = rows(rid=range(40), day=day, note="fine").drop(columns="kind")
    found = read_target(replace(SETTINGS, carry=("note", "rid", "day")), open_source(target), TABLE)
    assert list(found.carried) == ["note", "day"], "the id is there anyway"
    assert found.carried["day"].to_pylist() == [day] * 40 and found.ids.tolist() == list(range(40))
    every = read_target(replace(SETTINGS, carry="all"), open_source(target), TABLE)
    assert list(every.carried) == [*NAMES, "day", "note"] and every.carried["width"].type == "double"


def test_every_row_of_a_stream_is_read_though_cells_are_missing():
    data = frame(np.array([[1.0, 2.0, 3.0], [np.nan, 2.0, 3.0], [5.0, 6.0, 7.0]]), note=["a", None, "c"])
    settings = RunSettings(text="note", carry="note")
    found = list(stream(settings, open_source(data), 2, fitted_on(*NAMES)))
    assert [batch.rows.tolist() for batch in found] == [[0, 1], [2]]
    assert found[0].table["width"].missing.tolist() == [False, True] and found[0].texts.tolist() == ["a", ""]
    assert found[0].carried["note"].to_pylist() == ["a", None]


def test_a_row_of_a_stream_that_cannot_be_read_is_told():
    data = frame(np.zeros((3, 3)), rid=["a", "b", "a"])
    with pytest.raises(
        ValueError, match="row 2: id a in column 'rid' came before.*Every row must be sc"
    ) as caught:
        list(stream(SETTINGS, open_source(data), 10, fitted_on(*NAMES)))
    assert "skip" not in str(caught.value)
    with pytest.raises(ValueError, match="no column 'nr'"):  # at once, before a row is read
        stream(replace(SETTINGS, id="nr"), open_source(data), 10, fitted_on(*NAMES))
    # numbers alone, of an earlier openset, must be complete
    gaps = open_source(frame(np.array([[1.0, 2.0, 3.0], [np.nan, 2.0, 3.0]])))
    with pytest.raises(ValueError, match="row 1: column 'width' is missing.*Every row must be scored"):
        list(stream(RunSettings(features=NAMES), gaps, 10))
