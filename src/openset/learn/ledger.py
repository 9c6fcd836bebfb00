"""What a training run has seen and chosen so far: history, head table, choices, and who has stopped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from openset.learn.convergence import Convergence
from openset.learn.judgement import KEEP_LATEST, Choice, Judgement
from openset.learn.primal_dual import Terms

Array = NDArray[np.float64]


class Ledger:
    """The books of one run; at an evaluation point their state is plain data that a checkpoint can hold."""

    def __init__(self, members: int, constraints: int, tol: float) -> None:
        self._tol = tol
        self.step = 0
        self.interval = IntervalMeans(members, constraints)
        self.choices = [Choice(0, 0, -math.inf)] * members
        self.stopped = [False] * members
        self.history: list[dict[str, float]] = []
        self._watches = [Convergence(tol) for _ in range(members)]
        self._tables: list[Mapping[str, NDArray[Any]]] = []

    def start_watch_anew(self, member: int) -> None:
        """Nothing that a member's loss was so far counts as settled."""
        self._watches[member] = Convergence(self._tol)

    def record(self, member: int, judgement: Judgement, loss: float, defects: Array, multipliers: Array) -> bool:
        """Enter a judgement of the present step, and say whether it is the best so far."""
        choice = self.choices[member]
        best = choice.step == 0 or judgement.key > choice.key or judgement.key == KEEP_LATEST
        if best:
            self.choices[member] = Choice(self.step, judgement.head, judgement.key)
        self.history.append({"step": self.step, "member": member, "loss": float(loss), **judgement.metrics})
        if judgement.heads:
            self._tables.append(_head_rows(self.step, member, judgement.heads))
        self.stopped[member] = self._watches[member].update(loss, defects, multipliers)
        return best

    def stop_together(self, patience: int) -> None:
        """Members that are judged together go on together, until no choice has changed for that many steps."""
        latest = max(choice.step for choice in self.choices)
        self.stopped = [self.step - latest >= patience] * len(self.stopped)

    def heads(self) -> dict[str, NDArray[Any]]:
        """The table of all heads at all evaluation points so far."""
        tables = self._tables
        return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]} if tables else {}

    def state(self) -> dict[str, Any]:
        """Everything entered so far; only at an evaluation point, where no interval is under way."""
        return {
            "step": self.step,
            "choices": [[choice.step, choice.head, choice.key] for choice in self.choices],
            "stopped": self.stopped,
            "history": self.history,
            "watches": [watch.state() for watch in self._watches],
            "heads": self.heads(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.step, self.stopped, self.history = state["step"], state["stopped"], state["history"]
        self.choices = [Choice(*choice) for choice in state["choices"]]
        for watch, seen in zip(self._watches, state["watches"], strict=True):
            watch.restore(seen)
        self._tables = [state["heads"]] if state["heads"] else []


class IntervalMeans:
    """Means of loss and defects since the last evaluation point."""

    def __init__(self, members: int, constraints: int) -> None:
        self._loss = torch.zeros(members, dtype=torch.float64)
        self._defect = torch.zeros(members, constraints, dtype=torch.float64)
        self._steps = 0

    def add(self, terms: Terms) -> None:
        """Count one step."""
        self._steps += 1
        self._loss += terms.objective.detach().cpu()
        defect = terms.proxy_defect if terms.defect is None else terms.defect
        if defect is not None:
            self._defect += defect.detach().cpu()

    def take(self) -> tuple[Array, Array]:
        """The means of loss (members,) and defects (members, constraints); a new interval begins."""
        means = (self._loss / self._steps).numpy(), (self._defect / self._steps).numpy()
        self._loss.zero_()
        self._defect.zero_()
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
