"""``openset score`` on float16 embeddings in Parquet, against reading the file plus the bare matrix products.

Run as ``python benchmarks/score_stream.py [rows] [folder]``; 10 million rows × 384 take 8 GB. The floor is the
time to read the ids and vectors with pyarrow, batch by batch, plus the time of the network's two products on
rows that are in memory as float32 already. Seconds count that reading, scoring and writing overlap, and mean
little where others work on the machine; processor times do not. Memory is the peak of a process that only scores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import openset
from openset.streaming import BATCH_ROWS, score

FEATURES, GROUP = 384, 100_000


def draw(random, rows, shift=0.0):
    return (random.standard_normal((rows, FEATURES), dtype=np.float32) + shift).astype(np.float16)


def table(X, first=0, **columns):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), FEATURES)
    return pa.table({"id": np.arange(first, first + len(X)), "e": vectors, **columns})


def prepare(folder, rows):
    """Source, target, a fitted run, and the large file, written group by group."""
    random = np.random.default_rng(0)
    known, new = draw(random, 4000), draw(random, 3000)
    new[-300:] += np.float16(0.5)
    kind = np.where(known[:, 0].astype(np.float32) > 0, "a", "b")
    pq.write_table(table(known, kind=kind), folder / "source.parquet")
    pq.write_table(table(new), folder / "target.parquet")
    result = openset.run(
        folder / "source.parquet", folder / "target.parquet", label="kind", features="e", id="id",
        parameters={"max_steps": 100},
    )  # fmt: skip
    result.save(folder / "run")
    block = draw(random, GROUP)
    with pq.ParquetWriter(
        folder / "rows.parquet", table(block).schema, use_dictionary=False, compression="none"
    ) as w:
        for first in range(0, rows, GROUP):
            w.write_table(table(block[: min(GROUP, rows - first)], first), row_group_size=GROUP)
    return result.model


def clock():
    return np.array([time.perf_counter(), time.process_time()])


def reading(path):
    """Seconds and processor seconds to read every batch with pyarrow alone."""
    start = clock()
    file = pq.ParquetFile(path, buffer_size=2**20, pre_buffer=False)
    rows = sum(batch.num_rows for batch in file.iter_batches(BATCH_ROWS, columns=["id", "e"]))
    return clock() - start, rows


def products(model, rows):
    """The same for the two matrix products of so many rows, in the shape they are quickest in here."""
    import torch

    weights = [torch.from_numpy(w) for w in model.weights_.values() if w.ndim == 3 and w.shape[1] > 1]
    taken = []
    for block in (256, 1024, 4096):
        x = torch.randn(1, block, FEATURES)
        with torch.inference_mode():
            start = clock()
            for _ in range(0, rows, block):
                (x @ weights[0]) @ weights[1]
            taken.append(clock() - start)
    return np.min(taken, axis=0)


def main(rows=300_000, folder=None):
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        place = Path(temporary)
        model = prepare(place, rows)
        read, found = reading(place / "rows.parquet")
        assert found == rows
        product = products(model, rows)
        process = subprocess.run(
            [sys.executable, __file__, "--score", str(place)], capture_output=True, text=True, check=True
        )  # fmt: skip
        ours = json.loads(process.stdout)
        size = (place / "rows.parquet").stat().st_size / 1e9
    assert ours["rows"] == rows
    print(f"{rows} rows × {FEATURES} float16, {size:.2f} GB")
    for name, floor_read, floor_product, taken in zip(
        ("seconds", "processor"), read, product, (ours["seconds"], ours["processor"]), strict=True
    ):
        floor = floor_read + floor_product
        print(f"{name}: reading {floor_read:.2f} + products {floor_product:.2f} = {floor:.2f}; ", end="")
        print(f"openset score {taken:.2f}, {floor / taken:.0%} of the floor's speed")
    print(f"peak resident memory: {ours['megabytes']:.0f} MB")


def score_alone(folder):
    score(folder / "run", folder / "target.parquet", folder / "small.parquet")  # imports, which cost seconds
    start, used = time.perf_counter(), time.process_time()
    rows = score(folder / "run", folder / "rows.parquet", folder / "out.parquet")
    seconds, used = time.perf_counter() - start, time.process_time() - used
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    megabytes = int(status["VmHWM"].split()[0]) / 1024  # getrusage would count the parent's from before the exec
    print(json.dumps({"rows": rows, "seconds": seconds, "processor": used, "megabytes": megabytes}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--score"]:
        score_alone(Path(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
