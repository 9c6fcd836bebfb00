"""Sweeps: run what is not stored yet, keep every result as it comes, show how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path

from openset._utils.params import check_choice, check_integer
from openset.bench.problems import build_problem, get_source
from openset.bench.runs import PlannedRun, Run, RunResult, code_version, expand, forget_problems, load_problem
from openset.bench.spec import MethodSpec, ProblemSpec, Spec
from openset.bench.store import Store, StoredRun
from openset.bench.watching import Watcher, seconds_per_method, watching
from openset.errors import MissingExtraError
from openset.registry import get_method

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
    forget_problems()
    _check_own_tables(spec, data_dir)
    started = time.perf_counter()
    runs = list(dict.fromkeys(planned.run for planned in expand(spec, data_dir)))
    stored = store.get(run.key(code_version()) for run in runs)
    todo = [run for run in runs if not _is_done(stored.get(run.key(code_version())), retry_failed)]
    _prepare(todo, data_dir, show_progress)
    _check_same_data(stored.values(), data_dir)
    failed = 0
    known_seconds = seconds_per_method(stored.values())
    with watching(todo, jobs, known_seconds, enabled=show_progress and bool(todo)) as watcher:
        for run, result in _results(on, todo, data_dir, jobs, watcher):
            store.put(run, result, spec=spec.name)
            failed += bool(result.failure)
            watcher.finished(run, result)
    failed_before = 0 if retry_failed else sum(bool(item.result.failure) for item in stored.values())
    return SweepReport(len(runs), len(runs) - len(todo), failed_before, failed, time.perf_counter() - started)


def _check_same_data(stored: Iterable[StoredRun], data_dir: Path | None) -> None:
    """Raise where the data folder holds other rows than stored runs saw, by one split of every dataset."""
    done = [found for found in stored if not found.result.failure]
    for found in {(found.run.dataset, found.run.encoder, found.run.options): found for found in done}.values():
        run = found.run
        if load_problem(run, data_dir).manifest_checksum != found.result.manifest_checksum:
            raise ValueError(
                f"the store holds runs on other rows of {run.dataset} than those in "
                f"{data_dir or 'the data folder'}: name another --store, or the folder that those runs had."
            )


def _prepare(runs: Sequence[Run], data_dir: Path | None, show_progress: bool) -> None:
    """What all problems of a dataset need is computed once, here, and not by every worker."""
    first: dict[tuple[str, str | None], Run] = {}
    for run in runs:
        first.setdefault((run.dataset, run.encoder), run)
    for run in first.values():
        source = get_source(run.dataset)
        if source.prepare is not None:
            source.prepare(data_dir, run.encoder, show_progress)
        elif not source.of_the_user:
            _check_extras(run, data_dir)


def _check_extras(run: Run, data_dir: Path | None) -> None:
    """Raise where an extra is missing that a dataset is read with: else every run of it were stored as failed.

    A dataset that is prepared was read by that, one's own by its check.
    """
    try:
        load_problem(run, data_dir)
    except MissingExtraError:
        raise
    except Exception:
        return  # a fault of this split: its runs say so, with their traceback


def check_available(spec: Spec, data_dir: Path | None) -> None:
    """Raise where a spec asks for datasets, methods, parameters or files that are not here."""
    if spec.unavailable:
        raise ValueError(f"{spec.name} needs what this openset does not have: {', '.join(spec.unavailable)}.")
    missing = spec.missing_files(data_dir)
    if missing:
        place = f"{data_dir} does not hold" if data_dir else "--data names no folder with"
        raise ValueError(f"{spec.name} needs data: {place} {', '.join(missing)}.")
    for method in spec.methods:
        _check_parameters(method, f"{spec.name}, {method.label}")


def _check_parameters(method: MethodSpec, where: str) -> None:
    """Raise where a method has no such parameter: every run of it would fail."""
    if "random_state" in method.parameters:
        raise ValueError(f"{where}: random_state is the split's seed: name seeds in [[problem]].")
    if method.parameters:
        try:
            get_method(method.name).load()(**method.parameters)
        except TypeError as error:
            raise ValueError(f"{where}: {error}") from error


def _check_own_tables(spec: Spec, data_dir: Path | None) -> None:
    """Raise where a split of the user's own rows cannot be made."""
    for problem in spec.problems:
        if get_source(problem.dataset).of_the_user:
            _check_own(problem, f"{spec.name}, {problem.title}", data_dir)


def _check_own(problem: ProblemSpec, where: str, data_dir: Path | None) -> None:
    """Raise where a problem on the user's own rows cannot be built."""
    allowed = {
        parameter.name: parameter.default is parameter.empty
        for parameter in signature(get_source(problem.dataset).build).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    given = {**problem.options, **({"encoder": problem.encoder} if problem.encoder else {})}
    for name in given.keys() - allowed.keys():
        raise ValueError(f"{where}: unknown option {name!r}: expected some of {', '.join(allowed)}.")
    for name in (name for name, required in allowed.items() if required and name not in given):
        raise ValueError(f"{where}: options lack {name!r}.")
    if not problem.novel:
        raise ValueError(f'{where}: name what is new, as in novel = ["returns"].')
    for novel in problem.novel:
        try:
            build_problem(problem.dataset, problem.settings[0], novel, problem.seeds[0], data_dir, **given)
        except ValueError as error:
            raise ValueError(f"{where}, novel {novel}: {error}") from error


def stored_plan(
    spec: Spec, store: Store, code: str | None = None, data_dir: Path | None = None
) -> list[tuple[PlannedRun, StoredRun | None]]:
    """Every planned run with what the store holds of it, for this code version or another."""
    planned = expand(spec, data_dir)
    keys = [plan.run.key(code or code_version()) for plan in planned]
    stored = store.get(keys)
    return [(plan, stored.get(key)) for plan, key in zip(planned, keys, strict=True)]


def _is_done(stored: StoredRun | None, retry_failed: bool) -> bool:
    return stored is not None and not (retry_failed and stored.result.failure)


def _results(
    on: str, runs: Sequence[Run], data_dir: Path | None, jobs: int, watcher: Watcher
) -> Iterator[tuple[Run, RunResult]]:
    if not runs:
        return iter(())
    if on == "ray":
        from openset.bench.on_ray import ray_results

        return ray_results(runs, data_dir, jobs, watcher.started)
    from openset.bench.workers import local_results

    return local_results(runs, data_dir, jobs, watcher.started)
