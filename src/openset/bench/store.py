"""The result store: one SQLite file, one transaction per run, so that a run is never half-written."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from openset._utils.files import note_written
from openset.bench.provenance import code_version, environment
from openset.bench.runs import Run, RunResult

FORMAT = 1
WAIT = 60.0
"""Seconds to wait while another process writes."""
_MAGIC = b"SQLite format 3"
_SCHEMA = {
    "runs": """
CREATE TABLE runs (
    key TEXT PRIMARY KEY,
    spec TEXT NOT NULL,
    code_version TEXT NOT NULL,
    dataset TEXT NOT NULL,
    encoder TEXT,
    options TEXT NOT NULL,
    setting TEXT NOT NULL,
    novel TEXT NOT NULL,
    seed INTEGER NOT NULL,
    method TEXT NOT NULL,
    parameters TEXT NOT NULL,
    metrics TEXT NOT NULL,
    seconds TEXT NOT NULL,
    manifest_checksum TEXT NOT NULL,
    stand_in_for TEXT NOT NULL,
    warnings TEXT NOT NULL,
    failure TEXT NOT NULL,
    environment TEXT NOT NULL,
    finished_at TEXT NOT NULL
)""",
    "heads": """
CREATE TABLE heads (
    key TEXT NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (key, position)
)""",
}
_TROUBLE = {
    sqlite3.SQLITE_BUSY: "another process is writing to it: try again when that process has ended",
    sqlite3.SQLITE_CORRUPT: "it is damaged: restore a copy of it, or give another path with --store",
    sqlite3.SQLITE_NOTADB: "it is damaged: restore a copy of it, or give another path with --store",
    sqlite3.SQLITE_READONLY: "it can only be read: give another path with --store",
}
"""What to tell the user for SQLite's errors."""


@dataclass(frozen=True)
class StoredRun:
    """A run and its result as they are in the store."""

    key: str
    spec: str
    code_version: str
    run: Run
    result: RunResult
    finished_at: str


class Store:
    """Results of all runs in one SQLite file (WAL); several processes may read while one writes.

    With ``read_only`` the file must exist, is never changed, and need not be writable.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "runs.sqlite")
    ...     print(store.get(["nothing"]))
    {}
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self._read_only = path, read_only
        if read_only and not path.exists():
            raise ValueError(f"there is no result store {str(path)!r}: run an experiment first.")
        check_output_path(path, "--store")
        _check_magic(path)
        with self._connection() as connection:
            # locked: no other process creates the tables, and no run is computed for a locked file
            connection.execute("BEGIN" if read_only else "BEGIN IMMEDIATE")
            is_new = self._is_new(connection)
            if is_new and read_only:
                raise ValueError(f"{path} is empty: run an experiment first.")
            if is_new:
                for statement in (*_SCHEMA.values(), f"PRAGMA user_version = {FORMAT}"):
                    connection.execute(statement)
            connection.commit()
            if not read_only:
                with suppress(sqlite3.OperationalError):  # in use: the next process to open it sets this
                    connection.execute("PRAGMA journal_mode = WAL")

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is empty; raise if it has other tables than ours."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if version == 0 and not tables:
            return True
        if version > FORMAT:
            raise ValueError(f"{self.path} was written by a newer openset (store format {version}).")
        if version != FORMAT or not tables >= _SCHEMA.keys():
            raise ValueError(f"{self.path} has another program's tables: give another path with --store.")
        return False

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._address(), timeout=WAIT, uri=True)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute(f"PRAGMA query_only = {self._read_only}")
                with connection:  # commit, or roll back
                    yield connection
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without the extended code
            trouble = _TROUBLE.get(code, "give another path with --store")
            raise ValueError(f"the result store {self.path} cannot be used ({error}): {trouble}.") from error

    def _address(self) -> str:
        """The file as a URI. Even reading writes files beside it (WAL), unless it is declared immutable."""
        address = self.path.absolute().as_uri()
        if not self._read_only:
            return address
        writable = os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)
        in_use = self.path.with_name(f"{self.path.name}-wal").exists()
        return f"{address}?mode=rw" if writable or in_use else f"{address}?immutable=1"

    def put(self, run: Run, result: RunResult, *, spec: str) -> None:
        """Store a result. It replaces an earlier one of the same key, but a failure never replaces a success."""
        finished_at = datetime.now(UTC).isoformat(timespec="seconds")
        result = replace(result, environment=result.environment or environment())  # a dead worker sent none
        with self._writing() as connection:
            _insert(connection, StoredRun(run.key, spec, code_version(), run, result, finished_at))
        note_written(self.path)

    def add(self, runs: Iterable[StoredRun]) -> int:
        """Store runs of another store that are not here yet, or are failures here; return how many were added."""
        added = 0
        with self._writing() as connection:
            for stored in runs:
                found = connection.execute("SELECT failure FROM runs WHERE key = ?", (stored.key,)).fetchone()
                if found is None or (found["failure"] and not stored.result.failure):
                    _insert(connection, stored)
                    added += 1
        note_written(self.path)
        return added

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A connection that no other process writes through between reading and writing."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def get(self, keys: Iterable[str]) -> dict[str, StoredRun]:
        """The stored runs among the given keys."""
        among = "WHERE key IN (SELECT value FROM json_each(?))"  # any number of keys in one parameter
        return {run.key: run for run in self._select(among, json.dumps(list(keys)))}

    def all(self) -> list[StoredRun]:
        """Every stored run, oldest first."""
        return self._select("")

    def _select(self, condition: str, *values: str) -> list[StoredRun]:
        with self._connection() as connection:
            heads: dict[str, list[dict[str, Any]]] = {}
            records = f"SELECT key, record FROM heads {condition} ORDER BY key, position"
            for row in connection.execute(records, values):
                heads.setdefault(row["key"], []).append(json.loads(row["record"]))
            found = f"SELECT * FROM runs {condition} ORDER BY finished_at, rowid"
            rows = connection.execute(found, values).fetchall()
        return [_stored(row, heads.get(row["key"], [])) for row in rows]


def check_output_path(path: Path, option: str) -> None:
    """Raise unless a file can be written there; ``option`` is the option that gave the path."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give a file with {option}.")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent}: create it, or give another path with {option}.")


