"""One training for several fits: methods that score the same classifier need not train it again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openset.learn.train import Trained


class TrainingMemory:
    """Stores the latest training; within :meth:`used`, an identical training is not repeated.

    ``spared`` is the wall time and the processor time that fits have saved, so that a comparison of methods can
    still report the cost of each.
    """

    def __init__(self) -> None:
        self.spared = (0.0, 0.0)
        self._key: Mapping[str, str] = {}
        self._trained: Trained | None = None
        self._cost = (0.0, 0.0)

    @contextmanager
    def used(self) -> Iterator[TrainingMemory]:
        """Use this memory within the context, and reset ``spared``."""
        self.spared = (0.0, 0.0)
        token = _MEMORY.set(self)
        try:
            yield self
        finally:
            _MEMORY.reset(token)

    def trained_once(self, key: Mapping[str, str], train: Callable[[], Trained]) -> Trained:
        """Return the result of ``train()``, or the stored one if it has the same key."""
        if self._trained is None or self._key != key:
            started, cpu = time.perf_counter(), time.process_time()
            self._trained, self._key = train(), key
            self._cost = (time.perf_counter() - started, time.process_time() - cpu)
        else:
            self.spared = (self.spared[0] + self._cost[0], self.spared[1] + self._cost[1])
        return self._trained


_MEMORY: ContextVar[TrainingMemory | None] = ContextVar("training memory", default=None)


def current_memory() -> TrainingMemory | None:
    """Return the memory in use, or None."""
    return _MEMORY.get()
