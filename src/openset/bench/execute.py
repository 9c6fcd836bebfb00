"""Carry out one run: build the problem, fit the method, score the test rows, or solve the problem exactly."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from openset.bench.problems import BenchProblem, build_problem, get_source
from openset.bench.problems.names import with_decoder_folders
from openset.bench.provenance import environment
from openset.bench.runs import Run, RunResult
from openset.learn.memory import TrainingMemory
from openset.methods._network import NetworkClassifier
from openset.registry import get_method
from openset.shift.problem_checks import separability
from openset.stats.metrics import auprc, auroc, evaluate, oscr, top1

ORACLE_FOLDS = 5
_TRAINING = TrainingMemory()
"""Source-only, MSP, entropy, maximum logit and energy follow each other in a split, and share one training."""


def execute(run: Run, data_dir: Path | None) -> RunResult:
    """Carry out a run; an exception becomes a result with its traceback."""
    try:
        solve = get_source(run.dataset).solve
        result = _fitted(run, data_dir) if solve is None else _solved(solve, run, data_dir)
    except Exception:
        result = RunResult(failure=traceback.format_exc())
    return replace(result, environment=environment())


def execute_on_one_thread(run: Run, data_dir: Path | None) -> RunResult:
    """The same on one thread, so that the numbers do not depend on the number of cores; workers call this."""
    _use_one_thread()
    return execute(run, data_dir)


def _fitted(run: Run, data_dir: Path | None) -> RunResult:
    estimator = _load(run.method)
    started = time.perf_counter()
    problem = load_problem(run, data_dir)
    taken = get_method(run.method).input
    X, X_target, X_test = problem.rows_for(taken)
    problem = replace(problem, X=X, X_target=X_target, X_test=X_test)
    parameters = parameters_of(run, data_dir)
    names = _names_for(estimator, problem, parameters)
    model = estimator(**{**names, **parameters}, random_state=run.seed)
    built, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught, _TRAINING.used() as memory:
        warnings.simplefilter("always")
        model.fit(problem.X, problem.y, problem.X_target)
        fitted = time.perf_counter()
        metrics = _metrics(model, problem)
    scored, cpu = time.perf_counter(), time.process_time() - cpu
    estimate, heads = model.novel_fraction_, _heads(model, problem)
    tested = [head["auprc"] for head in heads if "auprc" in head]
    return RunResult(
        metrics={
            **metrics,
            **({"best_head_auprc": max(tested)} if tested else {}),
            **_oracle_of(_split_of(run), data_dir),
            "novel_fraction": problem.novel_fraction,
            "new_subtypes": problem.new_subtypes,
            "estimated_fraction": estimate.value,
            "estimated_low": estimate.low,
            "estimated_high": estimate.high,
        },
        seconds={
            "data": built - started,
            "fit": fitted - built + memory.spared[0],
            "score": scored - fitted,
            "cpu": cpu + memory.spared[1],
        },
        heads=heads,
        manifest_checksum=problem.manifest_checksum,
        stand_in_for=problem.stand_in_for,
        warnings=sorted({str(warning.message) for warning in caught}),
    )


def parameters_of(run: Run, data_dir: Path | None) -> dict[str, Any]:
    """The parameters of a run's method."""
    parameters: dict[str, Any] = json.loads(run.parameters)
    if get_method(run.method).input != "names" or not parameters.get("decoder"):
        return parameters
    return with_decoder_folders(parameters, run.encoder, data_dir)


