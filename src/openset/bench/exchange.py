"""Stored runs as a table: written for other tools, and read into another store to continue a sweep there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from openset._utils.extras import require
from openset._utils.files import replacing
from openset.bench.runs import Run, RunResult
from openset.bench.store import StoredRun

_SECONDS = "seconds_"
_RUN = tuple(Run.__dataclass_fields__)
_STORED = ("key", "spec", "code_version", "finished_at")
_RESULT = ("manifest_checksum", "stand_in_for", "warnings", "failure", "environment")
_COLUMNS = {*_STORED, *_RUN, *_RESULT}
"""The columns of every table of runs."""
_HEADS = "heads"
"""Heads that have metrics of test rows, which is what a page prints. Files of before this column have none."""


def run_rows(stored: Iterable[StoredRun]) -> list[dict[str, Any]]:
    """One row per run, for export; every metric and time is a column."""
    return [
        {
            "key": item.key,
            "spec": item.spec,
            "code_version": item.code_version,
            **asdict(item.run),
            **item.result.metrics,
            **{f"{_SECONDS}{name}": value for name, value in item.result.seconds.items()},
            "manifest_checksum": item.result.manifest_checksum,
            "stand_in_for": item.result.stand_in_for,
            "warnings": json.dumps(item.result.warnings),
            "failure": item.result.failure,
            "environment": json.dumps(item.result.environment),
            _HEADS: json.dumps(item.result.tested_heads),
            "finished_at": item.finished_at,
        }
        for item in stored
    ]


def head_rows(stored: Iterable[StoredRun]) -> list[dict[str, Any]]:
    """One row per head and evaluation point, with the key of its run."""
    return [{"key": item.key, **record} for item in stored for record in item.result.heads]


def export(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows to a ``.csv`` or ``.parquet`` file, whole or not at all."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".csv":
        import csv

        with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        pa = require("pyarrow", "exporting to Parquet", "data")
        from pyarrow import parquet

        table = pa.table({name: [row.get(name) for row in rows] for name in columns})
        with replacing(path) as temporary:
            parquet.write_table(table, temporary, compression="zstd")
    else:
        raise ValueError(f"cannot export to {str(path)!r}: the name must end in .csv or .parquet.")


def read_runs(path: Path) -> list[StoredRun]:
    """The runs of a file that ``export`` wrote, with those of their heads that have metrics.

    A number that a run does not have is an empty cell, so a metric that is NaN is read as one that is missing.
    """
    rows = _rows_of(path)
    missing = sorted(_COLUMNS - set(rows[0])) if rows else []
    if missing:
        raise ValueError(
            f"{path} is no table of runs: it lacks {', '.join(missing)}. Write one with `openset bench export`."
        )
    return [_stored(row) for row in rows]


def _rows_of(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}: write one with `openset bench export`.")
    if path.suffix == ".csv":
        import csv

        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".parquet":
        pa = require("pyarrow", "reading Parquet", "data")
        from pyarrow import parquet

        try:
            rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        except pa.ArrowInvalid as error:
            raise ValueError(f"{path} is not a Parquet file ({error}).") from error
        return rows
    raise ValueError(f"cannot import {str(path)!r}: the name must end in .csv or .parquet.")


def _stored(row: dict[str, Any]) -> StoredRun:
    others = row.keys() - _COLUMNS - {_HEADS}
    numbers = {name: float(row[name]) for name in others if row[name] not in (None, "")}
    run = {**{name: row[name] for name in _RUN}, "encoder": row["encoder"] or None, "seed": int(row["seed"])}
    return StoredRun(
        **{name: row[name] for name in _STORED},
        run=Run(**run),
        result=RunResult(
            metrics={name: value for name, value in numbers.items() if not name.startswith(_SECONDS)},
            seconds={
                name.removeprefix(_SECONDS): value for name, value in numbers.items() if name.startswith(_SECONDS)
            },
            manifest_checksum=row["manifest_checksum"] or "",
            stand_in_for=row["stand_in_for"] or "",
            failure=row["failure"] or "",
            warnings=json.loads(row["warnings"]),
            environment=json.loads(row["environment"]),
            heads=json.loads(row.get(_HEADS) or "[]"),
        ),
    )