def _check_magic(path: Path) -> None:
    """Raise if the file is not empty and not an SQLite file."""
    if path.exists():
        with path.open("rb") as file:
            begin = file.read(len(_MAGIC))
        if begin and begin != _MAGIC:
            raise ValueError(f"{path} is not a result store: give another path with --store.")


def _insert(connection: sqlite3.Connection, stored: StoredRun) -> None:
    """Write a run and its heads; a failure never replaces a success."""
    result = stored.result
    succeeded = "SELECT 1 FROM runs WHERE key = ? AND failure = ''"
    if result.failure and connection.execute(succeeded, (stored.key,)).fetchone():
        return
    row = {
        "key": stored.key,
        "spec": stored.spec,
        "code_version": stored.code_version,
        **asdict(stored.run),
        **{name: json.dumps(getattr(result, name)) for name in ("metrics", "seconds", "warnings")},
        "manifest_checksum": result.manifest_checksum,
        "stand_in_for": result.stand_in_for,
        "failure": result.failure,
        "environment": json.dumps(result.environment),
        "finished_at": stored.finished_at,
    }
    columns, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    connection.execute("DELETE FROM runs WHERE key = ?", (stored.key,))
    connection.execute(f"INSERT INTO runs ({columns}) VALUES ({marks})", row)
    connection.executemany(
        "INSERT INTO heads VALUES (?, ?, ?)",
        [(stored.key, position, json.dumps(record)) for position, record in enumerate(result.heads)],
    )


def _stored(row: sqlite3.Row, heads: list[dict[str, Any]]) -> StoredRun:
    return StoredRun(
        key=row["key"],
        spec=row["spec"],
        code_version=row["code_version"],
        run=Run(**{name: row[name] for name in Run.__dataclass_fields__}),
        result=RunResult(
            **{name: json.loads(row[name]) for name in ("metrics", "seconds", "warnings")},
            heads=heads,
            manifest_checksum=row["manifest_checksum"],
            stand_in_for=row["stand_in_for"],
            failure=row["failure"],
            environment=json.loads(row["environment"]),
        ),
        finished_at=row["finished_at"],
    )
