"""Does a sweep that is killed again and again give what an uninterrupted one gives, bit for bit?

    python benchmarks/killed_sweep.py table-amazon --data ../shared/data --kills 5 [--runs 240]

``--whole`` is the store of an uninterrupted sweep, which is run first if the store does not have it. The second
sweep, with the same command, writes to ``--killed``. It gets SIGKILL at equal distances and is started again each
time, until ``--runs`` runs are stored (by default all). Every metric, head and data checksum must be equal.
"""

from __future__ import annotations

import argparse
import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

from openset.bench.results import stored_plan
from openset.bench.spec import load_spec
from openset.bench.store import Store, StoredRun


def command(arguments: argparse.Namespace, store: Path) -> list[str]:
    """The command of a sweep, as a user types it."""
    data = ["--data", str(arguments.data)] if arguments.data else []
    run = [sys.executable, "-m", "openset.cli", "bench", "run", arguments.spec]
    return [*run, *data, "--jobs", str(arguments.jobs), "--store", str(store)]


def stored(path: Path) -> dict[str, StoredRun]:
    return {run.key: run for run in Store(path).all()} if path.exists() else {}


def n_stored(path: Path) -> int:
    """The number of stored runs, without reading them: it is called every second."""
    with (
        suppress(sqlite3.OperationalError),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as found,
    ):
        return int(found.execute("SELECT count(*) FROM runs").fetchone()[0])
    return 0  # there is no file or no table yet


def run_until(arguments: argparse.Namespace, store: Path, count: int) -> None:
    """Start or continue the sweep, and kill it as soon as that many runs are stored."""
    process = subprocess.Popen(command(arguments, store), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and n_stored(store) < count:
        time.sleep(1)
    process.send_signal(signal.SIGKILL)
    process.wait()


def numbers(run: StoredRun) -> str:
    """Everything that a run returned, as text, in which NaN equals NaN."""
    result = run.result
    return json.dumps([result.metrics, result.heads, result.manifest_checksum, result.failure])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--whole", type=Path, default=Path("whole.sqlite"))
    parser.add_argument("--killed", type=Path, default=Path("killed.sqlite"))
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.killed.exists():
        sys.exit(f"{arguments.killed} exists: give another file with --killed.")

    if subprocess.run(command(arguments, arguments.whole), stdout=subprocess.DEVNULL, check=False).returncode > 1:
        sys.exit(1)  # exit code 1 means that some runs failed; they must fail again
    plan = stored_plan(load_spec(arguments.spec), Store(arguments.whole, read_only=True), data_dir=arguments.data)
    whole = {run.key: run for _, run in plan if run is not None}
    runs = min(arguments.runs or len(whole), len(whole))
    kept: dict[str, StoredRun] = {}
    n_changed = 0
    for kill in range(1, arguments.kills + 1):
        run_until(arguments, arguments.killed, runs * kill // (arguments.kills + 1))
        now = stored(arguments.killed)
        changed = sum(now.get(key) != run for key, run in kept.items())
        n_changed += changed
        print(f"kill {kill}: {len(now)} of {len(whole)} runs stored, {changed} earlier ones changed", flush=True)
        kept = now
    run_until(arguments, arguments.killed, runs)
    found = stored(arguments.killed)
    equal = sum(key in whole and numbers(run) == numbers(whole[key]) for key, run in found.items())
    print(f"{equal} of {len(found)} runs equal those of the uninterrupted sweep, bit for bit")
    sys.exit(bool(n_changed) or equal < len(found) or len(found) < runs)


if __name__ == "__main__":
    main()
