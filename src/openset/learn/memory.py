"""One training for all that share it: several scores are read off one and the same classifier."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openset.learn.train import Trained


class TrainingMemory:
    """Holds the latest training; within :meth:`used`, one that is the same in every respect is not repeated.

    ``spared`` says what the fits within have been spared, by the clock and of the processor, so that a
    comparison of methods can still say what each of them costs.
    """

    def __init__(self) -> None:
        self.spared = (0.0, 0.0)
        self._key: Mapping[str, str] = {}
        self._trained: Trained | None = None
        self._cost = (0.0, 0.0)

    @contextmanager
    def used(self) -> Iterator[TrainingMemory]:
        """Remember in this context, and count anew what is spared."""
        self.spared = (0.0, 0.0)
        token = _MEMORY.set(self)
        try:
            yield self
        finally:
            _MEMORY.reset(token)

    def trained_once(self, key: Mapping[str, str], train: Callable[[], Trained]) -> Trained:
        """What ``train`` gives, or gave for the same key if that was the latest."""
        if self._trained is None or self._key != key:
            started, cpu = time.perf_counter(), time.process_time()
            self._trained, self._key = train(), key
            self._cost = (time.perf_counter() - started, time.process_time() - cpu)
        else:
            self.spared = (self.spared[0] + self._cost[0], self.spared[1] + self._cost[1])
        return self._trained


_MEMORY: ContextVar[TrainingMemory | None] = ContextVar("training memory", default=None)


def current_memory() -> TrainingMemory | None:
    """The memory that is in use here, if any."""
    return _MEMORY.get()
