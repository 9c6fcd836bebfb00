from __future__ import annotations

import csv
import sqlite3
import sys
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from openset.bench.runs import Run, RunResult, code_version
from openset.bench.store import Store, export, head_rows, run_rows
from openset.errors import MissingExtraError

RUN = Run("synthetic", None, "{}", "shift", "novel", 0, "knn", "{}")
RESULT = RunResult(
    metrics={"auroc": 0.1 + 0.2, "auprc": 1 / 3},
    seconds={"fit": 0.5},
    heads=[{"head": 0, "fpr": 0.01, "selected": True}, {"head": 1, "fpr": 0.2, "selected": False}],
    manifest_checksum="abc",
    stand_in_for="Amazon Reviews",
    warnings=["few rows"],
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs.sqlite")


def test_a_result_comes_back_bit_for_bit(store):
    store.put(RUN, RESULT, spec="quick")
    (stored,) = store.all()
    assert stored.run == RUN and stored.result == RESULT
    assert (stored.spec, stored.code_version, stored.key) == ("quick", code_version(), RUN.key(code_version()))
    assert stored.environment["torch"]
    assert store.get([stored.key]) == {stored.key: stored} and store.get(["other"]) == {}
    assert Store(store.path).all() == [stored]


def test_the_file_is_in_wal_mode(store):
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_second_result_replaces_the_first_with_its_heads(store):
    store.put(RUN, RESULT, spec="a")
    store.put(RUN, replace(RESULT, heads=[], failure="it broke"), spec="b")
    (stored,) = store.all()
    assert stored.result.failure == "it broke" and stored.result.heads == [] and stored.spec == "b"


def test_nothing_is_half_written(store, monkeypatch):
    broken = replace(RESULT, heads=[{"head": object()}])  # fails after the run's own row went in
    with pytest.raises(TypeError):
        store.put(RUN, broken, spec="a")
    assert store.all() == []


def test_other_files_are_refused(tmp_path):
    (tmp_path / "x.txt").write_text("a text, and long enough to see")
    with pytest.raises(ValueError, match="not a result store"):
        Store(tmp_path / "x.txt")
    connection = sqlite3.connect(tmp_path / "new.sqlite")
    connection.execute("PRAGMA user_version = 9")
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    with pytest.raises(ValueError, match="newer openset"):
        Store(tmp_path / "new.sqlite")


def test_exports_hold_every_figure(store, tmp_path):
    store.put(RUN, RESULT, spec="quick")
    store.put(replace(RUN, seed=1), RunResult(failure="it broke"), spec="quick")
    rows = run_rows(store.all())
    export(rows, tmp_path / "runs.csv")
    export(rows, tmp_path / "runs.parquet")
    export(head_rows(store.all()), tmp_path / "heads.csv")
    with (tmp_path / "runs.csv").open() as file:
        read = sorted(csv.DictReader(file), key=lambda row: row["seed"])
    assert float(read[0]["auroc"]) == 0.1 + 0.2 and read[0]["seconds_fit"] == "0.5"
    assert read[1]["auroc"] == "" and read[1]["failure"] == "it broke"
    table = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    assert sorted(row["auroc"] or 0 for row in table) == [0, 0.1 + 0.2]
    with (tmp_path / "heads.csv").open() as file:
        assert [row["selected"] for row in csv.DictReader(file)] == ["True", "False"]


def test_export_names_what_it_can_write_and_needs(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        export([], tmp_path / "runs.xlsx")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"openset\[data\]"):
        export([], tmp_path / "runs.parquet")
