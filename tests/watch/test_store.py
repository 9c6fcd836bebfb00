from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from openset.pipeline.batch_answer import CalledShare
from openset.watch.policy import KEPT_MODELS, WINDOW
from openset.watch.records import BatchRecord, ModelRecord
from openset.watch.store import FORMAT, WatchStore

SHARE = CalledShare(0.1, 0.05, 0.2, 0.95)


def batch(number, **more):
    values = {
        "number": number, "name": f"b{number}", "sha256": f"{number:064x}", "rows": 100, "called_novel": 10,
        "called_share": SHARE, "moved": "no", "moved_sentence": "", "model": 0, "counts": [], "groups": [],
    }  # fmt: skip
    return BatchRecord(**{**values, **more})


def model(number):
    return ModelRecord(number, number, ["t"], 10, [1.0, 0.5], 50, 0.01)


def test_batches_and_models_come_back_as_they_were(state):
    store = WatchStore(state, "run")
    store.add_batch(batch(1, cannot_tell="moved"), np.empty((0, 2)), {})
    store.add_batch(batch(2), np.ones((3, 2), np.float32), {4: np.zeros((2, 2), np.float32)})
    store.add_model(model(0), b"content")
    again = WatchStore(state, "run")
    assert again.batches() == [batch(1, cannot_tell="moved"), batch(2)] and again.models() == [model(0)]
    assert list(again.rows_to_fit()) == [2] and again.rows_to_fit()[2].shape == (3, 2)
    assert again.groups()[4].dtype == np.float32 and again.content_of(0) == b"content"


def test_only_what_is_needed_later_is_kept(state):
    store = WatchStore(state, "run")
    for number in range(1, 7):
        rows = np.empty((0, 1)) if number == 5 else np.full((1, 1), float(number))
        store.add_batch(batch(number), rows, {1: np.full((1, 1), float(number), np.float32)})
        store.add_model(model(number - 1), b"x")
    assert list(store.rows_to_fit()) == [3, 4, 6] and len(store.rows_to_fit()) == WINDOW
    with sqlite3.connect(state) as connection:
        kept = connection.execute("SELECT count(*) FROM model WHERE content IS NOT NULL").fetchone()
    assert kept == (KEPT_MODELS,) and len(store.models()) == 6
    assert store.groups()[1].item() == 6.0


def test_a_batch_is_stored_once_also_by_two_processes(state):
    one, other = WatchStore(state, "run"), WatchStore(state, "run")
    one.add_batch(batch(1), np.empty((0, 1)), {})
    with pytest.raises(ValueError, match="another process added a batch"):
        other.add_batch(batch(1, sha256="other"), np.empty((0, 1)), {})
    with pytest.raises(ValueError, match="another process added a batch"):
        other.add_batch(batch(2, sha256=batch(1).sha256), np.empty((0, 1)), {})
    assert len(one.batches()) == 1


def test_the_state_of_another_run_is_refused(state):
    WatchStore(state, "run")
    with pytest.raises(ValueError, match="the state of another run, or of this one before it was fitted again"):
        WatchStore(state, "another")


def test_other_files_are_refused(state, tmp_path):
    state.write_text("no database at all, but long enough to be looked at as one")
    with pytest.raises(ValueError, match="is no state of a watch"):
        WatchStore(state, "run")
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(ValueError, match="another program's tables"):
        WatchStore(foreign, "run")
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(ValueError, match="written by a newer openset"):
        WatchStore(newer, "run")
    with pytest.raises(ValueError, match="give a file in a folder that exists"):
        WatchStore(tmp_path / "no" / "watch.sqlite", "run")


def test_a_full_disk_and_a_file_that_may_not_be_written(state, monkeypatch):
    store, connect = WatchStore(state, "run"), sqlite3.connect

    def limited(pragma):
        def opened(*given, **options):
            connection = connect(*given, **options)
            connection.execute(pragma)
            return connection

        return opened

    monkeypatch.setattr("openset.watch.store.sqlite3.connect", limited("PRAGMA max_page_count = 20"))
    with pytest.raises(OSError, match=r"watch.sqlite cannot be written \(database or disk is full\): make room"):
        store.add_model(model(0), b"x" * 10**6)
    monkeypatch.setattr("openset.watch.store.sqlite3.connect", limited("PRAGMA query_only = 1"))
    with pytest.raises(ValueError, match="readonly database.*: may it be read and written"):
        store.add_model(model(0), b"x")
    monkeypatch.undo()
    assert store.models() == [] and store.batches() == []


def test_while_another_process_writes_it_says_so(state, monkeypatch):
    monkeypatch.setattr("openset.watch.store._WAIT", 0.05)
    store = WatchStore(state, "run")
    with sqlite3.connect(state, isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ValueError, match="is another process writing to it"):
            store.add_batch(batch(1), np.empty((0, 1)), {})
        other.execute("ROLLBACK")
    store.add_batch(batch(1), np.empty((0, 1)), {})
