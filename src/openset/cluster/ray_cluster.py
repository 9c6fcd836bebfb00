"""A Ray cluster: that at ``RAY_ADDRESS``, or a local one for the time of a call."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openset._utils.extras import require

_LOCAL_OBJECT_STORE = 100 * 2**20
"""Bytes: what tasks return is small, so a local cluster needs little shared memory."""


@contextmanager
def ray_cluster(cpus: int | None = None, *, object_store: int | None = _LOCAL_OBJECT_STORE) -> Iterator[Any]:
    """Yield the module ``ray``, connected; a local cluster has ``cpus`` CPUs, by default those of this machine.

    ``object_store`` is its shared memory in bytes; None lets Ray choose, for tasks that need the rows of a fit.
    Every node needs openset, and the files at the same paths or URLs. Needs the extra ``ray``.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # the future default of Ray, which warns on every start without it
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray = require("ray", "--on ray", "ray")
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
    else:
        # Ray's default niceness is 15: on a busy machine its workers would hardly run
        os.environ.setdefault("RAY_worker_niceness", "0")
        ray.init(
            num_cpus=cpus,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=object_store,
        )
    try:
        yield ray
    finally:
        ray.shutdown()


def cluster_cpus(ray: Any) -> int:
    """How many CPUs the cluster has."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))
