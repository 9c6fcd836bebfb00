"""``openset fit --on ray``: the groups of a fit as tasks of a Ray cluster, with the weights of one machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from openset.cluster.ray_cluster import cluster_cpus, ray_cluster
from openset.learn.groups import GroupData, GroupState, GroupTask, advance, groups_trained_by

_RETRIES = 2
"""How often a task whose worker died is carried out again; it starts where the task started."""


class RayGroups:
    """Carries out the training of groups on Ray; the cluster is started when there is something to do.

    A task takes as many threads as torch has here, and as many CPUs: what is computed must not depend on where.
    ``tasks`` counts those that were carried out.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._ray: Any = None
        self._data: tuple[GroupData, Any] | None = None
        self.tasks = 0

    def __call__(self, data: GroupData, tasks: Sequence[GroupTask]) -> list[GroupState]:
        """Carry out the tasks, as many at the same time as the cluster has room for."""
        import torch

        if self._ray is None:
            self._ray = self._stack.enter_context(ray_cluster(object_store=None))
        if self._data is None or self._data[0] is not data:
            self._data = data, self._ray.put(data)  # rows travel once
        threads = min(torch.get_num_threads(), cluster_cpus(self._ray))
        remote = self._ray.remote(num_cpus=threads, max_retries=_RETRIES)(_advance_on)
        found: list[GroupState] = self._ray.get([remote.remote(self._data[1], task, threads) for task in tasks])
        self.tasks += len(tasks)
        return found


def _advance_on(data: GroupData, task: GroupTask, threads: int) -> GroupState:
    """:func:`~openset.learn.groups.advance` in a worker, with this many threads."""
    import torch

    torch.set_num_threads(threads)
    return advance(data, task)


@contextmanager
def groups_on_ray() -> Iterator[RayGroups]:
    """Let fits in this context train their groups on Ray: on the cluster at ``RAY_ADDRESS``, or a local one."""
    with ExitStack() as stack:
        runner = RayGroups(stack)
        with groups_trained_by(runner):
            yield runner
