"""Reading float16 embeddings from Parquet in batches, compared with pyarrow alone on the same file.

Run as ``python benchmarks/read_parquet.py [rows]``. The ratio of processor times, measured in one run, is the
cost of the checks and of the conversion to arrays.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from openset.data import iter_batches

BATCH = 16384


def write(path, rows):
    flat = np.random.default_rng(0).integers(0, 2**14, rows * 384, dtype=np.uint16).view(np.float16)
    table = pa.table({"id": np.arange(rows), "e": pa.FixedSizeListArray.from_arrays(pa.array(flat), 384)})
    pq.write_table(table, path, row_group_size=rows, compression="none", use_dictionary=False)


def seconds(read):
    start = time.process_time()
    count = sum(map(len, read()))
    return time.process_time() - start, count


def floor(path):
    return pq.ParquetFile(path, buffer_size=2**20, pre_buffer=False).iter_batches(BATCH, columns=["id", "e"])


def main(rows=100_000):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        write(path, rows)
        floors, ours = [], []
        for _ in range(5):
            floors.append(seconds(lambda: floor(path))[0])
            taken, count = seconds(lambda: iter_batches(path, features="e", id="id", batch_rows=BATCH))
            assert count == rows
            ours.append(taken)
        size = path.stat().st_size / 1e6
    print(f"{rows} rows, {size:.0f} MB; pyarrow alone {min(floors):.2f} s, with checks and ids {min(ours):.2f} s")
    print(f"ratio of the fastest of five runs each: {min(ours) / min(floors):.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
