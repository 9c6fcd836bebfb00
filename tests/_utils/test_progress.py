from __future__ import annotations

import pytest

from openset._utils.progress import LogClock, progress_bar


@pytest.mark.parametrize("started_at", [0, 40])
def test_the_time_left_is_estimated_also_from_slow_steps(monkeypatch, capsys, started_at):
    now = [0.0]
    monkeypatch.setattr("rich.console.monotonic", lambda: now[0])
    with progress_bar("CoLOR") as update:
        update(started_at, 100, "")  # a fit that goes on has not done these just now
        for step in range(1, 4):
            now[0] += 100.0
            update(started_at + 5 * step, 100, "loss 1")
    left = (85 - started_at) * 20
    assert f"{left // 3600}:{left % 3600 // 60:02}:{left % 60:02}" in capsys.readouterr().err


def test_a_disabled_bar_is_silent(capsys):
    with progress_bar("CoLOR", enabled=False) as update:
        update(1, 2, "loss 1")
    assert capsys.readouterr().err == ""


def test_a_log_gets_a_line_a_minute_and_the_last_one(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("openset._utils.progress.time.monotonic", lambda: now[0])
    with progress_bar("encoding") as update:
        for done in range(10, 60, 10):
            now[0] += 25.0
            update(done, 60, "MiniLM")
    told = capsys.readouterr().err.splitlines()
    assert [line.split()[-3] for line in told] == ["30/60", "50/60"], told
    assert all(line.startswith("encoding") and line.rstrip().endswith("MiniLM") for line in told)


def test_a_line_is_due_after_a_minute_or_when_asked_for(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("openset._utils.progress.time.monotonic", lambda: now[0])
    clock = LogClock()
    assert not clock.is_due()
    now[0] += 59
    assert not clock.is_due()
    now[0] += 1
    assert clock.is_due() and not clock.is_due()
    now[0] += 30
    assert clock.is_due(anyway=True)
    now[0] += 59
    assert not clock.is_due()
