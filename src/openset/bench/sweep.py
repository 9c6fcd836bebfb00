"""Sweeps: check a spec, carry out the runs that are not stored yet, store each result when it is ready."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from openset._utils.params import check_choice, check_integer
from openset.bench.execute import encoder_of, forget_problems, load_problem, parameters_of
from openset.bench.problems import build_problem, get_source
from openset.bench.problems.names import VOCABULARY_FILE
from openset.bench.runs import Run, RunResult, expand
from openset.bench.spec import MethodSpec, ProblemSpec, Spec
from openset.bench.store import Store, StoredRun
from openset.bench.sweep_progress import SweepProgress, seconds_per_method, sweep_progress
from openset.bench.workers import local_results, ray_results
from openset.errors import MissingExtraError
from openset.registry import get_method

PLACES = ("local", "ray")


@dataclass(frozen=True)
class SweepReport:
    """How many runs a sweep planned, skipped and failed."""

    planned: int
    skipped: int
    failed_before: int
    """Skipped runs whose stored result is a failure."""
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
    """Carry out the runs of a spec that are not in the store, or that other code would now compute.

    It can be interrupted at any moment, even by SIGKILL, and started again: finished runs are in the store, the
    others start from the beginning. A failed run is stored with its traceback; it is tried again only with
    ``retry_failed``.
    """
    check_integer("jobs", jobs)
    check_choice("on", on, PLACES)
    check_available(spec, data_dir)
    forget_problems()
    _check_user_data(spec, data_dir)
    started = time.perf_counter()
    runs = list(dict.fromkeys(planned.run for planned in expand(spec, data_dir)))
    stored = store.get(run.key for run in runs)
    todo = [run for run in runs if not _is_done(stored.get(run.key), retry_failed)]
    prepare(todo, data_dir, show_progress)
    _check_same_data(stored.values(), data_dir)
    failed = carry_out(
        todo,
        store,
        spec.name,
        data_dir=data_dir,
        jobs=jobs,
        on=on,
        show_progress=show_progress,
        seconds=seconds_per_method(stored.values()),
    )
    failed_before = 0 if retry_failed else sum(bool(item.result.failure) for item in stored.values())
    return SweepReport(len(runs), len(runs) - len(todo), failed_before, failed, time.perf_counter() - started)


def carry_out(
    runs: Sequence[Run],
    store: Store,
    spec: str,
    *,
    data_dir: Path | None,
    jobs: int = 1,
    on: str = "local",
    show_progress: bool = False,
    seconds: Mapping[str, float] | None = None,
) -> int:
    """Carry out prepared runs and store each when it is ready, under the spec's name; return how many failed.

    ``seconds`` has the mean time of a run by method, for the progress bar's first guess.
    """
    failed = 0
    with sweep_progress(runs, jobs, seconds or {}, enabled=show_progress and bool(runs)) as progress:
        for run, result in _results(on, runs, data_dir, jobs, progress):
            store.put(run, result, spec=spec)
            failed += bool(result.failure)
            progress.finished(run, result)
    return failed


def _check_same_data(stored: Iterable[StoredRun], data_dir: Path | None) -> None:
    """Raise if stored runs used other rows than those in the data folder, by one split of every dataset."""
    done = [found for found in stored if not found.result.failure]
    for found in {(found.run.dataset, found.run.encoder, found.run.options): found for found in done}.values():
        run = found.run
        if load_problem(run, data_dir).manifest_checksum != found.result.manifest_checksum:
            names = f" (or with another {VOCABULARY_FILE})" if json.loads(run.options).get("names") else ""
            raise ValueError(
                f"the store has runs on other rows of {run.dataset} than those in "
                f"{data_dir or 'the data folder'}{names}: give another --store, or the data folder of those runs."
            )


def prepare(runs: Sequence[Run], data_dir: Path | None, show_progress: bool) -> None:
    """Do the work that all problems of a dataset share once, and not in every worker."""
    first: dict[tuple[str, str | None, str], Run] = {}
    for run in runs:
        first.setdefault((run.dataset, run.encoder, run.options), run)
    for run in runs:
        parameters_of(run, data_dir)  # raises if a model that it names is not here
    for run in first.values():
        source = get_source(run.dataset)
        if source.prepare is not None:
            source.prepare(data_dir, show_progress, **encoder_of(run), **json.loads(run.options))
        elif not source.is_user_data:
            _check_extras(run, data_dir)


def _check_extras(run: Run, data_dir: Path | None) -> None:
    """Raise if reading a dataset needs a missing extra: otherwise each of its runs would be stored as failed.

    Datasets with ``prepare`` are read by it, and user data by its check.
    """
    try:
        load_problem(run, data_dir)
    except MissingExtraError:
        raise
    except Exception:
        return  # a fault of this split: its runs store the traceback


def check_available(spec: Spec, data_dir: Path | None) -> None:
    """Raise if a spec names datasets, methods, parameters or files that do not exist."""
    if spec.unavailable:
        raise ValueError(f"{spec.name} needs what this version does not have: {', '.join(spec.unavailable)}.")
    missing = spec.missing_files(data_dir)
    if missing:
        where = f"{data_dir} does not have" if data_dir else "give --data, a folder with"
        raise ValueError(f"{spec.name} needs data: {where} {', '.join(missing)}.")
    if len(spec.left_out) == len(spec.methods):
        why = "; ".join(f"{name} needs {needs}" for name, needs in spec.needs_of_left_out.items())
        raise ValueError(f"{spec.name} has nothing to run: {why}.")
    for problem in spec.problems:
        _check_options(problem, f"{spec.name}, {problem.title}", data_dir)
    for method in spec.methods:
        _check_parameters(method, f"{spec.name}, {method.label}")


def _check_options(problem: ProblemSpec, where: str, data_dir: Path | None) -> None:
    """Raise if a dataset, or its stand-in if that will be used, does not have an option: each run would fail."""
    for found in (problem, problem.resolved(data_dir)):
        try:
            get_source(found.dataset).check_options(found.given)
        except ValueError as error:
            instead = f" ({found.dataset} stands in for it)" if found.dataset != problem.dataset else ""
            raise ValueError(f"{where}{instead}: {error}") from error


def _check_parameters(method: MethodSpec, where: str) -> None:
    """Raise if a method does not have one of its parameters: each of its runs would fail."""
    if "random_state" in method.parameters:
        raise ValueError(f"{where}: random_state is the split's seed: set seeds in [[problem]].")
    if method.parameters:
        try:
            get_method(method.name).load()(**method.parameters)
        except TypeError as error:
            raise ValueError(f"{where}: {error}") from error


def _check_user_data(spec: Spec, data_dir: Path | None) -> None:
    """Raise if a split of the user's own data cannot be built."""
    for problem in spec.problems:
        if get_source(problem.dataset).is_user_data:
            _check_user_problem(problem, f"{spec.name}, {problem.title}", data_dir)


def _check_user_problem(problem: ProblemSpec, where: str, data_dir: Path | None) -> None:
    if not problem.novel:
        raise ValueError(f'{where}: set the new class, as in novel = ["returns"].')
    for novel in problem.novel:
        try:
            build_problem(
                problem.dataset, problem.settings[0], novel, problem.seeds[0], data_dir, **problem.given
            )
        except ValueError as error:
            raise ValueError(f"{where}, novel {novel}: {error}") from error


def _is_done(stored: StoredRun | None, retry_failed: bool) -> bool:
    return stored is not None and not (retry_failed and stored.result.failure)


def _results(
    on: str, runs: Sequence[Run], data_dir: Path | None, jobs: int, progress: SweepProgress
) -> Iterator[tuple[Run, RunResult]]:
    if not runs:
        return iter(())
    results = ray_results if on == "ray" else local_results
    return results(runs, data_dir, jobs, progress.started)
