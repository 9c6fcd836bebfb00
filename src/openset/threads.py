"""Work done ahead of its use, and the cores left to it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made in a thread while the caller works on the one before.

    >>> list(one_ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    end = object()
    with ThreadPoolExecutor(1) as thread:
        upcoming = thread.submit(next, items, end)
        while (item := upcoming.result()) is not end:
            upcoming = thread.submit(next, items, end)
            yield item  # type: ignore[misc]


@contextmanager
def a_core_to_spare() -> Iterator[None]:
    """Torch computes on one thread fewer, in this thread and those started here, so that others get a core.

    Torch's threads wait for one another in a busy loop. With as many of them as cores, a thread that reads
    beside them makes every product wait for it.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before - 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)
