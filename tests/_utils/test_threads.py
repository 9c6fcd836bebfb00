from __future__ import annotations

import threading
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from openset._utils.threads import mapped_ahead, one_ahead, torch_on_one_thread


def failing_after(n):
    yield from range(n)
    raise RuntimeError("no more")


def test_the_next_item_is_produced_while_the_caller_works():
    produced = []

    def items():
        for number in range(4):
            produced.append(number)
            yield number

    ahead = one_ahead(items())
    assert next(ahead) == 0
    for _ in range(200):  # the thread needs a moment
        if produced == [0, 1]:
            break
        time.sleep(0.01)
    assert produced == [0, 1], "one item ahead, and not more"
    assert list(ahead) == [1, 2, 3]


def test_an_error_reaches_the_caller_after_the_items_before_it():
    ahead = one_ahead(failing_after(2))
    assert [next(ahead), next(ahead)] == [0, 1]
    with pytest.raises(RuntimeError, match="no more"):
        next(ahead)
    with pytest.raises(ZeroDivisionError):
        list(mapped_ahead(lambda x: 1 / x, [1, 0], workers=2))


@given(st.lists(st.integers()), st.integers(1, 4))
def test_results_keep_their_order(items, workers):
    assert list(mapped_ahead(lambda x: x * 2, items, workers)) == [x * 2 for x in items]
    assert list(one_ahead(iter(items))) == items


def test_only_some_results_wait_for_the_caller():
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = mapped_ahead(lambda x: x, items(), workers=3)
    assert next(results) == 0
    assert len(taken) == 4, "one for each worker, and the one that is returned"
    results.close()


def test_torch_uses_one_thread_inside_the_block():
    usual, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)

    def work():
        seen.append(torch.get_num_threads())

    def fail():
        with torch_on_one_thread():
            raise RuntimeError

    try:
        with torch_on_one_thread() as before:
            assert before == 2 and torch.get_num_threads() == 1
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        assert seen == [1] and torch.get_num_threads() == 2
        with pytest.raises(RuntimeError):
            fail()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(usual)
