"""The state of a watch: one SQLite file. A batch is in it whole, with what was found, or not at all."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.typed import read_as
from openset.watch.policy import KEPT_MODELS, WINDOW
from openset.watch.records import BatchRecord, ModelRecord

NAME = "watch.sqlite"
"""The file in a run's folder."""
FORMAT = 1
_WAIT = 30.0
_SCHEMA = """
CREATE TABLE watch (run TEXT NOT NULL);
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, record TEXT NOT NULL, rows BLOB, groups BLOB NOT NULL
);
CREATE TABLE model (number INTEGER PRIMARY KEY, after INTEGER NOT NULL UNIQUE, record TEXT NOT NULL, content
BLOB);
"""


class WatchStore:
    """A state that is open. ``run`` is the digest of the run that it belongs to."""

    def __init__(self, path: Path, run: str) -> None:
        self.path = path
        if path.is_dir() or not path.parent.is_dir():
            raise ValueError(f"{path} cannot be a state: give a file in a folder that exists.")
        with self._writing() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version > FORMAT:
                raise ValueError(
                    f"{path} was written by a newer openset (state format {version}): upgrade openset."
                )
            if version == 0 and not tables:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
                connection.execute("INSERT INTO watch VALUES (?)", (run,))
            elif version == 0:
                raise ValueError(f"{path} has another program's tables: give another file for the state.")
            (owner,) = connection.execute("SELECT run FROM watch").fetchone()
        if owner != run:
            raise ValueError(
                f"{path} is the state of another run, or of this one before it was fitted again: move it away to "
                "begin anew, or give another file for the state."
            )

    # --- batches

    def batches(self) -> list[BatchRecord]:
        """All batches, in order."""
        found = self._read("SELECT record FROM batch ORDER BY number")
        return [read_as(BatchRecord, json.loads(record), str(self.path)) for (record,) in found]

    def add_batch(self, record: BatchRecord, rows: NDArray[Any], groups: dict[int, NDArray[np.float32]]) -> None:
        """Store a batch: what was found, a sample of its features, and rows of its groups by their numbers.

        Samples that are too old to fit on are dropped.
        """
        packed = _packed({"rows": rows}) if len(rows) else None
        of_groups = _packed({str(number): points for number, points in groups.items()})
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO batch VALUES (?, ?, ?, ?, ?)",
                (record.number, record.sha256, json.dumps(asdict(record)), packed, of_groups),
            )
            kept = "SELECT number FROM batch WHERE rows IS NOT NULL ORDER BY number DESC LIMIT ?"
            connection.execute(f"UPDATE batch SET rows = NULL WHERE number NOT IN ({kept})", (WINDOW,))

    def rows_to_fit(self) -> dict[int, NDArray[Any]]:
        """The samples of the last batches to fit on, by the batches' numbers."""
        found = self._read("SELECT number, rows FROM batch WHERE rows IS NOT NULL ORDER BY number")
        return {number: _unpacked(content)["rows"] for number, content in found}

    def groups(self) -> dict[int, NDArray[np.float32]]:
        """Rows of every group by its number, those of the last batch that had it."""
        latest: dict[int, NDArray[np.float32]] = {}
        for (content,) in self._read("SELECT groups FROM batch ORDER BY number"):
            latest |= {int(number): points for number, points in _unpacked(content).items()}
        return latest

    # --- models

    def models(self) -> list[ModelRecord]:
        """All models, in order."""
        found = self._read("SELECT record FROM model ORDER BY number")
        return [read_as(ModelRecord, json.loads(record), str(self.path)) for (record,) in found]

    def add_model(self, record: ModelRecord, content: bytes) -> None:
        """Store a model; of older ones than those in use only the record stays."""
        with self._writing() as connection:
            values = (record.number, record.after, json.dumps(asdict(record)), content)
            connection.execute("INSERT INTO model VALUES (?, ?, ?, ?)", values)
            old = (record.number - KEPT_MODELS,)
            connection.execute("UPDATE model SET content = NULL WHERE number <= ?", old)

    def content_of(self, number: int) -> bytes:
        """A model that is in use, as :func:`~openset.watch.fits.pack_model` packed it."""
        ((content,),) = self._read("SELECT content FROM model WHERE number = ?", number)
        return bytes(content)

    # --- inside

    def _read(self, command: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._connection() as connection:
            return connection.execute(command, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:  # after a full disk SQLite has rolled back by itself
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)) as connection:
                yield connection
        except sqlite3.IntegrityError:
            raise ValueError(
                f"another process added a batch to {self.path} meanwhile: run the command again."
            ) from None
        except sqlite3.OperationalError as error:
            if "disk" in str(error):
                raise OSError(f"{self.path} cannot be written ({error}): make room and run again.") from None
            is_busy = "locked" in str(error)
            advice = "is another process writing to it?" if is_busy else "may it be read and written?"
            raise ValueError(f"{self.path} cannot be used ({error}): {advice}") from None
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"{self.path} is no state of a watch ({error}): move it away to begin anew."
            ) from None


def _packed(arrays: dict[str, NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _unpacked(content: bytes) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)
