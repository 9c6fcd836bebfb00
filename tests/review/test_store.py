from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from openset.review.store import Event, Store


def label(row, **more):
    return Event("label", "batch", "ann", row=row, is_new=True, label="x", queue="estimate", **more)


def test_what_was_appended_is_read_in_order(tmp_path):
    store = Store(tmp_path / "review.sqlite")
    store.append([label(3, id="t3", stratum="list", probability=0.25, detail={"action": "a"})])
    store.append([Event("undo", "batch", "ben", detail={"action": "a"})])
    first, second = store.events("batch")
    assert (first.row, first.id, first.is_new, first.probability, first.detail) == (
        3,
        "t3",
        True,
        0.25,
        {"action": "a"},
    )
    assert (first.number, second.number, second.kind, second.is_new) == (1, 2, "undo", None)
    assert first.time and store.events("batch", after=1) == [second]
    assert store.events("another") == [] and store.batches() == ["batch"]


def test_events_are_written_all_or_none(tmp_path):
    store = Store(tmp_path / "review.sqlite")
    with pytest.raises(ValueError, match="kind 'forget'"):
        store.append([label(1), Event("forget", "batch", "ann")])
    assert store.events("batch") == []


def test_the_log_only_grows(tmp_path):
    store = Store(tmp_path / "review.sqlite")
    store.append([label(1)])
    for command in ("DELETE FROM event", "UPDATE event SET row = 2"):
        with pytest.raises(sqlite3.DatabaseError, match="only grows"):
            sqlite3.connect(store.path, isolation_level=None).execute(command)
    assert [event.row for event in store.events("batch")] == [1]


def test_another_file_is_no_log(tmp_path):
    (tmp_path / "review.sqlite").write_text("something else, and long enough to be no database" * 100)
    with pytest.raises(ValueError, match="is no log of a review"):
        Store(tmp_path / "review.sqlite")


def test_a_folder_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(PermissionError, match="cannot be opened"):
        Store(tmp_path / "absent" / "review.sqlite")


def test_two_writers_lose_nothing(tmp_path):
    stores = [Store(tmp_path / "review.sqlite") for _ in range(2)]

    def write(store, start):
        for row in range(start, start + 50):
            store.append([label(row)])

    threads = [threading.Thread(target=write, args=(s, 100 * i)) for i, s in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [event.row for event in stores[0].events("batch")]
    assert sorted(rows) == [*range(50), *range(100, 150)]


WRITER = """
import sys
from openset.review.store import Event, Store
store = Store(sys.argv[1])
for row in range(10**6):
    store.append([Event("label", "batch", "ann", row=row, is_new=True, queue="estimate")])
    print(row, flush=True)
"""


def test_a_writer_that_is_killed_loses_nothing_that_was_saved(tmp_path):
    path = tmp_path / "review.sqlite"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        said = [int(writer.stdout.readline()) for _ in range(40)]
        writer.send_signal(signal.SIGKILL)
    rows = [event.row for event in Store(path).events("batch")]
    assert rows[: len(said)] == said
    assert rows == list(range(len(rows)))
