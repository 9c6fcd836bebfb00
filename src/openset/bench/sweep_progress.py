"""Progress of a sweep: bars in a terminal, at most one line per minute in a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from openset._utils.progress import LogClock
from openset.bench.runs import Run, RunResult
from openset.bench.store import StoredRun


class SweepProgress(Protocol):
    """Receives the start and the end of runs."""

    def started(self, run: Run) -> None:
        """A run started; it starts again if its worker died."""

    def finished(self, run: Run, result: RunResult) -> None:
        """A run finished or failed."""


@contextmanager
def sweep_progress(
    todo: Sequence[Run], jobs: int, seconds: Mapping[str, float], *, enabled: bool
) -> Iterator[SweepProgress]:
    """Show the progress of these runs on stderr; ``seconds`` has the mean time of a run by method so far."""
    if not enabled:
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    console = Console(stderr=True)
    tally = _Tally(todo, jobs, seconds)
    if not console.is_terminal:
        yield _Lines(console, tally)
        return
    # text comes last: a narrow terminal cuts off only the last column
    columns = (
        BarColumn(bar_width=12),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
    )
    with Progress(*columns, console=console, expand=True) as bar:
        yield _Bars(bar, tally)


def seconds_per_method(stored: Iterable[StoredRun]) -> dict[str, float]:
    """Mean wall-clock seconds of a run, by method."""
    times: dict[str, list[float]] = {}
    for item in stored:
        if not item.result.failure:
            times.setdefault(item.run.method, []).append(item.result.elapsed)
    return {method: sum(values) / len(values) for method, values in times.items()}


def time_left(waiting: Sequence[str], seconds: Mapping[str, float], jobs: int) -> float | None:
    """Estimated seconds for runs of these methods; a method not seen yet counts as the mean of the others.

    >>> time_left(["a", "a", "b"], {"a": 2.0}, jobs=2)
    3.0
    """
    if not seconds:
        return None
    mean = sum(seconds.values()) / len(seconds)
    return sum(seconds.get(method, mean) for method in waiting) / jobs


class _Tally:
    """Counts finished and failed runs, and estimates the time left."""

    def __init__(self, todo: Sequence[Run], jobs: int, seconds: Mapping[str, float]) -> None:
        self._jobs = jobs
        self._waiting = dict.fromkeys(todo)
        self._times = {method: [mean] for method, mean in seconds.items()}
        self._failed, self.total = 0, len(todo)

    def count(self, run: Run, result: RunResult) -> None:
        self._waiting.pop(run, None)
        self._failed += bool(result.failure)
        if not result.failure:
            self._times.setdefault(run.method, []).append(result.elapsed)

    @property
    def left(self) -> int:
        return len(self._waiting)

    def __str__(self) -> str:
        means = {method: sum(times) / len(times) for method, times in self._times.items()}
        seconds = time_left([run.method for run in self._waiting], means, self._jobs)
        parts = [f"{self.total - self.left}/{self.total} runs"]
        if seconds is not None:
            parts.append(f"about {_clock(seconds)} left")
        if self._failed:
            parts.append(f"{self._failed} failed")
        return ", ".join(parts)


class _Silent:
    def started(self, run: Run) -> None:
        """Show nothing."""

    def finished(self, run: Run, result: RunResult) -> None:
        """Show nothing."""


class _Bars:
    """One line for the sweep with the time left, and one for each run in progress."""

    def __init__(self, bar: Any, tally: _Tally) -> None:
        self._bar, self._tally = bar, tally
        self._whole = bar.add_task(str(tally), total=tally.total)
        self._in_progress: dict[Run, Any] = {}

    def started(self, run: Run) -> None:
        if run not in self._in_progress:
            self._in_progress[run] = self._bar.add_task(str(run), total=None)

    def finished(self, run: Run, result: RunResult) -> None:
        if run in self._in_progress:
            self._bar.remove_task(self._in_progress.pop(run))
        self._tally.count(run, result)
        self._bar.update(self._whole, advance=1, description=str(self._tally))


class _Lines:
    """A line when a run ends, at most one per minute, but always for a failure and for the last run."""

    def __init__(self, console: Any, tally: _Tally) -> None:
        self._console, self._tally = console, tally
        self._clock = LogClock()

    def started(self, run: Run) -> None:
        """Shown when it ends."""

    def finished(self, run: Run, result: RunResult) -> None:
        self._tally.count(run, result)
        if self._clock.is_due(anyway=bool(result.failure) or not self._tally.left):
            outcome = "failed" if result.failure else f"{result.elapsed:.0f} s"
            self._console.print(f"{self._tally}; {run}: {outcome}", soft_wrap=True, highlight=False, markup=False)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"
