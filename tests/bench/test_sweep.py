"""Sweeps that are killed, workers that die, other places to run: the numbers stay the same."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from rich.console import Console

from openset.bench import runs
from openset.bench.runner import sweep
from openset.bench.runs import RunResult, code_version, expand
from openset.bench.spec import parse_spec
from openset.bench.store import Store
from openset.bench.watching import seconds_per_method, time_left, watching
from openset.bench.workers import local_results
from openset.errors import MissingExtraError

COMMAND = [sys.executable, "-m", "openset.cli", "bench", "run"]


def children_of(process):
    """Ids of a process's own children."""
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def test_killed_half_way_and_started_again_equals_an_uninterrupted_sweep(tiny_path, finished, tmp_path, numbers):
    path = tmp_path / "killed.sqlite"
    command = [*COMMAND, str(tiny_path), "--store", str(path)]
    process = subprocess.Popen([*command, "--jobs", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not path.exists() or len(Store(path).all()) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    workers = children_of(process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {run.key: run for run in Store(path).all()}
    assert 2 <= len(before) < 12
    while any(Path(f"/proc/{worker}/cwd").exists() for worker in workers):  # they end with their parent
        assert time.monotonic() < deadline
        time.sleep(0.05)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{len(before)} already stored, 0 failed" in " ".join(again.stderr.split())
    store = Store(path)
    assert numbers(store) == numbers(finished)
    assert {run.key: run for run in store.all() if run.key in before} == before  # nothing was computed twice


@pytest.mark.skipif(find_spec("ray") is None, reason="needs ray: pip install 'openset[ray]'")
def test_a_local_ray_cluster_gives_the_same_numbers(tiny_path, finished, tmp_path, numbers):
    path = tmp_path / "ray.sqlite"
    command = [*COMMAND, str(tiny_path), "--on", "ray", "--store", str(path)]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert numbers(Store(path)) == numbers(finished)


def test_a_finished_sweep_runs_nothing_again(tiny, finished):
    before = finished.all()
    report = sweep(tiny, finished, jobs=2)
    assert (report.planned, report.skipped) == (12, 12)
    assert finished.all() == before


def kill_workers():
    for child in multiprocessing.active_children():
        os.kill(child.pid, signal.SIGKILL)


def test_runs_on_other_rows_are_not_taken_for_these(two_methods, tmp_path, monkeypatch):
    store = Store(tmp_path / "s.sqlite")
    sweep(two_methods, store)
    build = runs.build_problem
    monkeypatch.setattr(runs, "build_problem", lambda *a, **k: replace(build(*a, **k), manifest_checksum="other"))
    runs._problem_of.cache_clear()
    with pytest.raises(ValueError, match="runs on other rows of synthetic than those in the data folder: name"):
        sweep(two_methods, store)
    runs._problem_of.cache_clear()


def test_a_narrow_terminal_shows_how_far_a_sweep_is(tiny, finished, monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=file, width=60, force_terminal=True))
    todo = [replace(planned.run, dataset="a-dataset-with-a-very-long-name") for planned in expand(tiny)]
    with watching(todo, 2, {"color": 9000.0, "knn": 1.0}, enabled=True) as progress:
        progress.started(todo[0])
        progress.finished(todo[0], RunResult(failure="no"))
        progress.started(todo[1])
    shown = " ".join(file.getvalue().split())
    assert "1/12 runs, about 8:4" in shown and "h left, 1 failed" in shown and "0:00:00" in shown


def test_a_log_gets_a_line_a_minute_and_every_failure(tiny, capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("openset._utils.progress.time.monotonic", lambda: now[0])
    todo = [planned.run for planned in expand(tiny)][:4]
    with watching(todo, 1, {}, enabled=True) as watcher:
        for run, passing, failure in zip(todo, (10, 10, 60, 10), ("", "no", "", ""), strict=True):
            now[0] += passing
            watcher.started(run)
            watcher.finished(run, RunResult(seconds={"fit": 10.0}, failure=failure))
    told = capsys.readouterr().err.splitlines()
    assert told == [
        f"2/4 runs, about 0:20 left, 1 failed; {todo[1]}: failed",
        f"3/4 runs, about 0:10 left, 1 failed; {todo[2]}: 10 s",
        f"4/4 runs, about 0:00 left, 1 failed; {todo[3]}: 10 s",
    ]


def test_a_run_whose_worker_is_killed_once_is_tried_again(tiny, finished):
    runs = [planned.run for planned in expand(tiny) if planned.run.method == "knn"][:2]
    started = []

    def on_start(run):
        started.append(run)
        if len(started) == 1:
            kill_workers()

    found = dict(local_results(runs, None, 1, on_start))
    assert started == [runs[0], runs[0], runs[1]]
    stored = finished.get(run.key(code_version()) for run in runs)
    for run in runs:
        assert found[run].metrics == stored[run.key(code_version())].result.metrics


def test_a_run_that_kills_its_worker_twice_is_a_failure_and_the_others_go_on(tiny):
    runs = [planned.run for planned in expand(tiny) if planned.run.method == "knn"][:2]
    found = dict(local_results(runs, None, 1, lambda run: kill_workers() if run == runs[0] else None))
    assert "worker process died (exit code -9), 2 times" in found[runs[0]].failure
    assert found[runs[1]].failure == "" and found[runs[1]].metrics["auroc"] > 0
    assert multiprocessing.active_children() == []


@pytest.fixture
def two_methods():
    return parse_spec(
        '[[problem]]\ndataset = "synthetic"\nsettings = ["shift"]\nseeds = [0]\n'
        "options = { n_source = 60, n_target = 60, n_test = 40, n_features = 4 }\n"
        '[[method]]\nname = "knn"\nparameters = { fpr = 7 }\n[[method]]\nname = "mahalanobis"',
        "two",
    )


def test_failures_are_recorded_and_tried_again_only_when_asked(two_methods, tmp_path, monkeypatch):
    store = Store(tmp_path / "runs.sqlite")
    assert sweep(two_methods, store).failed == 1
    failed = [run for run in store.all() if run.result.failure]
    assert [run.run.method for run in failed] == ["knn"]
    assert "fpr=7 is not valid" in failed[0].result.failure

    mended = []

    def results(on, runs, data_dir, jobs, progress):
        mended.extend(runs)
        return ((run, RunResult(metrics={"auroc": 1.0})) for run in runs)

    monkeypatch.setattr("openset.bench.runner._results", results)
    assert sweep(two_methods, store).skipped == 2 and mended == []
    assert sweep(two_methods, store, retry_failed=True, show_progress=True).skipped == 1
    assert [run.method for run in mended] == ["knn"]
    assert not any(run.result.failure for run in store.all())


def test_a_missing_extra_is_told_before_anything_runs(two_methods, tmp_path, monkeypatch):
    def build(*args, **options):
        raise MissingExtraError("Reading Parquet", "data")

    monkeypatch.setattr(runs, "build_problem", build)
    runs._problem_of.cache_clear()
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(MissingExtraError, match=r"openset\[data\]"):
        sweep(two_methods, store)
    assert store.all() == []


def test_requests_that_cannot_be_met(tiny, two_methods, tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(ValueError, match="jobs=0"):
        sweep(tiny, store, jobs=0)
    with pytest.raises(ValueError, match="on='moon'"):
        sweep(tiny, store, on="moon")
    unknown = parse_spec('[[problem]]\ndataset = "moon"\n[[method]]\nname = "dd"', "s")
    with pytest.raises(ValueError, match="does not have: dataset moon"):
        sweep(unknown, store)


def test_time_left_is_a_mean_per_method():
    assert time_left(["a"], {}, 1) is None
    assert time_left(["a", "b", "c"], {"a": 1.0, "b": 3.0}, 1) == 1 + 3 + 2
    assert time_left([], {"a": 1.0}, 2) == 0


def test_seconds_per_method_leave_out_failures(finished):
    seconds = seconds_per_method(finished.all())
    assert set(seconds) == {"color", "knn"} and seconds["knn"] < seconds["color"]
