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
from openset.pipeline.load import (
    has_labels,
    ignored_columns,
    read_data,
    read_labelled,
    read_source,
    read_target,
    stream,
)
from openset.pipeline.settings import RunSettings
from product_files import NAMES, frame, make_rows

SETTINGS = RunSettings(label="kind", id="rid")


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
    rows = (*NAMES, "kind", "rid"), (*NAMES, "rid")
    expected = {(source.name, rows[0]): 1, (target.name, rows[1]): 1, (target.name, ("kind",)): 1}
    if suffix == "csv":  # which has no types: are all labels integers?
        expected[source.name, ("kind",)] = 1
    assert passes == expected


def test_the_other_commands_open_each_file_once(problem_files, opened, tmp_path):
    openings, _ = opened
    run, out = problem_files / "run", tmp_path / "scored.csv"
    assert call("score", run, problem_files / "target.csv", "--fdr", "0.2", "--out", out).exit_code == 0
    assert call("evaluate", run, problem_files / "labelled.csv").exit_code == 0
    openset.load_run(run)
    names = ("target.csv", "labelled.csv", "source.parquet", "target.parquet")
    assert openings == dict.fromkeys(names, 1)


def test_a_target_that_has_labels_is_refused_at_the_first_of_them(opened, problem_files):
    labelled = open_source(problem_files / "labelled.csv")
    with pytest.raises(ParameterError, match="labelled.csv has labels in 'kind'.*ignore_target_labels=True; to"):
        read_target(replace(SETTINGS, features=NAMES), labelled)
    ignoring = replace(SETTINGS, features=NAMES, ignore_target_labels=True)
    assert len(read_target(ignoring, labelled)) == 130 and read_target(ignoring, labelled).y is None


def test_labels_are_there_only_with_a_value():
    X = np.zeros((3, 3))
    assert has_labels(open_source(frame(X, kind=[None, None, "a"])), "kind")
    assert not has_labels(open_source(frame(X, kind=[None, " ", np.nan])), "kind")
    assert not has_labels(open_source(frame(X)), "kind") and not has_labels(open_source(frame(X)), None)


def test_columns_are_named_and_those_ignored_are_told(problem_files):
    data = read_data(SETTINGS, problem_files / "source.parquet", problem_files / "target.csv")
    assert data.settings == replace(SETTINGS, features=NAMES) and data.ignored == ["town"]
    assert len(data.source) == 600 and data.source.ids[0] == "s0" and data.source.y is not None
    assert len(data.target) == 400 and data.target.feature_names == NAMES
    source = open_source(frame(np.zeros((3, 3)), **{"Unnamed: 0": [0, 1, 2]}, kind="a", town="Rome"))
    assert ignored_columns(SETTINGS, source) == ["Unnamed: 0", "town"]
    assert ignored_columns(replace(SETTINGS, features=NAMES), source) == []
    assert ignored_columns(replace(SETTINGS, text="town"), source) == []


def test_labelled_rows_need_no_ids(problem_files):
    X, y = make_rows(np.random.default_rng(0), {"cat": 20, "dog": 20})
    records, named = read_source(SETTINGS, open_source(frame(X, kind=y)))
    assert records.ids is None and named.id == "rid"
    later = read_labelled(named, frame(X, what=y), "what")
    assert later.y.tolist() == y.tolist() and later.ids is None


@pytest.mark.parametrize(
    ("settings", "source", "words"),
    [
        (RunSettings(), {}, "no label column is named: pass label=..., the column"),
        (
            replace(SETTINGS, features=("town",)),
            {"town": "Rome"},
            "'town' holds no numbers, .*encode it with text=",
        ),
        (replace(SETTINGS, text="note"), {"note": " "}, "every text in column 'note' is blank"),
        (replace(SETTINGS, features=("widht",)), {}, "no column 'widht'.*Did you mean 'width'?"),
    ],
)
def test_a_source_that_cannot_be_used_is_told(settings, source, words):
    X, y = make_rows(np.random.default_rng(0), {"cat": 20, "dog": 20})
    with pytest.raises(ValueError, match=words):
        read_source(settings, open_source(frame(X, kind=y, **source)))


def test_too_few_rows_are_refused_for_either_role():
    few = open_source(frame(np.eye(3), kind=["a", "b", "a"], rid=["1", "2", "3"]))
    with pytest.raises(ValueError, match="the data frame has 3 rows to use, .*the source needs at least 20"):
        read_source(SETTINGS, few)
    with pytest.raises(ValueError, match="the target needs at least 20"):
        read_target(replace(SETTINGS, ignore_target_labels=True), few)


def test_a_folder_of_images_brings_its_columns(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for kind in ("cat", "dog"):
        (tmp_path / kind).mkdir()
        for number in range(10):
            image.new("RGB", (4, 4), "red").save(tmp_path / kind / f"{number}.png")
    records, named = read_source(RunSettings(), open_source(tmp_path))
    assert (named.image, named.id, named.label, named.features) == ("image", "image", "label", None)
    assert len(records) == 20 and set(records.y.tolist()) == {"cat", "dog"}
    with pytest.raises(ValueError, match=r"cat has no class folders: expected <class>/<name>\.jpg"):
        read_source(RunSettings(), open_source(tmp_path / "cat"))


def test_every_row_of_a_stream_must_be_usable():
    rows = frame(np.array([[1.0, 2.0, 3.0], [np.nan, 2.0, 3.0]]))
    settings = RunSettings(features=NAMES)
    with pytest.raises(ValueError, match="row 1: column 'width' is missing.*Every row must be scored") as caught:
        list(stream(settings, open_source(rows), 10))
    assert "skip" not in str(caught.value)
    with pytest.raises(ValueError, match="no column 'rid'"):  # at once, before a row is read
        stream(replace(settings, id="rid"), open_source(rows), 10)
