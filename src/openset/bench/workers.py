"""Carry out runs in several processes: workers on this machine, or tasks on a Ray cluster.

A local worker that dies loses one run, and nothing else. ``concurrent.futures`` and loky end the whole pool when
a worker is killed, and do not tell which run it had; here every worker has its own pipe, so the parent knows.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path

from openset._utils.downloads import are_downloads_allowed, downloads
from openset.bench.execute import execute_on_one_thread
from openset.bench.runs import Run, RunResult
from openset.cluster.ray_cluster import ray_cluster

ATTEMPTS = 2
"""A run whose worker died is tried once more; if that worker dies too, the run has failed."""


def local_results(
    runs: Sequence[Run], data_dir: Path | None, jobs: int, on_start: Callable[[Run], None]
) -> Iterator[tuple[Run, RunResult]]:
    """Carry out the runs in ``jobs`` processes; yield results as they are ready."""
    queue = deque((run, 1) for run in runs)
    workers = [_Worker(data_dir) for _ in range(min(jobs, len(queue)))]
    try:
        while queue or any(worker.task for worker in workers):
            for worker in workers:
                if worker.task is None and queue:
                    run, attempt = queue.popleft()
                    on_start(run)
                    worker.begin(run, attempt)
            ready = set(wait([worker.pipe for worker in workers if worker.task]))
            for i, worker in enumerate(workers):
                if worker.pipe not in ready or worker.task is None:
                    continue
                run, attempt = worker.task
                result = worker.finish()
                if result is not None:
                    yield run, result
                    continue
                death = f"the worker process died (exit code {worker.close()}), {attempt} times."
                workers[i] = _Worker(data_dir)
                if attempt < ATTEMPTS:
                    queue.appendleft((run, attempt + 1))
                else:
                    yield run, RunResult(failure=death)
    finally:
        for worker in workers:
            worker.close()


class _Worker:
    """A process, the parent's end of its pipe, and the run it works on."""

    def __init__(self, data_dir: Path | None) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit threads and locks
        self.pipe, theirs = context.Pipe()
        self.task: tuple[Run, int] | None = None
        self._process = context.Process(target=_work, args=(theirs, data_dir), daemon=True)
        self._process.start()
        theirs.close()  # so that the pipe ends when the worker dies

    def begin(self, run: Run, attempt: int) -> None:
        self.task = run, attempt
        with suppress(OSError):  # it died while idle: finish() notices
            self.pipe.send(run)

    def finish(self) -> RunResult | None:
        """Return the result of the current run, or None if the worker died."""
        self.task = None
        try:
            result: RunResult = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return result

    def close(self) -> int | None:
        """End the process, and with it the run that it works on; return its exit code."""
        self._process.terminate()
        self._process.join()
        self.pipe.close()
        return self._process.exitcode


def _work(pipe: Connection, data_dir: Path | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    while True:
        try:
            run = pipe.recv()
        except EOFError:
            return
        pipe.send(execute_on_one_thread(run, data_dir))


def _exit_with_parent() -> None:
    """End this worker when its parent was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _execute_on_node(run: Run, data_dir: Path | None, allow_download: bool) -> RunResult:
    """Carry out a run where the environment of the parent, which may allow downloads, is not inherited."""
    with downloads(allow_download):
        return execute_on_one_thread(run, data_dir)


def ray_results(
    runs: Sequence[Run], data_dir: Path | None, jobs: int, on_start: Callable[[Run], None]
) -> Iterator[tuple[Run, RunResult]]:
    """Carry out the runs as Ray tasks with one CPU each; yield results as they are ready.

    Uses the cluster at ``RAY_ADDRESS``, or starts a local one with ``jobs`` CPUs. Every node needs openset, and
    the data folder at the same path. Needs the extra ``ray``.
    """
    with ray_cluster(jobs) as ray:
        task = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(_execute_on_node)
        pending = {task.remote(run, data_dir, are_downloads_allowed()): run for run in runs}
        in_order = iter(runs)
        for run in islice(in_order, jobs):
            on_start(run)
        while pending:
            (ready, *_), _ = ray.wait(list(pending), num_returns=1)
            run = pending.pop(ready)
            try:
                result = ray.get(ready)
            except ray.exceptions.RayError as error:
                result = RunResult(failure=f"Ray lost the run: {error}")
            yield run, result
            for following in islice(in_order, 1):  # Ray does not tell which task it starts; they start in order
                on_start(following)
