"""One table written in every format, and a check of what happens to bad rows."""

from __future__ import annotations

import csv
import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from openset.data import iter_batches, read_table


def write_table(path, table):
    """Columns (name → list, or → matrix) to a file by its extension; a matrix becomes one column of vectors."""
    suffix = path.name.split(".", 1)[1]
    matrices = {name: column for name, column in table.items() if isinstance(column, np.ndarray)}
    if suffix == "npy":
        np.save(path, matrices["x"])
    elif suffix in ("stored.npz", "packed.npz"):
        (np.savez if suffix == "stored.npz" else np.savez_compressed)(path, **table)
    elif suffix in ("csv", "csv.gz", "tsv"):
        with gzip.open(path, "wt", newline="") if suffix == "csv.gz" else path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if suffix == "tsv" else ",", quoting=csv.QUOTE_NONNUMERIC)
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
    elif suffix in ("jsonl", "jsonl.gz"):
        with gzip.open(path, "wt") if suffix == "jsonl.gz" else path.open("w") as file:
            for row in zip(
                *(np.asarray(c).tolist() if n in matrices else c for n, c in table.items()), strict=True
            ):
                file.write(json.dumps(dict(zip(table, row, strict=True))) + "\n")
    else:
        arrow = as_arrow(table)
        if suffix == "parquet":
            pq.write_table(arrow, path, row_group_size=7)
        elif suffix == "arrow":
            with pa.ipc.new_stream(path, arrow.schema) as writer:
                writer.write_table(arrow, max_chunksize=5)
        else:
            feather.write_feather(arrow, path, chunksize=5)
    return path


def as_arrow(table, fixed=True):
    """Matrices as lists, of a fixed size or not."""
    return pa.table({name: as_lists(c, fixed) if isinstance(c, np.ndarray) else c for name, c in table.items()})


def as_lists(matrix, fixed=True):
    flat = pa.array(matrix.ravel())
    if fixed:
        return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])
    return pa.ListArray.from_arrays(np.arange(0, matrix.size + 1, matrix.shape[1], dtype=np.int32), flat)


def frames(table):
    """The same as data frames of each library."""
    arrow = as_arrow(table)
    plain = pd.DataFrame({name: list(column) for name, column in table.items()})
    return [arrow, pl.from_arrow(arrow), arrow.to_pandas(), plain]


def jsonl(path, rows):
    """Rows, or whole lines of text, to a file of JSON lines."""
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


def check_bad_rows(source, message, kept, skipped, **roles):
    """Refused with this message; with skip_bad these rows are kept and those skipped, whole and in batches."""
    with pytest.raises(ValueError, match=message):
        read_table(source, **roles)
    for batches in (
        [read_table(source, skip_bad=True, **roles)],
        list(iter_batches(source, skip_bad=True, batch_rows=2, **roles)),
    ):
        assert [row for batch in batches for row in batch.rows.tolist()] == kept
        assert [bad.row for batch in batches for bad in batch.skipped] == skipped
        assert sum(batch.n_skipped for batch in batches) == len(skipped)
        assert all(batch.X is None or len(batch.X) == len(batch) for batch in batches)
