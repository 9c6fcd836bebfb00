"""Training group by group, on other machines: every group ends with the weights that it has among the others.

Groups of members share nothing in training but the step at which all stop: the first evaluation point at which no
group has had a better choice for a while. So each group trains until it would stop alone. A group that stopped
earlier than the last one is then trained further, to where that one stopped or beyond, until all stop together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from openset.learn.batches import ScaledRows
from openset.learn.objective import Objective
from openset.learn.train import Among, MemberPlan, Progress, Settings, Trained, _Run, train


@dataclass(frozen=True, eq=False)
class GroupData:
    """What the training of all groups needs, and what never changes in it."""

    objectives: Sequence[tuple[int, Objective]]
    plans: Sequence[MemberPlan]
    source: ScaledRows
    y: NDArray[np.intp]
    target: ScaledRows | None
    settings: Settings


@dataclass(frozen=True, eq=False)
class GroupState:
    """A group that was trained so far."""

    step: int
    max_steps: int
    has_stopped: bool
    trained: Trained
    state: dict[str, Any]


@dataclass(frozen=True, eq=False)
class GroupTask:
    """Train a group, from a state or from the start, until it stops at a step from ``earliest`` on."""

    group: int
    earliest: int
    before: GroupState | None = None


class GroupRunner(Protocol):
    """Carries out tasks, anywhere, and returns their results in order."""

    def __call__(self, data: GroupData, tasks: Sequence[GroupTask]) -> list[GroupState]:
        """Carry out :func:`advance` for each task."""


_RUNNER: ContextVar[GroupRunner | None] = ContextVar("runner of groups", default=None)


@contextmanager
def groups_trained_by(runner: GroupRunner) -> Iterator[None]:
    """Let fits in this context train their groups by ``runner``, if they have several."""
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


def train_anywhere(
    objective: Objective,
    plans: Sequence[MemberPlan],
    source: ScaledRows,
    y: NDArray[np.intp],
    target: ScaledRows | None,
    settings: Settings,
    **options: Any,
) -> Trained:
    """:func:`~openset.learn.train.train`, by the runner of :func:`groups_trained_by` if there is one."""
    runner, groups = _RUNNER.get(), objective.by_group()
    if runner is None or len(groups) < 2 or options.get("backbone") is not None:
        return train(objective, plans, source, y, target, settings, **options)
    if options.get("checkpoint") is not None:
        raise ValueError(
            "a checkpoint is for a fit on one machine: fit without checkpoint where groups are apart."
        )
    data = GroupData(groups, plans, source, y, target, settings)
    return train_by_group(runner, data, options.get("on_progress"))


def train_by_group(
    runner: GroupRunner, data: GroupData, on_progress: Callable[[Progress], None] | None = None
) -> Trained:
    """Train every group, until all stop at the same step, and return them together."""
    states: dict[int, GroupState] = {}
    earliest = 0
    while True:
        behind = [i for i in range(len(data.objectives)) if i not in states or states[i].step < earliest]
        if not behind:
            break
        tasks = [GroupTask(i, earliest, states.get(i)) for i in behind]
        states.update(zip(behind, runner(data, tasks), strict=True))
        earliest = max(state.step for state in states.values())
        if on_progress is not None:
            done = min(states.values(), key=lambda state: state.step)
            on_progress(Progress(done.step, done.max_steps, done.trained.history[-1]))
    return _joined([states[i] for i in range(len(data.objectives))])


def advance(data: GroupData, task: GroupTask) -> GroupState:
    """Carry out a task: train one group further."""
    first = sum(count for count, _ in data.objectives[: task.group])
    count, objective = data.objectives[task.group]
    plans = data.plans[first : first + count]
    among = Among(data.plans, first)
    run = _Run(objective, plans, data.source, data.y, data.target, data.settings, None, among)
    if task.before is not None:
        run.restore(_writable(task.before.state))
    ledger = run.ledger
    while not run.is_over() or ledger.step < min(task.earliest, run.max_steps):
        ledger.stopped = [False] * count  # it goes on with the others
        run.advance()
    return GroupState(ledger.step, run.max_steps, all(ledger.stopped), run.trained(), run.state())


def _joined(states: Sequence[GroupState]) -> Trained:
    """The result of all groups, as if they had been trained together."""
    parts = [state.trained for state in states]
    counts = [len(part.choices) for part in parts]
    firsts = np.cumsum([0, *counts[:-1]]).tolist()
    history = [
        {**entry, "member": entry["member"] + first}
        for first, part in zip(firsts, parts, strict=True)
        for entry in part.history
    ]
    heads = {name: np.concatenate([part.heads[name] for part in parts]) for name in parts[0].heads}
    if heads:
        heads["member"] = heads["member"] + np.repeat(firsts, [len(part.heads["member"]) for part in parts])
    order = np.lexsort((heads["member"], heads["step"])) if heads else np.empty(0, np.intp)
    return replace(
        parts[0],
        architecture=replace(parts[0].architecture, members=sum(counts)),
        weights={name: np.concatenate([part.weights[name] for part in parts]) for name in parts[0].weights},
        choices=[choice for part in parts for choice in part.choices],
        history=sorted(history, key=lambda entry: (entry["step"], entry["member"])),
        heads={name: values[order] for name, values in heads.items()},
        stop_reason="converged" if all(state.has_stopped for state in states) else "max_steps",
    )


def _writable(value: Any) -> Any:
    """Plain data with arrays copied: those from another process may be read-only."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {name: _writable(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_writable(item) for item in value)
    return value
