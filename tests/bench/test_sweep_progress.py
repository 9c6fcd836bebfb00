from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from bench.made_up import fill
from openset.bench.runs import RunResult, expand
from openset.bench.sweep_progress import seconds_per_method, sweep_progress, time_left


def test_a_narrow_terminal_shows_how_far_a_sweep_is(tiny, monkeypatch):
    file = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=file, width=60, force_terminal=True))
    todo = [replace(planned.run, dataset="a-dataset-with-a-very-long-name") for planned in expand(tiny)]
    with sweep_progress(todo, 2, {"color": 9000.0, "color_paper": 9000.0, "knn": 1.0}, enabled=True) as progress:
        progress.started(todo[0])
        progress.finished(todo[0], RunResult(failure="no"))
        progress.started(todo[1])
    shown = " ".join(file.getvalue().split())
    assert "1/12 runs, about 8:4" in shown and "h left, 1 failed" in shown and "0:00:00" in shown


def test_a_log_gets_a_line_a_minute_and_every_failure(tiny, capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("openset._utils.progress.time.monotonic", lambda: now[0])
    todo = [planned.run for planned in expand(tiny)][:4]
    with sweep_progress(todo, 1, {}, enabled=True) as progress:
        for run, passing, failure in zip(todo, (10, 10, 60, 10), ("", "no", "", ""), strict=True):
            now[0] += passing
            progress.started(run)
            progress.finished(run, RunResult(seconds={"fit": 10.0}, failure=failure))
    told = capsys.readouterr().err.splitlines()
    assert told == [
        f"2/4 runs, about 0:20 left, 1 failed; {todo[1]}: failed",
        f"3/4 runs, about 0:10 left, 1 failed; {todo[2]}: 10 s",
        f"4/4 runs, about 0:00 left, 1 failed; {todo[3]}: 10 s",
    ]


def test_time_left_is_a_mean_per_method():
    assert time_left(["a"], {}, 1) is None
    assert time_left(["a", "b", "c"], {"a": 1.0, "b": 3.0}, 1) == 1 + 3 + 2
    assert time_left([], {"a": 1.0}, 2) == 0


def test_seconds_per_method_are_means_without_failures(tmp_path):
    results = fill(tmp_path / "runs.sqlite", failing={("knn", 0)})
    stored = [stored for _, stored in results.plan if stored is not None]
    assert seconds_per_method(stored) == pytest.approx({"color_paper": 2.9, "dd": 2.9, "knn": 2.9})
    slow = [replace(run, result=replace(run.result, seconds={"fit": 5.0, "cpu": 99.0})) for run in stored[:1]]
    assert seconds_per_method(stored[:1] + slow) == pytest.approx({"color_paper": (2.9 + 5) / 2})


def test_nothing_is_shown_where_it_is_not_asked_for(tiny, capsys):
    run = expand(tiny)[0].run
    with sweep_progress([run], 1, {}, enabled=False) as progress:
        progress.started(run)
        progress.finished(run, RunResult(failure="no"))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
