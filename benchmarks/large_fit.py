"""``openset.run`` on five million source and five million target rows of 64 features, in Parquet: peak memory.

    python benchmarks/large_fit.py [--effort full] [--shapes vectors columns] [--rows 5000000] [--folder /tmp]

Source and target are folders of ten parts, with ids. The fit is CoLOR on a sample of 100 000 rows a side; all
target rows are scored. It runs in a process of its own; memory is the peak of that process. ``vectors`` is one
column of float32 vectors, ``columns`` 64 columns of float32. The files are deleted at the end. Lines are appended
to ``--out``, and what is there is not measured again; docs/evidence/large_fit.md is the table of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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


def write(folder: Path, rows: int, shape: str, mix: tuple[float, ...], seed: int, *, labelled: bool) -> None:
    """Write the parts, group by group."""
    random, first = np.random.default_rng(seed), 0
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
            first += len(X)
        assert writer is not None
        writer.close()


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
import json, re, sys
from pathlib import Path
import openset.pipeline.run
from openset.data.readers.tables import iter_batches
rows = sum(len(part) for part in iter_batches(sys.argv[1] + "/target", features=sys.argv[2].split(",")))
print(json.dumps(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024))
"""


def run(code: str, *arguments: str) -> Any:
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(rows: int, parent: str | None, shape: str, effort: str) -> dict[str, Any]:
    """Write the files, and measure reading them and fitting on them."""
    names = ["e"] if shape == "vectors" else [f"x{i}" for i in range(FEATURES)]
    with tempfile.TemporaryDirectory(dir=parent) as name:
        files = Path(name)
        write(files / "source", rows, shape, (0.5, 0.3, 0.2, 0.0), 0, labelled=True)
        write(files / "target", rows, shape, (0.2, 0.3, 0.5 - NEW, NEW), 1, labelled=False)
        size = sum(path.stat().st_size for path in files.rglob("*.parquet")) / 1e9
        read = run(READ, name, ",".join(names))
        found: dict[str, Any] = run(MEASURE, name, effort)
    assert found["rows"] == rows
    return {"key": [shape, effort, rows], "gb": size, "read_mb": read, **found}


def report(out: Path) -> None:
    """Write the table of all measures."""
    lines = [
        "| features | effort | rows a side | on disk, GB | peak memory, MB | reading alone, MB | at least "
        "| called new |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for found in map(json.loads, out.read_text().splitlines()):
        shape, effort, rows = found["key"]
        lines.append(
            f"| {shape} | {effort} | {rows} | {found['gb']:.1f} | {found['mb']:.0f} | {found['read_mb']:.0f} "
            f"| {100 * found['low']:.2f} % | {100 * found['called'] / rows:.2f} % |"
        )
    intro = f"""# A fit on more rows than memory should hold

Written by `python benchmarks/large_fit.py`: `openset.run(source, target, label="kind", id="id")`, then
`save`, on {FEATURES} float32 features in {PARTS} Parquet parts on each side, as one column of vectors or as
{FEATURES} columns. Of the target {100 * NEW:g} % is new. The fit is CoLOR on a sample of 100 000 rows a side, and
every target row is scored. Memory is the peak of the process, torch included; reading alone is
the target read and thrown away, with the same imports.

"""
    OUT.write_text(intro + "\n".join(lines) + "\n")


def main() -> None:
    """Measure what is not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--folder", help="folder for temporary files")
    parser.add_argument("--effort", default="full", choices=("fast", "full"))
    parser.add_argument("--shapes", nargs="+", default=["vectors", "columns"])
    parser.add_argument("--out", type=Path, default=Path("large_fit.jsonl"))
    asked = parser.parse_args()
    lines = asked.out.read_text().splitlines() if asked.out.exists() else []
    done = [json.loads(line)["key"] for line in lines]
    for shape in asked.shapes:
        if [shape, asked.effort, asked.rows] not in done:
            found = measure(asked.rows, asked.folder, shape, asked.effort)
            with asked.out.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(found, flush=True)
    report(asked.out)


if __name__ == "__main__":
    main()
