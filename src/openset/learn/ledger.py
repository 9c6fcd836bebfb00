"""Records of a training run: history, table of heads, choices, and which members have stopped."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from openset.learn.objective import KEEP_LATEST, Judgement
from openset.learn.primal_dual import Terms

Array = NDArray[np.float64]

WINDOW = 6
"""Number of evaluation intervals that are compared: the later half with the earlier half."""


@dataclass(frozen=True)
class Choice:
    """The evaluation point and head that a member keeps."""

    step: int
    head: int
    key: float


class Ledger:
    """The records of one run; at an evaluation point their state is plain data for a checkpoint."""

    def __init__(self, members: int, constraints: int, tol: float) -> None:
        self._tol = tol
        self.step = 0
        self.interval = IntervalMeans(members, constraints)
        self.choices = [Choice(0, 0, -math.inf)] * members
        self.stopped = [False] * members
        self.history: list[dict[str, float]] = []
        self._watches = [Convergence(tol) for _ in range(members)]
        self._tables: list[Mapping[str, NDArray[Any]]] = []

    def restart_watch(self, member: int) -> None:
        """Forget a member's losses so far, so that they do not count as settled."""
        self._watches[member] = Convergence(self._tol)

    def record(
        self, member: int, judgement: Judgement, loss: float, violations: Array, multipliers: Array
    ) -> bool:
        """Record a judgement of the current step, and return whether it is the best so far."""
        choice = self.choices[member]
        best = choice.step == 0 or judgement.key > choice.key or judgement.key == KEEP_LATEST
        if best:
            self.choices[member] = Choice(self.step, judgement.head, judgement.key)
        self.history.append({"step": self.step, "member": member, "loss": float(loss), **judgement.metrics})
        if judgement.heads:
            self._tables.append(_head_rows(self.step, member, judgement.heads))
        self.stopped[member] = self._watches[member].update(loss, violations, multipliers)
        return best

    def stop_together(self, patience: int) -> None:
        """Stop all members if no member's choice has changed for ``patience`` steps."""
        latest = max(choice.step for choice in self.choices)
        self.stopped = [self.step - latest >= patience] * len(self.stopped)

    def heads(self) -> dict[str, NDArray[Any]]:
        """Return the table of all heads at all evaluation points so far."""
        tables = self._tables
        return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]} if tables else {}

    def state(self) -> dict[str, Any]:
        """Return all records; only at an evaluation point, because an unfinished interval is not stored."""
        return {
            "step": self.step,
            "choices": [[choice.step, choice.head, choice.key] for choice in self.choices],
            "stopped": self.stopped,
            "history": self.history,
            "watches": [watch.state() for watch in self._watches],
            "heads": self.heads(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state()`` returned."""
        self.step, self.stopped, self.history = state["step"], state["stopped"], state["history"]
        self.choices = [Choice(*choice) for choice in state["choices"]]
        for watch, seen in zip(self._watches, state["watches"], strict=True):
            watch.restore(seen)
        self._tables = [state["heads"]] if state["heads"] else []


class IntervalMeans:
    """Means of loss and violations since the last evaluation point."""

    def __init__(self, members: int, constraints: int) -> None:
        self._loss = torch.zeros(members, dtype=torch.float64)
        self._violation = torch.zeros(members, constraints, dtype=torch.float64)
        self._steps = 0

    def add(self, terms: Terms) -> None:
        """Add one step."""
        self._steps += 1
        self._loss += terms.objective.detach().cpu()
        violation = terms.proxy_violation if terms.violation is None else terms.violation
        if violation is not None:
            self._violation += violation.detach().cpu()

    def take(self) -> tuple[Array, Array]:
        """Return the means of loss (members,) and violations (members, constraints), and start a new interval."""
        means = (self._loss / self._steps).numpy(), (self._violation / self._steps).numpy()
        self._loss.zero_()
        self._violation.zero_()
        self._steps = 0
        return means


def _head_rows(step: int, member: int, heads: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    width = len(next(iter(heads.values())))
    return {
        "member": np.full(width, member),
        "step": np.full(width, step),
        "head": np.arange(width),
        **heads,
    }


class Convergence:
    """Detects when means over evaluation intervals no longer change.

    A member has converged when, between the two halves of the window, its loss changed by at most ``tol``
    relative to its size, every violation by at most ``tol``, and every multiplier by at most ``tol`` relative
    to its size. The multiplier of a head that cannot meet its constraint keeps growing, so such a head never
    converges.
    """

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._seen: deque[NDArray[np.float64]] = deque(maxlen=WINDOW)

    def state(self) -> NDArray[np.float64]:
        """Return the intervals so far, one row for each."""
        return np.array(self._seen)

    def restore(self, seen: NDArray[np.float64]) -> None:
        """Restore what ``state()`` returned."""
        self._seen.extend(seen)

    def update(self, loss: float, violations: NDArray[np.float64], multipliers: NDArray[np.float64]) -> bool:
        """Record one interval, and return whether the member has converged."""
        # relative for loss and multipliers, absolute for violations, which are rates
        self._seen.append(np.concatenate([[loss], violations, multipliers]))
        if self._tol <= 0 or len(self._seen) < WINDOW:
            return False
        values = np.array(self._seen)
        early, late = values[: WINDOW // 2].mean(axis=0), values[WINDOW // 2 :].mean(axis=0)
        size = np.maximum(1.0, np.abs(late))
        size[1 : 1 + len(violations)] = 1.0
        return bool((np.abs(late - early) <= self._tol * size).all())
