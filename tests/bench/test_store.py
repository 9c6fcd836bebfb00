from __future__ import annotations

import os
import sqlite3
import tempfile
import tracemalloc
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from openset.bench.provenance import code_version
from openset.bench.runs import Run, RunResult
from openset.bench.store import Store

RUN = Run("synthetic", None, "{}", "shift", "novel", 0, "knn", "{}")
RESULT = RunResult(
    metrics={"auroc": 0.1 + 0.2, "auprc": 1 / 3},
    seconds={"fit": 0.5},
    heads=[{"head": 0, "fpr": 0.01, "selected": True}, {"head": 1, "fpr": 0.2, "selected": False}],
    manifest_checksum="abc",
    stand_in_for="Amazon Reviews",
    warnings=["few rows"],
    environment={"processor": "abacus"},
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs.sqlite")


def test_a_result_comes_back_bit_for_bit(store):
    store.put(RUN, RESULT, spec="quick")
    (stored,) = store.all()
    assert stored.run == RUN and stored.result == RESULT
    assert (stored.spec, stored.code_version, stored.key) == ("quick", code_version(), RUN.key)
    assert store.get([stored.key]) == {stored.key: stored} and store.get(["other"]) == {}
    assert Store(store.path).all() == [stored]


def test_the_file_is_in_wal_mode(store):
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_second_result_replaces_the_first_with_its_heads(store):
    store.put(RUN, RESULT, spec="a")
    store.put(RUN, replace(RESULT, heads=[], metrics={"auroc": 1.0}), spec="b")
    (stored,) = store.all()
    assert stored.result.metrics == {"auroc": 1.0} and stored.result.heads == [] and stored.spec == "b"


def test_a_failure_gives_way_and_never_replaces_a_success(store):
    store.put(RUN, RunResult(failure="it broke"), spec="a")
    store.put(RUN, RunResult(failure="it broke again"), spec="a")
    assert [stored.result.failure for stored in store.all()] == ["it broke again"]
    store.put(RUN, RESULT, spec="a")
    store.put(RUN, RunResult(failure="the worker died"), spec="b")
    (stored,) = store.all()
    assert stored.result == RESULT and stored.spec == "a"


def test_runs_of_another_store_are_added_and_replace_failures_only(store, tmp_path):
    other, third = Store(tmp_path / "other.sqlite"), Store(tmp_path / "third.sqlite")
    another = replace(RUN, seed=1)
    other.put(RUN, RESULT, spec="there")
    other.put(another, RunResult(failure="it broke"), spec="there")
    assert third.add(other.all()) == 2 and third.all() == other.all()
    assert third.add(other.all()) == 0
    third.put(another, RESULT, spec="here")
    store.put(RUN, replace(RESULT, metrics={"auroc": 1.0}), spec="here")
    store.put(another, RunResult(failure="it broke"), spec="here")
    assert store.add(third.all()) == 1  # the failure; a success stays
    assert {run.run.seed: run.result.metrics for run in store.all()} == {0: {"auroc": 1.0}, 1: RESULT.metrics}


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


@pytest.mark.parametrize("version", [0, 1])
def test_another_program_s_file_is_refused_and_left_as_it_is(tmp_path, version):
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (run_uuid TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(ValueError, match="has another program's tables: give another path"):
            Store(path, read_only=read_only)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_of_a_large_file_only_the_beginning_is_read(tmp_path):
    with (tmp_path / "video").open("wb") as file:
        file.truncate(2**26)
    tracemalloc.start()
    with pytest.raises(ValueError, match="not a result store"):
        Store(tmp_path / "video")
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_paths_where_no_store_can_be(tmp_path):
    with pytest.raises(
        ValueError, match="there is no folder .*none: create it, or give another path with --store"
    ):
        Store(tmp_path / "none" / "runs.sqlite")
    with pytest.raises(ValueError, match="is a folder: give a file with --store"):
        Store(tmp_path)
    with pytest.raises(ValueError, match="there is no result store .*: run an experiment first"):
        Store(tmp_path / "runs.sqlite", read_only=True)
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(ValueError, match="is empty: run an experiment first"):
        Store(tmp_path / "empty.sqlite", read_only=True)
    assert [path.name for path in tmp_path.iterdir()] == ["empty.sqlite"]


def test_a_damaged_store_is_called_so(store):
    store.put(RUN, RESULT, spec="a")
    store.path.write_bytes(b"SQLite format 3\0" + b"?" * 5000)
    for read_only in (False, True):
        with pytest.raises(ValueError, match="it is damaged"):
            Store(store.path, read_only=read_only)
    with pytest.raises(ValueError, match="it is damaged"):
        store.all()


def test_a_locked_store_can_be_read_and_says_why_it_cannot_be_written(store, monkeypatch):
    store.put(RUN, RESULT, spec="a")
    monkeypatch.setattr("openset.bench.store.WAIT", 0.05)
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ValueError, match="another process is writing to it"):
            store.put(RUN, RESULT, spec="a")
        with pytest.raises(ValueError, match="another process is writing to it"):
            Store(store.path)
        assert Store(store.path, read_only=True).all() == store.all() != []


def test_reading_changes_nothing(store):
    store.put(RUN, RESULT, spec="a")
    before = store.path.read_bytes()
    reading = Store(store.path, read_only=True)
    assert reading.all() == store.all()
    with pytest.raises(ValueError, match="it can only be read"):
        reading.put(RUN, RESULT, spec="b")
    assert store.path.read_bytes() == before and list(store.path.parent.iterdir()) == [store.path]


@contextmanager
def as_nobody():
    """Without root's power to write everywhere, if it was there."""
    if os.getuid() != 0:
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_a_store_that_cannot_be_written_can_be_read():
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        folder = Path(name)
        store = Store(folder / "runs.sqlite")
        store.put(RUN, RESULT, spec="a")
        store.path.chmod(0o444)
        folder.chmod(0o555)
        with as_nobody():
            assert [stored.result for stored in Store(store.path, read_only=True).all()] == [RESULT]
            with pytest.raises(ValueError, match="it can only be read"):
                Store(store.path)
        folder.chmod(0o755)
        assert list(folder.iterdir()) == [store.path]
