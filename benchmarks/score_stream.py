"""``openset score`` on float16 embeddings in Parquet, compared with reading the file plus bare matrix products.

Run as ``python benchmarks/score_stream.py --rows 10000000 --folder /tmp``; 10 million rows × 384 take 8 GB.
The floor is the time to read the ids and vectors with pyarrow, batch by batch, plus the time of the network's two
products on float32 rows in memory, each with the number of threads and the block size that are fastest here.
Floor and scoring are timed in turn, and the best of each counts. Wall-clock seconds gain from the overlap of
reading, scoring and writing, and are unreliable on a busy machine; processor seconds do not gain from it. Memory
is the peak of a process that only scores.
"""

from __future__ import annotations

import argparse
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
from openset.pipeline.score import BATCH_ROWS, score

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


def reading(path, rows):
    """Seconds and processor seconds to read every batch with pyarrow alone."""
    taken = []
    for use_threads, size in ((False, BATCH_ROWS), (True, BATCH_ROWS), (True, 4 * BATCH_ROWS)):
        start = clock()
        file = pq.ParquetFile(path, buffer_size=2**20, pre_buffer=False)
        batches = file.iter_batches(size, columns=["id", "e"], use_threads=use_threads)
        assert sum(batch.num_rows for batch in batches) == rows
        taken.append(clock() - start)
    return np.min(taken, axis=0)


def products(model, rows):
    """The same for the two matrix products on that many rows."""
    import torch

    weights = [torch.from_numpy(w) for w in model.weights_.values() if w.ndim == 3 and w.shape[1] > 1]
    threads, taken = torch.get_num_threads(), []
    for n_threads in sorted({1, threads}):
        torch.set_num_threads(n_threads)
        for block in (256, 1024, 4096):
            x = torch.randn(1, block, FEATURES)
            with torch.inference_mode():
                start = clock()
                for _ in range(0, rows, block):
                    (x @ weights[0]) @ weights[1]
                taken.append(clock() - start)
    torch.set_num_threads(threads)
    return np.min(taken, axis=0)


def scoring(folder, rows):
    """The same for ``openset.score`` in a process of its own, and that process's peak memory in MB."""
    command = [sys.executable, __file__, "--score", str(folder)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["rows"] == rows
    return np.array([found["seconds"], found["processor"]]), found["megabytes"]


def main(rows, folder, repeats):
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        files = Path(temporary)
        model = prepare(files, rows)
        size = (files / "rows.parquet").stat().st_size / 1e9
        read, product, ours = np.full((3, 2), np.inf)
        megabytes = 0.0
        for _ in range(repeats):
            read = np.minimum(read, reading(files / "rows.parquet", rows))
            product = np.minimum(product, products(model, min(rows, 500_000)) * rows / min(rows, 500_000))
            taken, peak = scoring(files, rows)
            ours, megabytes = np.minimum(ours, taken), max(megabytes, peak)
    print(f"{rows} rows × {FEATURES} float16, {size:.2f} GB")
    for i, name in enumerate(("seconds", "processor")):
        floor = read[i] + product[i]
        print(f"{name}: reading {read[i]:.2f} + products {product[i]:.2f} = {floor:.2f}; ", end="")
        print(f"openset score {ours[i]:.2f}, {floor / ours[i]:.0%} of the floor's speed")
    print(f"peak resident memory: {megabytes:.0f} MB")


def score_alone(folder):
    score(folder / "run", folder / "target.parquet", folder / "small.parquet")  # imports, which cost seconds
    start, used = time.perf_counter(), time.process_time()
    rows = score(folder / "run", folder / "rows.parquet", folder / "out.parquet").rows
    seconds, used = time.perf_counter() - start, time.process_time() - used
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    megabytes = int(status["VmHWM"].split()[0]) / 1024  # getrusage would count the parent's from before the exec
    print(json.dumps({"rows": rows, "seconds": seconds, "processor": used, "megabytes": megabytes}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="openset score against reading plus the bare products")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--folder", help="folder for temporary files")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--score", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.score:
        score_alone(asked.score)
    else:
        main(asked.rows, asked.folder, asked.repeats)
