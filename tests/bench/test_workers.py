"""Workers that die, and a Ray cluster: the numbers stay the same."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from openset._utils.downloads import VARIABLE, are_downloads_allowed, downloads
from openset.bench.runs import RunResult, expand
from openset.bench.store import Store
from openset.bench.workers import local_results, ray_results
from openset.errors import MissingExtraError


def kill_workers():
    for child in multiprocessing.active_children():
        os.kill(child.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_once_is_tried_again(tiny, finished):
    runs = [planned.run for planned in expand(tiny) if planned.run.method == "knn"][:2]
    started = []

    def on_start(run):
        started.append(run)
        if len(started) == 1:
            kill_workers()

    found = dict(local_results(runs, None, 1, on_start))
    assert started == [runs[0], runs[0], runs[1]]
    stored = finished.get(run.key for run in runs)
    for run in runs:
        assert found[run].metrics == stored[run.key].result.metrics


@pytest.mark.slow
def test_a_run_that_kills_its_worker_twice_is_a_failure_and_the_others_go_on(tiny):
    runs = [planned.run for planned in expand(tiny) if planned.run.method == "knn"][:2]
    found = dict(local_results(runs, None, 1, lambda run: kill_workers() if run == runs[0] else None))
    assert "worker process died (exit code -9), 2 times" in found[runs[0]].failure
    assert found[runs[1]].failure == "" and found[runs[1]].metrics["auroc"] > 0
    assert multiprocessing.active_children() == []


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs ray: pip install 'openset[ray]'")
def test_a_local_ray_cluster_gives_the_same_numbers(tiny_path, finished, tmp_path, numbers):
    path = tmp_path / "ray.sqlite"
    command = [
        sys.executable,
        "-m",
        "openset.cli",
        "bench",
        "run",
        str(tiny_path),
        "--on",
        "ray",
        "--store",
        str(path),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert numbers(Store(path)) == numbers(finished)


@pytest.mark.slow
@pytest.mark.parametrize("allowed", [True, False])
def test_workers_may_download_where_the_command_may(tiny, monkeypatch, allowed):
    monkeypatch.setattr("openset.bench.workers._work", _tell_downloads)
    with downloads(allowed):
        ((_, result),) = local_results([expand(tiny)[0].run], None, 1, lambda run: None)
    assert result.failure == str(allowed)


def _tell_downloads(pipe, data_dir):
    """A worker that answers whether it may download."""
    pipe.recv()
    pipe.send(RunResult(failure=str(are_downloads_allowed())))


class OneTaskRay:
    """A cluster of one node, which does not have the environment of the parent."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    @staticmethod
    def remote(**options):
        return lambda task: SimpleNamespace(remote=lambda *given: partial(task, *given))

    @staticmethod
    def wait(tasks, num_returns):
        return tasks, []

    @staticmethod
    def get(task):
        before = os.environ.pop(VARIABLE, None)
        try:
            return task()
        finally:
            if before is not None:
                os.environ[VARIABLE] = before


@pytest.mark.parametrize("allowed", [True, False])
def test_tasks_on_ray_may_download_where_the_command_may(tiny, monkeypatch, allowed):
    monkeypatch.setattr("openset.bench.workers.ray_cluster", lambda jobs: nullcontext(OneTaskRay))
    monkeypatch.setattr(
        "openset.bench.workers.execute_on_one_thread", lambda run, data_dir: are_downloads_allowed()
    )
    with downloads(allowed):
        ((_, result),) = ray_results([expand(tiny)[0].run], None, 1, lambda run: None)
    assert result is allowed


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"openset\[ray\]"):
        next(ray_results([], None, 1, lambda run: None))


def test_no_runs_need_no_workers():
    assert list(local_results([], None, 4, lambda run: None)) == []
    assert multiprocessing.active_children() == []
