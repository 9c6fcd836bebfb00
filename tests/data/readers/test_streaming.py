"""Of all readers together: files larger than memory, where memory does not grow with the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from table_files import as_lists

CODE = """
import json, sys
from openset.data import iter_batches, read_table

def held():  # memory of this process alone; pages of mapped files are the system's to take back
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

small, large, roles = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
list(iter_batches(small, **roles))  # loads pyarrow
before, most, rows = held(), 0, 0
for batch in iter_batches(large, batch_rows=1024, **roles):
    rows += len(batch)
    most = max(most, held() - before)
del batch
whole = read_table(large, **roles)
print(json.dumps({"rows": rows, "most": most, "whole": held() - before}))
"""


def write(path, rows):
    if path.suffix in (".csv", ".jsonl"):
        line = "n" * 600
        with path.open("w") as file:
            file.write("t\n" if path.suffix == ".csv" else "")
            file.writelines(
                f"{i}{line}\n" if path.suffix == ".csv" else f'{{"t": "{i}{line}"}}\n' for i in range(rows)
            )
        return
    # small finite numbers, whatever the bits
    matrix = np.random.default_rng(0).integers(0, 2**14, (rows, 384), dtype=np.uint16).view(np.float16)
    table = pa.table({"e": as_lists(matrix)})
    if path.suffix == ".npy":
        np.save(path, matrix)
    elif path.suffix == ".npz":
        np.savez(path, e=matrix)
    elif path.suffix == ".parquet":  # one row group: the hardest case
        pq.write_table(table, path, row_group_size=rows, compression="none", use_dictionary=False)
    else:
        feather.write_feather(table, path, compression="lz4", chunksize=2000)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc to measure memory")
@pytest.mark.parametrize("suffix", ["parquet", "feather", "npy", "npz", "csv", "jsonl"])
def test_memory_stays_bounded(tmp_path, suffix):
    small, large, rows = (
        tmp_path / f"small.{suffix}",
        tmp_path / f"large.{suffix}",
        400_000 if suffix == "csv" else 50_000,  # pyarrow's CSV reader itself holds 45-95 MB, whatever the file
    )
    write(small, 10)
    write(large, rows)
    roles = {"text": "t"} if suffix in ("csv", "jsonl") else {}
    command = [sys.executable, "-c", CODE, str(small), str(large), json.dumps(roles)]
    used = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    size = large.stat().st_size
    assert size > 30e6 and used["rows"] == rows
    assert used["most"] < 0.7 * size, used
    if suffix in ("npy", "npz"):
        assert used["whole"] < 0.2 * size, "a mapped array was copied"
    else:
        assert used["whole"] > 0.9 * size, "the measurement itself looks wrong"
