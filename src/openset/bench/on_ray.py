"""The same runs on a Ray cluster. Needs the extra ``ray``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from openset.bench.runs import Run, RunResult, execute_capped
from openset.bench.workers import ATTEMPTS
from openset.errors import MissingExtraError

_LOCAL_OBJECT_STORE = 100 * 2**20
"""Bytes: runs pass a few numbers, so a local cluster needs next to no shared memory."""


def ray_results(
    runs: Sequence[Run], data_dir: Path | None, jobs: int, on_start: Callable[[Run], None]
) -> Iterator[tuple[Run, RunResult]]:
    """Carry out the runs as Ray tasks of one CPU each; results come as they are ready.

    The cluster is the one that ``RAY_ADDRESS`` names; without it a local one with ``jobs`` CPUs is started. Every
    node needs openset and sees the data folder under the same path.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's coming default: without it Ray warns on every start
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise MissingExtraError("--on ray", "ray") from None
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False)
    else:
        # Ray gives its workers a niceness of 15: on a busy machine they would wait for everybody else
        os.environ.setdefault("RAY_worker_niceness", "0")
        ray.init(
            num_cpus=jobs,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=_LOCAL_OBJECT_STORE,
        )
    try:
        task = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(execute_capped)
        pending = {task.remote(run, data_dir): run for run in runs}
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
            for following in islice(in_order, 1):  # Ray does not tell what it starts: it goes by order
                on_start(following)
    finally:
        ray.shutdown()
