"""Five million rows of 30 mixed columns through ``openset score``: memory, and time as a share of reading.

    python benchmarks/table_stream.py [--rows 5000000]

The table has 12 numbers, 6 categories, 4 dates, 4 flags, 2 durations and 2 columns of many levels, a tenth of the
cells missing. Reading alone is the floor: the same batches of the same file, turned into nothing. Each measure is
a process of its own, and its peak memory is the operating system's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "table_stream.md"
PART = 100_000
SMALL = 250_000
WHAT = ("read", "features", "score")


def columns(n: int, seed: int) -> dict[str, pa.Array]:
    random = np.random.default_rng(seed)

    def gaps(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=random.random(n) < 0.1)

    towns = np.array([f"town {i}" for i in range(20)])
    shops = np.array([f"shop {i}" for i in range(400)])
    made = {f"n{i}": gaps(random.normal(size=n) * 10 ** (i % 4)) for i in range(12)}
    made |= {f"c{i}": gaps(towns[random.integers(0, 4 + 3 * i, n)]) for i in range(6)}
    days = np.datetime64("2024-01-01", "s") + random.integers(0, 3 * 10**7, (4, n))
    made |= {f"d{i}": gaps(days[i]) for i in range(4)}
    made |= {f"b{i}": gaps(random.random(n) < 0.3) for i in range(4)}
    made |= {f"t{i}": gaps(random.integers(1, 90_000, n).astype("timedelta64[s]")) for i in range(2)}
    return made | {f"m{i}": gaps(shops[random.integers(0, 400, n)]) for i in range(2)}


def write(path: Path, rows: int, seed: int) -> None:
    writer = None
    for start in range(0, rows, PART):
        table = pa.table(columns(min(PART, rows - start), seed + start))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


MEASURE = """
import json, re, sys, time
from pathlib import Path
from openset.data.readers.open import open_source
from openset.features.fitted import read_features
from openset.features.maker import FeatureMaker
from openset.pipeline.load import stream
from openset.pipeline.result import FEATURES, read_summary
from openset.pipeline.score import BATCH_ROWS, score
what, run, data, out = sys.argv[1:]
opened, fitted = open_source(data), read_features(Path(run) / FEATURES)
start = time.perf_counter()
if what == "read":
    rows = sum(len(chunk.rows) for chunk in opened.chunks(list(opened.kinds), BATCH_ROWS))
elif what == "features":
    maker = FeatureMaker(fitted=fitted)
    rows = sum(len(maker(part).X) for part in stream(read_summary(run).settings, opened, BATCH_ROWS, fitted))
else:
    rows = score(run, data, out).rows
took = time.perf_counter() - start
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps({"rows": rows, "seconds": took, "mb": peak}))
"""


def measure(what: str, run: Path, data: Path, out: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, what, run, data, out], check=True, capture_output=True, text=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Fit on a small part, then measure a small and a large file."""
    import openset

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--method", default="source_only")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known = pa.table(columns(5000, 1)).append_column("kind", pa.array(["a", "b"] * 2500))
        fitted = openset.run(
            known, pa.table(columns(5000, 2)), label="kind", method=asked.method, parameters={"max_steps": 200}
        )
        fitted.save(folder / "run")
        width = fitted.features_target.shape[1]
        lines = ["| rows | read, s | features / read | score / read | read, MB | features, MB | score, MB |"]
        lines.append("|---:|---:|---:|---:|---:|---:|---:|")
        for rows in (SMALL, asked.rows):
            data = folder / f"{rows}.parquet"
            write(data, rows, 7)
            found = [measure(what, folder / "run", data, folder / "out.parquet") for what in WHAT]
            assert all(one["rows"] == rows for one in found)
            times, memory = [one["seconds"] for one in found], [f"{one['mb']:.0f}" for one in found]
            ratios = [f"{time / times[0]:.1f}" for time in times[1:]]
            lines.append(f"| {rows} | {times[0]:.1f} | {' | '.join([*ratios, *memory])} |")
            print(lines[-1], flush=True)
    intro = (
        "# A table of 30 mixed columns, streamed\n\nWritten by `python benchmarks/table_stream.py`: one Parquet "
        "file of 12 numbers, 6 categories,\n4 dates, 4 flags, 2 durations and 2 columns of 400 levels, a tenth "
        f"of the cells missing, through\na run of `{asked.method}` ({width} features). Reading is the floor. "
        "Memory is the peak of\nthe process, torch included.\n\n"
    )
    OUT.write_text(intro + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
