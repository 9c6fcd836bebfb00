"""Work done ahead of its use, and the cores left to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

S = TypeVar("S")
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


def mapped_ahead(function: Callable[[S], T], items: Iterable[S], workers: int) -> Iterator[T]:
    """``function`` of every item, in order, computed by so many threads while the caller works on one before.

    >>> list(mapped_ahead(abs, [-1, 2, -3], workers=2))
    [1, 2, 3]
    """
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(workers) as threads:
        for item in items:
            waiting.append(threads.submit(function, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def torch_on_one_thread() -> Iterator[int]:
    """Torch computes on one thread in this thread and those started here; gives how many it had.

    So many threads with a batch each are quicker than all of them at one product: torch's own threads wait for
    one another in a busy loop, and a thread that reads beside them makes every product wait for it.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)
