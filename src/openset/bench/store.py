"""The result store: one SQLite file, one transaction a run, so that nothing is ever half-written."""

from __future__ import annotations

import functools
import json
import platform
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from openset.bench.runs import Run, RunResult, code_version

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
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
);
CREATE TABLE IF NOT EXISTS heads (
    key TEXT NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (key, position)
);
PRAGMA user_version = 1;
"""


@dataclass(frozen=True)
class StoredRun:
    """A run as it lies in the store."""

    key: str
    spec: str
    code_version: str
    run: Run
    result: RunResult
    environment: dict[str, str]
    finished_at: str


@functools.cache
def _environment() -> dict[str, str]:
    """What else the numbers may depend on: interpreter, libraries, machine."""
    libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")}
    return {"python": platform.python_version(), "machine": platform.machine(), **libraries}


class Store:
    """Results of all runs in one SQLite file (WAL); several processes may read while one writes.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "runs.sqlite")
    ...     print(store.get(["nothing"]))
    {}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and path.stat().st_size and not path.read_bytes()[:15] == b"SQLite format 3":
            raise ValueError(f"{path} is not a result store: give another path with --store.")
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, 1):
                raise ValueError(f"{path} was written by a newer openset (store format {version}).")
            connection.executescript(_SCHEMA)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=60)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            with connection:  # commit, or roll back
                yield connection

    def put(self, run: Run, result: RunResult, *, spec: str) -> None:
        """Keep a result; an earlier one of the same key is replaced as a whole."""
        key = run.key(code_version())
        row = {
            "key": key,
            "spec": spec,
            "code_version": code_version(),
            **asdict(run),
            **{name: json.dumps(getattr(result, name)) for name in ("metrics", "seconds", "warnings")},
            "manifest_checksum": result.manifest_checksum,
            "stand_in_for": result.stand_in_for,
            "failure": result.failure,
            "environment": json.dumps(_environment()),
            "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        columns, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
        with self._connection() as connection:
            connection.execute("DELETE FROM runs WHERE key = ?", (key,))
            connection.execute(f"INSERT INTO runs ({columns}) VALUES ({marks})", row)
            connection.executemany(
                "INSERT INTO heads VALUES (?, ?, ?)",
                [(key, position, json.dumps(record)) for position, record in enumerate(result.heads)],
            )

    def get(self, keys: Iterable[str]) -> dict[str, StoredRun]:
        """The stored runs among the given keys."""
        wanted = set(keys)
        return {run.key: run for run in self.all() if run.key in wanted}

    def all(self) -> list[StoredRun]:
        """Every stored run, oldest first."""
        with self._connection() as connection:
            heads: dict[str, list[dict[str, Any]]] = {}
            for row in connection.execute("SELECT key, record FROM heads ORDER BY key, position"):
                heads.setdefault(row["key"], []).append(json.loads(row["record"]))
            rows = connection.execute("SELECT * FROM runs ORDER BY finished_at, key").fetchall()
        return [_stored(row, heads.get(row["key"], [])) for row in rows]


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
        ),
        environment=json.loads(row["environment"]),
        finished_at=row["finished_at"],
    )


def run_rows(stored: Iterable[StoredRun]) -> list[dict[str, Any]]:
    """One flat row a run, for export: metrics and timings as columns of their own."""
    return [
        {
            "key": item.key,
            "spec": item.spec,
            "code_version": item.code_version,
            **asdict(item.run),
            **item.result.metrics,
            **{f"seconds_{name}": value for name, value in item.result.seconds.items()},
            "manifest_checksum": item.result.manifest_checksum,
            "stand_in_for": item.result.stand_in_for,
            "warnings": json.dumps(item.result.warnings),
            "failure": item.result.failure,
            "environment": json.dumps(item.environment),
            "finished_at": item.finished_at,
        }
        for item in stored
    ]


def head_rows(stored: Iterable[StoredRun]) -> list[dict[str, Any]]:
    """One flat row a head and evaluation point, with the key of its run."""
    return [{"key": item.key, **record} for item in stored for record in item.result.heads]


def export(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows to a ``.csv`` or ``.parquet`` file."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".csv":
        import csv

        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            from openset.errors import MissingExtraError

            raise MissingExtraError("exporting to Parquet", "data") from None
        parquet.write_table(pa.table({name: [row.get(name) for row in rows] for name in columns}), path)
    else:
        raise ValueError(f"cannot export to {str(path)!r}: expected a name that ends in .csv or .parquet.")
