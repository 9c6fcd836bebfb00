"""Worker processes on this machine. A worker that dies takes one run with it, and nothing else.

``concurrent.futures`` and loky give up the whole pool when a worker is killed, and cannot say which run it had;
here every worker has a pipe of its own, so the parent knows.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path

from openset.bench.runs import Run, RunResult, execute_capped

ATTEMPTS = 2
"""A run whose worker died is tried once more: the second death is taken for the run's own doing."""


def local_results(
    runs: Sequence[Run], data_dir: Path | None, jobs: int, on_start: Callable[[Run], None]
) -> Iterator[tuple[Run, RunResult]]:
    """Carry out the runs in ``jobs`` processes; results come as they are ready."""
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
    """A process, the parent's end of its pipe, and the run it has."""

    def __init__(self, data_dir: Path | None) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit threads and locks
        self.pipe, theirs = context.Pipe()
        self.task: tuple[Run, int] | None = None
        self._process = context.Process(target=_work, args=(theirs, data_dir), daemon=True)
        self._process.start()
        theirs.close()  # so that the worker's death shows as the end of the stream

    def begin(self, run: Run, attempt: int) -> None:
        self.task = run, attempt
        with suppress(OSError):  # it died while idle: finish() finds out
            self.pipe.send(run)

    def finish(self) -> RunResult | None:
        """The result of the run at hand, None if the worker died over it."""
        self.task = None
        try:
            result: RunResult = self.pipe.recv()
        except (EOFError, OSError):
            return None
        return result

    def close(self) -> int | None:
        """End the process; a run that it still has is lost, by intent."""
        self._process.terminate()
        self._process.join()
        self.pipe.close()
        return self._process.exitcode


def _work(pipe: Connection, data_dir: Path | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    while True:
        try:
            run = pipe.recv()
        except EOFError:
            return
        pipe.send(execute_capped(run, data_dir))


def _exit_with_parent() -> None:
    """A killed parent must not leave workers that compute for nobody."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
