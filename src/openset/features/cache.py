"""The feature cache, an SQLite file: shared between processes, checked when read, limited in size."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openset._utils.files import expanded
from openset.features.base import Features

GIBIBYTE = 2**30
_FILE = "features-v1.sqlite"
_KEYS_PER_QUERY = 500
_EVICTED_AT_ONCE = 64

# Two tables, so that marking a row as used does not rewrite its features.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, used INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS entries_by_use ON entries (used, id);
CREATE TABLE IF NOT EXISTS features (id INTEGER PRIMARY KEY, checksum BLOB NOT NULL, data BLOB NOT NULL);
"""


def default_directory() -> Path:
    """``$OPENSET_CACHE``, or ``openset`` in the platform's folder for caches."""
    if own := os.environ.get("OPENSET_CACHE"):
        return expanded(own)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "openset"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "openset" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "openset"


@dataclass(frozen=True)
class FeatureCache:
    """Where features are stored, and how many bytes they may take before the least recently used are removed.

    >>> FeatureCache("features", limit=2**30).file.name
    'features-v1.sqlite'
    """

    directory: str | Path | None = None
    """``None``: ``$OPENSET_CACHE``, or the platform's folder for caches."""
    limit: int = 5 * GIBIBYTE

    def __post_init__(self) -> None:
        if self.limit < 2**20:
            raise ValueError(f"the cache's limit must be at least 1 MiB (2**20 bytes), got {self.limit}")

    @property
    def file(self) -> Path:
        """The SQLite file."""
        return (default_directory() if self.directory is None else expanded(self.directory)) / _FILE

    @contextmanager
    def open(self) -> Iterator[OpenCache]:
        """Open the cache for reading and writing."""
        cache = OpenCache(self.file, self.limit)
        try:
            yield cache
        finally:
            cache.close()

    def clear(self) -> None:
        """Delete every entry. No process may use the cache meanwhile."""
        _remove(self.file)


class OpenCache:
    """A connection to the cache. All reads and writes of one connection count as one use."""

    def __init__(self, file: Path, limit: int) -> None:
        self._file, self._limit = file, limit
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connect()
        except (OSError, sqlite3.OperationalError) as error:
            raise ValueError(
                f"cannot open the feature cache {file} ({error}); pass another directory or set OPENSET_CACHE"
            ) from error
        except sqlite3.DatabaseError:
            self._start_new()

    def get(self, keys: Collection[bytes]) -> dict[bytes, Features]:
        """The features stored under these keys. Entries with a wrong checksum are deleted, not returned."""
        try:
            found = self._read(keys)
            if found:
                with self._transaction():
                    mark = "UPDATE entries SET used = ? WHERE key = ? AND used < ?"
                    self._connection.executemany(mark, [(self._use, key, self._use) for key in found])
            return found
        except sqlite3.DatabaseError as error:
            self._recover(error)
            return {}

    def put(self, features: Mapping[bytes, Features]) -> dict[bytes, Features]:
        """Store features, and return what is stored: the numbers of another process if it was first.

        So all processes that share a cache get the same bits, even if their batches differed.
        """
        try:
            return self._put(features)
        except sqlite3.DatabaseError as error:
            self._recover(error)
            return self._put(features)

    def size(self) -> int:
        """Bytes in use by entries and their index."""
        pages, free, page_size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * page_size)

    def close(self) -> None:
        """Close the connection. The last one to close writes the journal into the database."""
        self._connection.close()

    def _connect(self) -> None:
        self._connection = sqlite3.connect(self._file, timeout=60, isolation_level=None)
        self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        _switch_to_wal(self._connection)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            for statement in _SCHEMA.split(";"):
                self._connection.execute(statement)
        newest = self._connection.execute("SELECT max(used) FROM entries").fetchone()[0]
        self._use = (newest or 0) + 1

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All statements or none are stored, even if the process is killed. Waits for other writers."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _read(self, keys: Collection[bytes]) -> dict[bytes, Features]:
        found, damaged = {}, []
        ordered = list(keys)
        for start in range(0, len(ordered), _KEYS_PER_QUERY):
            some = ordered[start : start + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(some))
            query = "SELECT id, key, checksum, data FROM entries LEFT JOIN features USING (id) WHERE key IN"
            rows = self._connection.execute(f"{query} ({marks})", some)
            for id_, key, checksum, data in rows:
                if isinstance(data, bytes) and checksum == _checksum(key, data):
                    found[key] = np.frombuffer(data, dtype="<f4").astype(np.float32, copy=False)
                else:
                    damaged.append((id_,))
        self._delete(damaged)
        return found

    def _delete(self, ids: list[tuple[int]]) -> None:
        for table in ("features", "entries"):
            self._connection.executemany(f"DELETE FROM {table} WHERE id = ?", ids)

    def _put(self, features: Mapping[bytes, Features]) -> dict[bytes, Features]:
        with self._transaction():
            kept = self._read(features.keys())
            for key, vector in features.items():
                if key in kept:
                    continue
                data = vector.astype("<f4").tobytes()
                entry = self._connection.execute(
                    "INSERT INTO entries (key, used) VALUES (?, ?)", (key, self._use)
                )
                self._connection.execute(
                    "INSERT OR REPLACE INTO features VALUES (?, ?, ?)",
                    (entry.lastrowid, _checksum(key, data), data),
                )
        self._evict()
        return {**features, **kept}

    def _evict(self) -> None:
        """Above the limit, delete the least recently used entries until a tenth of the limit is free."""
        if self.size() <= self._limit:
            return
        oldest = "SELECT id FROM entries ORDER BY used, id LIMIT ?"
        with self._transaction():
            while self.size() > 0.9 * self._limit:
                ids = self._connection.execute(oldest, (_EVICTED_AT_ONCE,)).fetchall()
                if not ids:
                    break
                self._delete(ids)
        self._connection.executescript("PRAGMA incremental_vacuum")  # execute() would free one page only

    def _recover(self, error: sqlite3.DatabaseError) -> None:
        """If the file is damaged, start a new one. Raise other errors: a full disk, a lock held for a minute."""
        if isinstance(error, sqlite3.OperationalError):
            where = f"the feature cache {self._file}"
            raise OSError(f"{where} cannot be used ({error}): make room, or set OPENSET_CACHE") from error
        self._start_new()

    def _start_new(self) -> None:
        warnings.warn(f"the feature cache {self._file} is damaged: a new one is started", stacklevel=2)
        self._connection.close()
        _remove(self._file)
        self._connect()


class NoCache:
    """In place of a cache: stores nothing."""

    def get(self, keys: Collection[bytes]) -> dict[bytes, Features]:
        """Return nothing."""
        return {}

    def put(self, features: Mapping[bytes, Features]) -> dict[bytes, Features]:
        """Return the features as given."""
        return dict(features)


def _checksum(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(key + data, digest_size=16).digest()


def _remove(file: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Write-ahead logging: readers never wait for writers. SQLite does not wait for this lock, so we do."""
    for _ in range(600):
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            time.sleep(0.05)
    raise sqlite3.OperationalError("the database stays locked")