def _names_for(estimator: type[Any], problem: BenchProblem, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The problem's embeddings of names that a method has parameters for; a decoder proposes candidates."""
    allowed = set(signature(estimator).parameters)
    if parameters.get("decoder"):
        allowed.discard("candidate_embeddings")
    return {name: value for name, value in problem.names.items() if name in allowed}


def _metrics(model: Any, problem: BenchProblem) -> dict[str, float]:
    """Metrics of the test rows, and what was said of the target; without new test rows those that need none."""
    novel = problem.y_test == problem.novel_label
    if novel.any():
        metrics = evaluate(model, problem.X_test, problem.y_test).to_dict()
    else:
        correct = model.predict_known(problem.X_test) == problem.y_test
        metrics = {"top1": top1(novel, correct), "n_known": len(novel), "n_novel": 0}
    metrics["called"] = float((model.fit_scores_.target_score > model.threshold_).mean())
    if hasattr(model, "novelty_test_"):
        metrics["p_value"] = float(model.novelty_test_.p_value)
    return metrics


def _solved(solve: Callable[..., dict[str, float]], run: Run, data_dir: Path | None) -> RunResult:
    started = time.perf_counter()
    problem = load_problem(run, data_dir)
    built, cpu = time.perf_counter(), time.process_time()
    metrics = solve(run.method, problem, **json.loads(run.options))
    solved, cpu = time.perf_counter(), time.process_time() - cpu
    return RunResult(
        metrics={**metrics, "novel_fraction": problem.novel_fraction},
        seconds={"data": built - started, "fit": solved - built, "score": 0.0, "cpu": cpu},
        manifest_checksum=problem.manifest_checksum,
        stand_in_for=problem.stand_in_for,
    )


def forget_problems() -> None:
    """Forget the problem in memory: the user may have changed its file."""
    _problem_of.cache_clear()
    _oracle_of.cache_clear()


def load_problem(run: Run, data_dir: Path | None) -> BenchProblem:
    """Build the problem of a run."""
    return _problem_of(_split_of(run), data_dir)


def _split_of(run: Run) -> Run:
    """The run without its method: equal for all methods of a split."""
    return replace(run, method="", parameters="")


@functools.lru_cache(maxsize=1)
def _problem_of(run: Run, data_dir: Path | None) -> BenchProblem:
    """The last problem stays in memory: runs come split by split, so the methods of a split share it."""
    options = {**json.loads(run.options), **encoder_of(run)}
    return build_problem(run.dataset, run.setting, run.novel, run.seed, data_dir, **options)


@functools.lru_cache(maxsize=1)
def _oracle_of(run: Run, data_dir: Path | None) -> dict[str, float]:
    """AUROC and AUPRC of a classifier that is given the labels of source and target, out of fold on the target.

    Nothing where the rows are no table, or hold too few new ones for the folds.
    """
    problem = _problem_of(run, data_dir)
    X, X_target, _ = problem.rows_for("table")
    is_novel = problem.y_target == problem.novel_label
    if X.ndim != 2 or min(is_novel.sum(), (~is_novel).sum()) < ORACLE_FOLDS:
        return {}
    known, novel = X_target[~is_novel], X_target[is_novel]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more steps of the classifier change no digit that a table prints
        found = separability(known, novel, X_source=X, folds=ORACLE_FOLDS)
    return {"oracle_auroc": found.auroc, "oracle_auprc": found.auprc}


def encoder_of(run: Run) -> dict[str, Any]:
    """The encoder as an option of the source, if the run has one."""
    return {"encoder": run.encoder} if run.encoder else {}


def _heads(model: Any, problem: BenchProblem) -> list[dict[str, Any]]:
    """CoLOR's table of heads, with metrics of the network that was kept if there are new test rows.

    Nothing for other methods.
    """
    if not hasattr(model, "heads_"):
        return []
    records = model.head_records()
    if not (problem.y_test == problem.novel_label).any():
        return records
    tested = _tested_heads(model, problem)
    kept = {(record["member"], record["step"]) for record in records if record["selected"]}
    return [
        {
            **record,
            **(tested[record["member"], record["head"]] if (record["member"], record["step"]) in kept else {}),
        }
        for record in records
    ]


def _tested_heads(model: Any, problem: BenchProblem) -> dict[tuple[int, int], dict[str, float]]:
    """Metrics on the test rows of every head of the network that was kept, by member and head."""
    novel = problem.y_test == problem.novel_label
    scores = model.head_scores(problem.X_test)
    members = list(range(len(scores)))
    if not np.ndim(model.selected_):  # one choice for all members, whose scores are averaged
        scores, members = scores.mean(axis=0, keepdims=True), [int(model.selected_["member"])]
    correct = model.predict_known(problem.X_test) == problem.y_test
    return {
        (member, head): {
            "auroc": auroc(novel, score),
            "auprc": auprc(novel, score),
            "oscr": oscr(novel, score, correct),
        }
        for member, of_heads in zip(members, scores, strict=True)
        for head, score in enumerate(of_heads.T)
    }


@functools.cache
def _use_one_thread() -> None:
    """Limit the libraries that are loaded, and by environment variables those that will be."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _load(method: str) -> type[Any]:
    """The class of a method, after the slow imports of its first fit: they do not count as a run's time."""
    found = get_method(method).load()
    if issubclass(found, NetworkClassifier):
        import torch._dynamo  # noqa: F401  (torch imports it in its first optimiser step)
    return found
