"""A table as people have it: many kinds of columns, gaps, and the same rows in every format and frame library."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

SUFFIXES = ("csv", "csv.gz", "csv.zst", "tsv", "jsonl", "parquet", "arrow")
FRAMES = ("pandas", "polars", "pyarrow")
START = datetime(2024, 1, 1)


def messy_columns(n, seed, *, new=0, gaps=0.2):
    """Columns of 15 kinds as lists of values, None where missing; the last ``new`` rows are of a new class."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 2, n)
    is_new = np.arange(n) >= n - new
    shift = np.where(is_new, 6.0, 3.0 * kind)
    towns = np.array(["Ulm", "Bonn", "Kiel", "Köln, Süd"])
    columns = {
        "ticket": [f"T-{seed}-{i:05d}" for i in range(n)],
        "size": (random.normal(size=n) + shift).round(3).tolist(),
        "count": (random.poisson(4, n) + 3 * is_new).tolist(),
        "income": np.exp(random.normal(7, 2, n)).round(2).tolist(),
        "rate": random.random(n).round(4).tolist(),
        "paid": (random.random(n) < 0.3 + 0.4 * kind).tolist(),
        "town": np.where(is_new, "Rome", towns[random.integers(0, 4, n)]).tolist(),
        "shop": [f"shop {i}" for i in random.integers(0, 150, n)],
        "when": [START + timedelta(minutes=int(m)) for m in random.integers(0, 500_000, n)],
        "day": [(START + timedelta(days=int(d))).date() for d in random.integers(0, 400, n)],
        "wait": [timedelta(seconds=int(s)) for s in random.integers(1, 90_000, n)],
        "code": random.integers(100, 999, n).astype(str).tolist(),
        "unit": ["kg"] * n,
        "remark": [f"the customer called {i} times about order {i}" for i in range(n)],
        "empty": [None] * n,
    }
    for name in columns:
        if name not in ("ticket", "unit", "empty"):
            columns[name] = [None if random.random() < gaps else value for value in columns[name]]
    return columns, np.array(["cat", "dog"])[kind].tolist(), is_new


def as_frame(columns, library):
    table = pa.table({name: _array(values) for name, values in columns.items()})
    return {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "pyarrow": lambda: table}[
        library
    ]()


def write_messy(path, columns):
    """Write the columns in the format of the extension; what has no types is written as text."""
    table = pa.table({name: _array(values) for name, values in columns.items()})
    name = path.name
    if name.endswith("parquet"):
        pq.write_table(table, path)
    elif name.endswith("arrow"):
        with pa.ipc.new_file(str(path), table.schema) as file:
            file.write_table(table)
    elif name.endswith("jsonl"):
        rows = zip(*columns.values(), strict=True)
        path.write_text(
            "".join(json.dumps(dict(zip(columns, map(_plain, row), strict=True))) + "\n" for row in rows)
        )
    else:
        texts = pa.table(
            {name: pa.array([_text(v) for v in values], pa.string()) for name, values in columns.items()}
        )
        compression = {"gz": "gzip", "zst": "zstd"}.get(name.rsplit(".", 1)[-1])
        with pa.output_stream(str(path), compression=compression) as file:
            csv.write_csv(texts, file, csv.WriteOptions(delimiter="\t" if ".tsv" in name else ","))
    return path


def _array(values):
    return pa.array(values, pa.string()) if all(value is None for value in values) else pa.array(values)


def _plain(value):
    return _text(value) if isinstance(value, (datetime, timedelta)) or hasattr(value, "isoformat") else value


def _text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return str(pd.Timedelta(value))
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)
