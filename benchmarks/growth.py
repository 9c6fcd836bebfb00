"""How time and peak memory of ``fit`` and ``score`` grow with the rows, beside reading the file.

    python benchmarks/growth.py [--effort fast] [--out growth.jsonl] [--folder /tmp] [--report]

Files of 10⁴ to 10⁷ rows of 32 or 384 float16 features in Parquet, without ids. From 10⁵ rows on the same row
group is written again and again, so that a file is quickly made. Each measure is a process of its own: its
processor seconds without imports, and its peak memory, which is the operating system's. Reading is the floor: the
same file in the same batches, turned into nothing. Lines are appended to ``--out``, and what is there is not
measured again. ``--report`` writes the table of them to docs/evidence/growth.md.

``--effort fast``, the default here, is one network of CoLOR. With ``full``, which has five networks and distances
to rows of the fit, a row takes many times as long, and 10⁷ rows take an hour of a core.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OUT = Path(__file__).parents[1] / "docs" / "evidence" / "growth.md"
SIZES, WIDTHS, GROUP = (10_000, 100_000, 1_000_000, 10_000_000), (32, 384), 100_000

MEASURE = """
import json, re, sys, time
from pathlib import Path
import openset
from openset.data.readers.tables import iter_batches
from openset.pipeline import run, score
what, folder, rows, effort = sys.argv[1:]
data = f"{folder}/target-{rows}.parquet"
if what == "score":
    openset.score(f"{folder}/run", f"{folder}/small.parquet", f"{folder}/small-out.parquet")
start, wall = time.process_time(), time.perf_counter()
if what == "read":
    found = sum(len(part) for part in iter_batches(data, features="e", batch_rows=8192))
elif what == "score":
    found = openset.score(f"{folder}/run", data, f"{folder}/out.parquet").rows
else:
    parameters = {"effort": effort}
    result = openset.run(f"{folder}/source-{rows}.parquet", data, label="kind", parameters=parameters)
    found = result.summary.data.target.rows
used, took = time.process_time() - start, time.perf_counter() - wall
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
assert found == int(rows), found
print(json.dumps({"processor": used, "seconds": took, "mb": peak}))
"""


def draw(random: np.random.Generator, rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    kind = random.integers(0, 3, rows)
    centres = 2 * np.random.default_rng(width).standard_normal((3, width)).astype(np.float32)
    return (centres[kind] + random.standard_normal((rows, width), dtype=np.float32)).astype(np.float16), kind


def table(random: np.random.Generator, rows: int, width: int, *, labelled: bool) -> pa.Table:
    X, kind = draw(random, rows, width)
    if not labelled:
        X[: rows // 20] += np.float16(1)
    made = pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), width)})
    return made.append_column("kind", pa.array(np.array(["a", "b", "c"])[kind])) if labelled else made


def write(path: Path, rows: int, width: int, *, labelled: bool) -> None:
    if path.exists():
        return
    group = table(np.random.default_rng(int(labelled)), min(rows, GROUP), width, labelled=labelled)
    with pq.ParquetWriter(path, group.schema, compression="none", use_dictionary=["kind"]) as writer:
        for _ in range(0, rows, GROUP):
            writer.write_table(group, row_group_size=GROUP)


def prepare(folder: Path, width: int, effort: str) -> None:
    """A small fitted run, if it is not there yet."""
    import openset

    if folder.exists():
        return
    folder.mkdir()
    random = np.random.default_rng(2)
    known = table(random, 4000, width, labelled=True)
    pq.write_table(table(random, 3000, width, labelled=False), folder / "small.parquet")
    openset.run(known, folder / "small.parquet", label="kind", parameters={"effort": effort}).save(folder / "run")


def wanted() -> Iterator[tuple[str, int, int]]:
    """What is measured, for which width and rows: first what is quick, and scores before fits."""
    for kinds in (("read", "score"), ("fit",)):
        for width in WIDTHS:
            yield from ((what, width, rows) for rows in SIZES for what in kinds)


def measure(out: Path, parent: str | None, skip: list[str], effort: str) -> None:
    """Append a line for every measure that is not there yet."""
    lines = out.read_text().splitlines() if out.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    with tempfile.TemporaryDirectory(dir=parent) as name:
        for what, width, rows in wanted():
            if (what, width, rows) in done or f"{what}-{width}-{rows}" in skip:
                continue
            folder = Path(name) / str(width)
            prepare(folder, width, effort)
            write(folder / f"target-{rows}.parquet", rows, width, labelled=False)
            if what == "fit":
                write(folder / f"source-{rows}.parquet", rows, width, labelled=True)
            command = [sys.executable, "-c", MEASURE, what, str(folder), str(rows), effort]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            with out.open("a") as file:
                file.write(json.dumps({"key": (what, width, rows), **found}) + "\n")
            print(what, width, rows, found, flush=True)


def report(out: Path, effort: str) -> None:
    """Write the table: seconds, seconds by those of reading, memory, and the exponents."""
    found = {tuple(line["key"]): line for line in map(json.loads, out.read_text().splitlines())}
    lines = ["| features | rows | read, s | score / read | fit / read | read, MB | score, MB | fit, MB |"]
    lines.append("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for width in WIDTHS:
        for rows in SIZES:
            read, score, fit = (found.get((what, width, rows)) for what in ("read", "score", "fit"))
            if read is None:
                continue
            ratios = [f"{one['processor'] / read['processor']:.1f}" if one else "—" for one in (score, fit)]
            memory = [f"{one['mb']:.0f}" if one else "—" for one in (read, score, fit)]
            cells = [str(width), str(rows), f"{read['processor']:.2f}", *ratios, *memory]
            lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Exponents: the slope of log time over log rows, from one size to the next.", ""]
    lines += ["| features | measure | " + " | ".join(f"to 10^{len(str(rows)) - 1}" for rows in SIZES[1:]) + " |"]
    lines += ["|---:|---|" + "---:|" * (len(SIZES) - 1)]
    for width in WIDTHS:
        for what in ("read", "score", "fit"):
            times = [found.get((what, width, rows), {}).get("processor") for rows in SIZES]
            slopes = [
                "—" if one is None or two is None else f"{np.log10(two / one):.2f}"
                for one, two in pairwise(times)
            ]
            lines.append(f"| {width} | {what} | {' | '.join(slopes)} |")
    intro = f"""# How fit and score grow with the rows

Written by `python benchmarks/growth.py --report`: float16 vectors in one Parquet file without ids, one
thread, each measure in a process of its own. Seconds are processor seconds without imports: the machine
was busy, so hold them against reading in the same row. Memory is the peak of the process, torch included.
The method is CoLOR with `effort="{effort}"`. The fit is on all rows up to 100 000 a side and on a sample of
100 000 above; source and target have as many rows as the table says, and every target row is scored.

"""
    OUT.write_text(intro + "\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("growth.jsonl"))
    parser.add_argument("--effort", default="fast", choices=("fast", "full"))
    parser.add_argument("--folder", help="folder for temporary files")
    parser.add_argument("--skip", nargs="*", default=[], help="measures to leave out, such as fit-384-10000000")
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    if asked.report:
        report(asked.out, asked.effort)
    else:
        measure(asked.out, asked.folder, asked.skip, asked.effort)
