from __future__ import annotations

import pytest

from openset.watch.policy import OLDEST, POLICIES, model_is_due


@pytest.mark.parametrize("called", [0, 10, 400])
def test_each_and_never_look_at_nothing(called):
    assert model_is_due("each", called, 1000, 0.01, 1) and not model_is_due("never", called, 1000, 0.01, 99)


def test_auto_waits_for_more_than_chance_or_for_age():
    assert not model_is_due("auto", 12, 1000, 0.01, 1)
    assert model_is_due("auto", 20, 1000, 0.01, 1)
    assert not model_is_due("auto", 0, 1000, 0.01, OLDEST - 1) and model_is_due("auto", 0, 1000, 0.01, OLDEST)
    assert not model_is_due("auto", 100, 1000, 0.1, 1), "as many as at its own fit"
    assert POLICIES[0] == "auto"
