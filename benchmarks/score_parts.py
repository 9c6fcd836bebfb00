"""Many rows in parts through ``openset score``: here, in two shards, on Ray, and killed in the middle.

Run as ``python benchmarks/score_parts.py --folder /tmp/parts``. Every way must write the same bytes. A run that
is killed with SIGKILL and started again must score no finished part twice, and lose none. Each way is a process
of the command line. Writes docs/evidence/score_parts.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import openset

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "score_parts.md"
FEATURES = 32
COMMAND = [sys.executable, "-c", "from openset.cli import app; app()"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(openset.__file__).parents[1])}


def table(X, first=0, **columns):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), FEATURES)
    return pa.table({"id": np.arange(first, first + len(X)), "e": vectors, **columns})


def draw(random, rows):
    """Rows of two known classes, and a tenth of a new one."""
    kind = random.choice(3, rows, p=[0.5, 0.4, 0.1])
    X = random.standard_normal((rows, FEATURES), dtype=np.float32)
    X[:, 0] += np.float32(4) * (kind == 1)
    X[:, 1] += np.float32(6) * (kind == 2)
    return X, kind


def prepare(folder, rows, parts, parameters):
    """A fitted run and the parts, whose rows are drawn by the number of the part."""
    random = np.random.default_rng(0)
    X, kind = draw(random, 4000)
    known = kind < 2
    target, _ = draw(random, 4000)
    source = table(X[known], kind=np.array(["a", "b"])[kind[known]])
    settings = {"label": "kind", "features": "e", "id": "id", "parameters": parameters}
    openset.run(source, table(target), **settings).save(folder / "run", overwrite=True)
    (folder / "in").mkdir(exist_ok=True)
    for part in range(parts):
        X, _ = draw(np.random.default_rng([1, part]), rows // parts)
        pq.write_table(
            table(X, part * (rows // parts)), folder / "in" / f"part-{part:03}.parquet", compression="none"
        )


def begin(folder, out, *options):
    command = [*COMMAND, "score", folder / "run", folder / "in", "--out", f"{folder / out}/", "--json", *options]
    return subprocess.Popen(
        list(map(str, command)), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def end(process):
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr.decode()[-3000:]
    return json.loads(stdout)


def written(folder, out):
    """The digest of every part and of the last file, and when each was written."""
    files = sorted(p for p in (folder / out).iterdir() if p.is_file() and not p.name.startswith("."))
    digests = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
    return digests, {p.name: p.stat().st_mtime_ns for p in files}


def killed(folder, out, after):
    """Kill the process when ``after`` parts are there; start it again. What was there, and what was done then."""
    process = begin(folder, out)
    while process.poll() is None and len(list((folder / out).glob("part-*"))) < after:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    was_killed = process.returncode == -signal.SIGKILL
    left = len(list((folder / out).glob(".writing-*")))
    before, times = written(folder, out)
    answer = end(begin(folder, out))
    after_digests, after_times = written(folder, out)
    unchanged = all(after_digests[n] == before[n] and after_times[n] == times[n] for n in before)
    return was_killed, len(before), left, unchanged, answer


class Steps:
    """The results of the steps so far, in a file: a benchmark that was stopped goes on with the next one."""

    def __init__(self, folder):
        self.file = folder / "steps.json"
        self.done = json.loads(self.file.read_text()) if self.file.exists() else {}

    def __call__(self, name, function, *arguments):
        if name not in self.done:
            start = time.perf_counter()
            found = function(*arguments)
            self.done[name] = {"found": found, "seconds": time.perf_counter() - start}
            self.file.write_text(json.dumps(self.done))
            print(f"{self.file.parent.name}: {name}", flush=True)
        return self.done[name]["found"]

    def seconds(self, name):
        return self.done[name]["seconds"] / self.done["local"]["seconds"]


def local(folder, *options):
    return end(begin(folder, "ray" if options else "local", *options))


def shards(folder):
    """Both shards at the same time; what each has scored, and the answer of the one that was last."""
    each = [end(process) for process in [begin(folder, "shards", "--shard", f"{i}/2") for i in range(2)]]
    return [e["parts"]["scored"] for e in each], next(e for e in each if e["parts"]["complete"])


def ids(folder):
    command = [*COMMAND, "ids", f"{folder / 'killed'}/", "--json"]
    return json.loads(subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=True).stdout)


def measure(folder, rows, parts, model, parameters):
    """Every way of scoring; a line of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    step = Steps(folder)
    step("prepare", prepare, folder, rows, parts, parameters)
    alone = step("local", local, folder)
    by_shard, sharded = step("shards", shards, folder)
    on_ray = step("ray", local, folder, "--on", "ray")
    was_killed, before, left, unchanged, again = step("killed", killed, folder, "killed", parts // 3)
    looked_at = step("ids", ids, folder)
    digests = {way: written(folder, way)[0] for way in ("local", "shards", "ray", "killed")}
    assert all(found == digests["local"] for found in digests.values()) and len(digests["local"]) == parts + 1
    assert {answer["rows"] for answer in (alone, sharded, on_ray, again)} == {rows}
    assert was_killed and unchanged and sum(by_shard) == parts
    assert (before, parts - before) == (again["parts"]["skipped"], again["parts"]["scored"])
    assert (looked_at["rows"], looked_at["n_repeated"]) == (rows, 0)
    total = hashlib.sha256("".join(digests["local"].values()).encode()).hexdigest()
    return (
        f"| {model} | {rows} in {parts} | `{total[:12]}` | the same, {by_shard[0]} + {by_shard[1]} parts "
        f"| the same | the same; {before} parts and {left} half-written file there, "
        f"then {again['parts']['skipped']} skipped and {again['parts']['scored']} scored "
        f"| {looked_at['rows']}, none twice | 1 : {step.seconds('shards'):.1f} : {step.seconds('ray'):.1f} |"
    )


HEAD = f"""# Scoring in parts

`python benchmarks/score_parts.py`, on a machine with two cores that others used at the same time.
Rows have {FEATURES} features in float32, one column of vectors, and an id. Every way is `openset score RUN
in/ --out OUT/` in a process of its own, with one thread each:

- **local**: as it is;
- **shards**: `--shard 0/2` and `--shard 1/2` at the same time;
- **Ray**: `--on ray`, a local cluster, which is started in this time;
- **killed**: SIGKILL when a third of the parts was there, then the same command again. The parts
  that were there before kept their bytes and their time of writing: none was scored twice.

Digests are of the bytes of all parts and of `_SUCCESS`; "the same" is the same bytes in every file.
Every way told the same number of rows: none was lost. `openset ids` then looked for ids in several
parts of the killed run. Times are ratios to local, and on a busy machine they say little.

| model | rows in parts | local | shards | Ray | killed | ids | time, local : shards : Ray |
|---|---|---|---|---|---|---|---|
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--parts", type=int, default=20)
    parser.add_argument("--rows-of-default", type=int, default=200_000)
    given = parser.parse_args()
    fast = {"effort": "fast"}
    lines = [measure(given.folder / "fast", given.rows, given.parts, 'CoLOR, `effort="fast"`', fast)]
    if given.rows_of_default:
        lines += [measure(given.folder / "default", given.rows_of_default, given.parts, "CoLOR", {})]
    PAGE.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
