"""One table written in every format."""

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
