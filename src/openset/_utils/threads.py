"""Work done ahead in threads, and how many threads torch uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items; a thread produces the next item while the caller works on the current one.

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
    """Yield ``function(item)`` for every item, in order; ``workers`` threads compute ahead of the caller.

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
    """Let torch use one thread for each computation; yield how many threads it used before.

    Several threads with a batch each are faster than all of them on one product: torch's own threads wait for
    each other in a busy loop, so one thread that reads data at the same time delays every product.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)
