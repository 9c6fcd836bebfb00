"""``openset.run`` on five million source and five million target rows of 64 features, in Parquet: peak memory.

    python benchmarks/large_fit.py [--rows 5000000] [--effort full] [--folder /tmp]

Source and target are folders of ten parts, with ids. The fit is the default one, CoLOR on a sample of 100 000
rows a side; all target rows are scored. It runs in a process of its own, and memory is the peak of that process.
``vectors`` is one column of float32 vectors, ``columns`` 64 columns of float32. The files are deleted at the end.
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

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "large_fit.md"
FEATURES, PARTS, GROUP, NEW = 64, 10, 50_000, 0.02
CENTRES = 6 * np.random.default_rng(7).standard_normal((4, FEATURES)).astype(np.float32) / 3


def draw(random: np.random.Generator, rows: int, mix: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    kind = random.choice(len(CENTRES), rows, p=mix)
    return CENTRES[kind] + random.standard_normal((rows, FEATURES), dtype=np.float32), kind


def table(X: np.ndarray, first: int, shape: str) -> pa.Table:
    if shape == "vectors":
        made = {"e": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), FEATURES)}
    else:
        made = {f"x{i}": np.ascontiguousarray(X[:, i]) for i in range(FEATURES)}
    return pa.table({"id": np.arange(first, first + len(X)), **made})


def write(folder: Path, rows: int, shape: str, mix: tuple[float, ...], seed: int, *, labelled: bool) -> int:
    """Write the parts, group by group; return how many rows are of the new kind."""
    random, first, new = np.random.default_rng(seed), 0, 0
    folder.mkdir()
    for part in range(PARTS):
        writer = None
        for _ in range(0, rows // PARTS, GROUP):
            X, kind = draw(random, min(GROUP, rows // PARTS), mix)
            group = table(X, first, shape)
            if labelled:
                group = group.append_column("kind", pa.array(np.array(["a", "b", "c", "-"])[kind]))
            writer = writer or pq.ParquetWriter(folder / f"part-{part}.parquet", group.schema, compression="none")
            writer.write_table(group)
            first, new = first + len(X), new + int((kind == len(CENTRES) - 1).sum())
        assert writer is not None
        writer.close()
    return new


MEASURE = """
import json, re, sys, time
from pathlib import Path
import openset
folder, effort = sys.argv[1:]
start = time.perf_counter()
result = openset.run(f"{folder}/source", f"{folder}/target", label="kind", id="id",
    parameters={"effort": effort})
result.save(f"{folder}/run")
took, summary = time.perf_counter() - start, result.summary
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
print(json.dumps({"mb": peak, "seconds": took, "called": summary.called_novel, "rows": summary.data.target.rows,
    "low": summary.novel_fraction.low, "verdict": summary.verdict.word, "sample": summary.data.sample_text,
    "timings": summary.timings}))
"""

READ = """
import re, sys
from pathlib import Path
from openset.data.readers.tables import iter_batches
import openset.pipeline.run
rows = sum(len(part) for part in iter_batches(sys.argv[1] + "/target", features=sys.argv[2].split(",")))
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def main(rows: int, folder: str | None, shapes: list[str], effort: str) -> None:
    """Measure each shape, and write the table."""
    lines = [
        "| features | rows a side | on disk, GB | peak memory, MB | of it reading alone, MB | at least "
        "| called new / new |"
    ]
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    for shape in shapes:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            files = Path(name)
            write(files / "source", rows, shape, (0.5, 0.3, 0.2, 0.0), 0, labelled=True)
            new = write(files / "target", rows, shape, (0.2, 0.3, 0.5 - NEW, NEW), 1, labelled=False)
            size = sum(path.stat().st_size for path in files.rglob("*.parquet")) / 1e9
            started = time.perf_counter()
            names = ["e"] if shape == "vectors" else [f"x{i}" for i in range(FEATURES)]
            read = int(run(READ, name, ",".join(names))) / 1024
            found = json.loads(run(MEASURE, name, effort))
            print(json.dumps(found, indent=1), f"{time.perf_counter() - started:.0f} s", flush=True)
        assert found["rows"] == rows
        lines.append(
            f"| {shape} | {rows} | {size:.1f} | {found['mb']:.0f} | {read:.0f} | {100 * found['low']:.2f} % "
            f"| {found['called']} / {new} |"
        )
        print(lines[-1], flush=True)
    intro = (
        "# A fit on more rows than memory should hold\n\nWritten by `python benchmarks/large_fit.py`: "
        f'`openset.run(source, target, label="kind", id="id")` with\nall defaults, then `save`, on {rows} source '
        f"rows and as many target rows of {FEATURES} float32 features\nin {PARTS} Parquet parts each; a share of "
        f"{NEW} of the target is new. The fit is on a sample of\n100 000 rows a side, every target row is "
        "scored. Memory is the peak of the process, torch included;\nreading alone is the same rows read and "
        "thrown away, with the same imports.\n\n"
    )
    OUT.write_text(intro + "\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--folder", help="folder for temporary files")
    parser.add_argument("--effort", default="full", choices=("fast", "full"))
    parser.add_argument("--shapes", nargs="+", default=["vectors", "columns"])
    asked = parser.parse_args()
    main(asked.rows, asked.folder, asked.shapes, asked.effort)
