from __future__ import annotations

import pytest

from openset.learn.memory import TrainingMemory, current_memory


@pytest.fixture
def clock(monkeypatch):
    """Both clocks, which a test moves by hand."""
    now = {"wall": 0.0, "cpu": 0.0}
    monkeypatch.setattr("openset.learn.memory.time.perf_counter", lambda: now["wall"])
    monkeypatch.setattr("openset.learn.memory.time.process_time", lambda: now["cpu"])
    return now


def trainer(clock, calls, result):
    def train():
        calls.append(result)
        clock["wall"] += 3.0
        clock["cpu"] += 2.0
        return result

    return train


def test_a_training_is_done_once_for_one_key_and_its_cost_is_counted(clock):
    memory, calls = TrainingMemory(), []
    with memory.used():
        for _ in range(3):
            assert memory.trained_once({"seed": "a"}, trainer(clock, calls, "one")) == "one"
    assert calls == ["one"] and memory.spared == (6.0, 4.0)


def test_only_the_latest_training_is_held(clock):
    memory, calls = TrainingMemory(), []
    with memory.used():
        for key, result in (("a", "one"), ("b", "two"), ("b", "no"), ("a", "three")):
            memory.trained_once({"seed": key}, trainer(clock, calls, result))
    assert calls == ["one", "two", "three"] and memory.spared == (3.0, 2.0)


def test_what_is_spared_is_counted_anew_in_every_use_and_the_training_is_kept(clock):
    memory, calls = TrainingMemory(), []
    for expected in ((0.0, 0.0), (3.0, 2.0), (3.0, 2.0)):
        with memory.used() as used:
            memory.trained_once({"seed": "a"}, trainer(clock, calls, "one"))
        assert used is memory and memory.spared == expected
    assert calls == ["one"]


def test_a_memory_is_in_use_within_its_block_only():
    outer, inner = TrainingMemory(), TrainingMemory()
    assert current_memory() is None
    with outer.used():
        with inner.used():
            assert current_memory() is inner
        assert current_memory() is outer
        with pytest.raises(RuntimeError, match="stop"), inner.used():
            raise RuntimeError("stop")
        assert current_memory() is outer
    assert current_memory() is None


def test_a_training_that_fails_is_not_remembered(clock):
    memory, calls = TrainingMemory(), []

    def fail():
        raise ValueError("bad rows")

    with memory.used():
        with pytest.raises(ValueError, match="bad rows"):
            memory.trained_once({"seed": "a"}, fail)
        assert memory.trained_once({"seed": "a"}, trainer(clock, calls, "one")) == "one"
    assert memory.spared == (0.0, 0.0)
