"""The review's log: SQLite, append only. An answer, a name, an undo: each is an event, none is ever changed.

Everything a review knows follows from its events (:mod:`openset.review.state`), so a killed server loses nothing
that a person saw saved, and two people or two tabs can write at once.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

NAME = "review.sqlite"
"""The log's file in a run's folder."""
KINDS = ("begin", "label", "undo", "rename", "settings")
_WAIT = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    batch TEXT NOT NULL,
    row INTEGER,
    id TEXT,
    label TEXT,
    is_new INTEGER,
    annotator TEXT NOT NULL,
    queue TEXT,
    stratum TEXT,
    probability REAL,
    time TEXT NOT NULL,
    detail TEXT
);
CREATE INDEX IF NOT EXISTS event_of_batch ON event (batch, number);
CREATE TRIGGER IF NOT EXISTS no_update BEFORE UPDATE ON event
    BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
CREATE TRIGGER IF NOT EXISTS no_delete BEFORE DELETE ON event
    BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
"""


@dataclass(frozen=True)
class Event:
    """One event. ``batch`` is the checksum of the target's data; ``row`` a row of it, ``id`` its own id.

    Of a label, ``is_new`` says new or known, None for a row that was skipped; ``queue`` is where it was asked,
    and ``probability`` that of this row to come next in its ``stratum``, None where it was not left to chance.
    """

    kind: str
    batch: str
    annotator: str
    row: int | None = None
    id: str | None = None
    label: str | None = None
    is_new: bool | None = None
    queue: str | None = None
    stratum: str | None = None
    probability: float | None = None
    detail: dict[str, Any] | None = None
    time: str = ""
    number: int = 0


_COLUMNS = tuple(field.name for field in fields(Event))


class Store:
    """A log that is open; from any thread, beside other processes."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=_WAIT, check_same_thread=False, isolation_level=None
            )
        except sqlite3.OperationalError as error:
            raise PermissionError(f"{self.path} cannot be opened: {error}") from None
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")  # what was answered survives a power cut
            self._connection.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise PermissionError(f"{self.path} cannot be written: {error}") from None
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(f"{self.path} is no log of a review: {error}. Move it away to begin anew.") from None

    def append(self, events: Sequence[Event]) -> list[Event]:
        """Write events, all or none, and return them with their numbers and the time."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        written: list[Event] = []
        with self._writing() as connection:
            for event in events:
                if event.kind not in KINDS:
                    raise ValueError(
                        f"an event of kind {event.kind!r} is unknown: the log has {', '.join(KINDS)}."
                    )
                values = {**asdict(event), "time": event.time or now}
                values["detail"] = None if event.detail is None else json.dumps(event.detail, ensure_ascii=False)
                columns = [name for name in _COLUMNS if name != "number"]
                command = f"INSERT INTO event ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
                number = connection.execute(command, [values[name] for name in columns]).lastrowid
                written.append(Event(**{**asdict(event), "time": values["time"], "number": int(number or 0)}))
        return written

    def events(self, batch: str, after: int = 0) -> list[Event]:
        """The events of a batch, in order, those after a number."""
        command = f"SELECT {', '.join(_COLUMNS)} FROM event WHERE batch = ? AND number > ? ORDER BY number"
        with self._lock:
            found = self._connection.execute(command, (batch, after)).fetchall()
        return [_event(values) for values in found]

    def batches(self) -> list[str]:
        """The batches that the log has events of."""
        with self._lock:
            found = self._connection.execute("SELECT DISTINCT batch FROM event").fetchall()
        return [batch for (batch,) in found]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


def _event(values: tuple[Any, ...]) -> Event:
    found = dict(zip(_COLUMNS, values, strict=True))
    found["is_new"] = None if found["is_new"] is None else bool(found["is_new"])
    found["detail"] = None if found["detail"] is None else json.loads(found["detail"])
    return Event(**found)
