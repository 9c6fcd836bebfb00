"""Sweeps: run what is not stored yet, keep every result as it comes, show how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from openset.bench.problems import get_source
from openset.bench.runs import PlannedRun, Run, RunResult, code_version, expand, load_problem
from openset.bench.spec import Spec
from openset.bench.store import Store, StoredRun
from openset.params import check_choice, check_integer

PLACES = ("local", "ray")


@dataclass(frozen=True)
class SweepReport:
    """What a sweep did."""

    planned: int
    skipped: int
    failed_before: int
    """Those skipped whose stored result is a failure."""
    failed: int
    seconds: float


def sweep(
    spec: Spec,
    store: Store,
    *,
    data_dir: Path | None = None,
    jobs: int = 1,
    on: str = "local",
    retry_failed: bool = False,
    show_progress: bool = False,
) -> SweepReport:
    """Carry out the runs of a spec that the store does not hold for this code version.

    Interrupted at any moment, even by SIGKILL, it can be started again: finished runs are in the store, the
    others begin anew. A failed run is stored with its traceback, and tried again only with ``retry_failed``.
    """
    check_integer("jobs", jobs)
    check_choice("on", on, PLACES)
    check_available(spec, data_dir)
    started = time.perf_counter()
    runs = list(dict.fromkeys(planned.run for planned in expand(spec, data_dir)))
    stored = store.get(run.key(code_version()) for run in runs)
    todo = [run for run in runs if not _is_done(stored.get(run.key(code_version())), retry_failed)]
    _prepare(todo, data_dir, show_progress)
    _check_same_data(stored.values(), data_dir)
    failed = 0
    known_seconds = seconds_per_method(stored.values())
    with _progress(todo, jobs, known_seconds, enabled=show_progress and bool(todo)) as progress:
        for run, result in _results(on, todo, data_dir, jobs, progress):
            store.put(run, result, spec=spec.name)
            failed += bool(result.failure)
            progress.finished(run, result)
    failed_before = 0 if retry_failed else sum(bool(item.result.failure) for item in stored.values())
    return SweepReport(len(runs), len(runs) - len(todo), failed_before, failed, time.perf_counter() - started)


def _check_same_data(stored: Iterable[StoredRun], data_dir: Path | None) -> None:
    """Raise where the data folder holds other rows than stored runs saw, by one split of every dataset."""
    done = [found for found in stored if not found.result.failure]
    for found in {(found.run.dataset, found.run.encoder): found for found in done}.values():
        run = found.run
        if load_problem(run, data_dir).manifest_checksum != found.result.manifest_checksum:
            raise ValueError(
                f"the store holds runs on other rows of {run.dataset} than those in "
                f"{data_dir or 'the data folder'}: name another --store, or the folder that those runs had."
            )


def _prepare(runs: Sequence[Run], data_dir: Path | None, show_progress: bool) -> None:
    """What all problems of a dataset need is computed once, here, and not by every worker."""
    for dataset, encoder in dict.fromkeys((run.dataset, run.encoder) for run in runs):
        prepare = get_source(dataset).prepare
        if prepare is not None:
            prepare(data_dir, encoder, show_progress)


def check_available(spec: Spec, data_dir: Path | None) -> None:
    """Raise where a spec asks for datasets, methods or files that are not here."""
    if spec.unavailable:
        raise ValueError(f"{spec.name} needs what this openset does not have: {', '.join(spec.unavailable)}.")
    missing = spec.missing_files(data_dir)
    if missing:
        place = f"{data_dir} does not hold" if data_dir else "--data names no folder with"
        raise ValueError(f"{spec.name} needs data: {place} {', '.join(missing)}.")


def stored_plan(
    spec: Spec, store: Store, code: str | None = None, data_dir: Path | None = None
) -> list[tuple[PlannedRun, StoredRun | None]]:
    """Every planned run with what the store holds of it, for this code version or another."""
    planned = expand(spec, data_dir)
    keys = [plan.run.key(code or code_version()) for plan in planned]
    stored = store.get(keys)
    return [(plan, stored.get(key)) for plan, key in zip(planned, keys, strict=True)]


def seconds_per_method(stored: Any) -> dict[str, float]:
    """Mean seconds of a run of each method, by the clock."""
    times: dict[str, list[float]] = {}
    for item in stored:
        if not item.result.failure:
            times.setdefault(item.run.method, []).append(item.result.elapsed)
    return {method: sum(values) / len(values) for method, values in times.items()}


def time_left(waiting: Sequence[str], seconds: Mapping[str, float], jobs: int) -> float | None:
    """Estimated seconds for runs of these methods; methods not seen yet count as the mean of the others.

    >>> time_left(["a", "a", "b"], {"a": 2.0}, jobs=2)
    3.0
    """
    if not seconds:
        return None
    mean = sum(seconds.values()) / len(seconds)
    return sum(seconds.get(method, mean) for method in waiting) / jobs


def _is_done(stored: StoredRun | None, retry_failed: bool) -> bool:
    return stored is not None and not (retry_failed and stored.result.failure)


def _results(
    on: str, runs: Sequence[Run], data_dir: Path | None, jobs: int, progress: _Progress
) -> Iterator[tuple[Run, RunResult]]:
    if not runs:
        return iter(())
    if on == "ray":
        from openset.bench.on_ray import ray_results

        return ray_results(runs, data_dir, jobs, progress.started)
    from openset.bench.workers import local_results

    return local_results(runs, data_dir, jobs, progress.started)


class _Progress(Protocol):
    def started(self, run: Run) -> None: ...
    def finished(self, run: Run, result: RunResult) -> None: ...


class _Silent:
    def started(self, run: Run) -> None:
        """Nobody watches."""

    def finished(self, run: Run, result: RunResult) -> None:
        """Nobody watches."""


class _Shown:
    """The whole sweep with the time left in one line, the runs under way in lines of their own."""

    def __init__(self, bar: Any, todo: Sequence[Run], jobs: int, seconds: Mapping[str, float]) -> None:
        self._bar, self._jobs = bar, jobs
        self._waiting = dict.fromkeys(todo)
        self._times = {method: [mean] for method, mean in seconds.items()}
        self._failed, self._total = 0, len(todo)
        self._whole = bar.add_task(self._note(), total=len(todo))
        self._under_way: dict[Run, Any] = {}

    def started(self, run: Run) -> None:
        if run not in self._under_way:
            self._under_way[run] = self._bar.add_task(str(run), total=None)

    def finished(self, run: Run, result: RunResult) -> None:
        if run in self._under_way:
            self._bar.remove_task(self._under_way.pop(run))
        self._waiting.pop(run, None)
        self._failed += bool(result.failure)
        if not result.failure:
            self._times.setdefault(run.method, []).append(result.elapsed)
        self._bar.update(self._whole, advance=1, description=self._note())

    def _note(self) -> str:
        means = {method: sum(times) / len(times) for method, times in self._times.items()}
        left = time_left([run.method for run in self._waiting], means, self._jobs)
        parts = [f"{self._total - len(self._waiting)}/{self._total} runs"]
        if left is not None:
            parts.append(f"about {_clock(left)} left")
        if self._failed:
            parts.append(f"{self._failed} failed")
        return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"


@contextmanager
def _progress(
    todo: Sequence[Run], jobs: int, seconds: Mapping[str, float], *, enabled: bool
) -> Iterator[_Progress]:
    if not enabled:
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    # words come last, in one column: the only one that may be cut off in a narrow terminal
    columns = (
        BarColumn(bar_width=12),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
    )
    with Progress(*columns, console=Console(stderr=True), expand=True) as bar:
        yield _Shown(bar, todo, jobs, seconds)
