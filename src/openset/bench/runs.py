"""One run: a method on one split. What it is, its content key, and how it is carried out."""

from __future__ import annotations

import ast
import functools
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from openset._utils.hashing import sha256
from openset._version import __version__
from openset.bench.environment import environment
from openset.bench.problems import BenchProblem, Setting, build_problem, get_source
from openset.bench.spec import Spec
from openset.learn.memory import TrainingMemory
from openset.methods._network import NetworkClassifier
from openset.registry import get_method

_NOT_COMPUTING = ("cli.py", "testing.py", "_utils/progress.py")
_NOT_COMPUTING_FOLDERS = ("commands", "persistence", "pipeline", "report")
_COMPUTING_IN_BENCH = ("problems.py", "datasets.py", "own_table.py", "exact.py", "runs.py")

_TRAINING = TrainingMemory()
"""Source-only, MSP, entropy, maximum logit and energy follow each other in a split, and share one training."""


@dataclass(frozen=True)
class Run:
    """A method on one split. Spec-independent: two experiments that ask for the same run share it."""

    dataset: str
    encoder: str | None
    options: str
    """Options of the problem source as canonical JSON, so that runs can be compared and hashed."""
    setting: Setting
    novel: str
    seed: int
    method: str
    parameters: str
    """Parameters of the method as canonical JSON."""

    def key(self, code: str) -> str:
        """What identifies the run's result: everything it depends on."""
        return sha256(_canonical({**asdict(self), "code": code}))

    @property
    def split(self) -> tuple[str, int]:
        """What paired comparisons pair by, within one dataset and setting."""
        return self.novel, self.seed

    def __str__(self) -> str:
        return f"{self.method} · {self.dataset}, {self.setting}, novel {self.novel}, seed {self.seed}"


@dataclass(frozen=True)
class PlannedRun:
    """A run with its place in an experiment's tables and figures."""

    run: Run
    label: str
    problem: str
    problem_x: float | None
    """The value of the problem's swept option."""
    x: float | None
    """Where the run stands on the horizontal axis: the value swept by its method or by its problem."""
    paper: str | None = None


@dataclass(frozen=True)
class RunResult:
    """What a run gave: metrics, or the traceback of its failure."""

    metrics: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """``data``, ``fit`` and ``score`` by the clock, and ``cpu``: processor time of fitting and scoring. Training
    that a run shares with the one before counts for both."""
    heads: list[dict[str, Any]] = field(default_factory=list)
    """CoLOR's table of heads, with the chosen rows marked ``selected``; those of the network that was kept have
    their ``auroc``, ``auprc`` and ``oscr`` on the test rows."""
    manifest_checksum: str = ""
    stand_in_for: str = ""
    warnings: list[str] = field(default_factory=list)
    failure: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    """Of the process that carried it out."""

    @property
    def elapsed(self) -> float:
        """Seconds by the clock."""
        return sum(value for name, value in self.seconds.items() if name != "cpu")


def expand(spec: Spec, data_dir: Path | None = None) -> list[PlannedRun]:
    """Every run of a spec, split by split: a sweep that is cut short holds whole splits.

    Where the data folder does not hold a dataset, its stand-in is planned.
    """
    for method in spec.methods:
        get_method(method.name)  # a clear error before anything runs
    return [
        PlannedRun(
            Run(
                dataset=problem.dataset,
                encoder=problem.encoder,
                options=_canonical(problem.options),
                setting=setting,
                novel=novel,
                seed=seed,
                method=method.name,
                parameters=_canonical(method.parameters_for(problem)),
            ),
            label=method.label,
            problem=problem.title,
            problem_x=problem.x,
            x=method.x if method.x is not None else problem.x,
            paper=problem.paper,
        )
        for problem in (problem.resolved(data_dir) for problem in spec.problems)
        for setting in problem.settings
        for novel in problem.novel
        for seed in problem.seeds
        for method in spec.methods
        if method.name not in spec.left_out
    ]


@functools.cache
def code_version() -> str:
    """The version, and a checksum of the package's code that can change a run's numbers."""
    root = Path(__file__).parents[1]
    computing = []
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        folder = place.parts[0]
        if folder in _NOT_COMPUTING_FOLDERS or str(place) in _NOT_COMPUTING:
            continue
        if folder == "bench" and place.name not in _COMPUTING_IN_BENCH:
            continue
        computing.append(f"{place}\0{_what_runs(path.read_text('utf-8'))}")
    return f"{__version__}+{sha256(''.join(computing))[:12]}"


def _what_runs(source: str) -> str:
    """A module without comments and docstrings, which change no number.

    >>> _what_runs("x = 1  # one") == _what_runs("'About x.'; x = 1") != _what_runs("x = 2")
    True
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    """Whether it is a string that nobody reads: a docstring, also below a constant."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def execute(run: Run, data_dir: Path | None) -> RunResult:
    """Build the problem, fit, score; an exception becomes a result with its traceback."""
    try:
        result = _execute(run, data_dir)
    except Exception:
        result = RunResult(failure=traceback.format_exc())
    return replace(result, environment=environment())


def execute_capped(run: Run, data_dir: Path | None) -> RunResult:
    """What workers call: the same on one thread, so that the numbers do not depend on the number of cores."""
    _use_one_thread()
    return execute(run, data_dir)


def _execute(run: Run, data_dir: Path | None) -> RunResult:
    from openset.stats.metrics import evaluate

    solve = get_source(run.dataset).solve
    estimator = _load(run.method) if solve is None else None
    started = time.perf_counter()
    problem = load_problem(run, data_dir)
    if solve is not None:
        return _solved(solve, run, problem, started)
    assert estimator is not None
    model = estimator(**json.loads(run.parameters), random_state=run.seed)
    built, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught, _TRAINING.used() as memory:
        warnings.simplefilter("always")
        model.fit(problem.X, problem.y, problem.X_target)
        fitted = time.perf_counter()
        metrics = evaluate(model, problem.X_test, problem.y_test).to_dict()
    scored, cpu = time.perf_counter(), time.process_time() - cpu
    estimate, heads = model.novel_fraction_, _heads(model, problem)
    tested = [head["auprc"] for head in heads if "auprc" in head]
    return RunResult(
        metrics={
            **metrics,
            **({"best_head_auprc": max(tested)} if tested else {}),
            "novel_fraction": problem.novel_fraction,
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


def _solved(solve: Callable[..., dict[str, float]], run: Run, problem: BenchProblem, started: float) -> RunResult:
    built, cpu = time.perf_counter(), time.process_time()
    metrics = solve(run.method, problem, **json.loads(run.options))
    fitted, cpu = time.perf_counter(), time.process_time() - cpu
    return RunResult(
        metrics={**metrics, "novel_fraction": problem.novel_fraction},
        seconds={"data": built - started, "fit": fitted - built, "score": 0.0, "cpu": cpu},
        manifest_checksum=problem.manifest_checksum,
        stand_in_for=problem.stand_in_for,
    )


def forget_problems() -> None:
    """What is loaded next is read anew: the user may have changed a file since."""
    _problem_of.cache_clear()


def load_problem(run: Run, data_dir: Path | None) -> BenchProblem:
    """The problem that a run is on."""
    return _problem_of(_split_of(run), data_dir)


@functools.lru_cache(maxsize=1)
def _problem_of(run: Run, data_dir: Path | None) -> BenchProblem:
    """The last problem stays in memory: runs come split by split, so the methods of a split share it."""
    encoder = {"encoder": run.encoder} if run.encoder else {}
    options = json.loads(run.options)
    return build_problem(run.dataset, run.setting, run.novel, run.seed, data_dir, **options, **encoder)


def _split_of(run: Run) -> Run:
    """The run without its method: equal for all methods of a split."""
    return replace(run, method="", parameters="")


def _heads(model: Any, problem: BenchProblem) -> list[dict[str, Any]]:
    import numpy as np

    if not hasattr(model, "heads_"):
        return []
    selected = np.atleast_1d(model.selected_)
    chosen = {(int(record["member"]), int(record["step"])): int(record["head"]) for record in selected}
    tested = _tested_heads(model, problem)
    records = [{name: record[name].item() for name in model.heads_.dtype.names} for record in model.heads_]
    return [
        {
            **record,
            "selected": chosen.get((record["member"], record["step"])) == record["head"],
            **(tested[record["member"], record["head"]] if (record["member"], record["step"]) in chosen else {}),
        }
        for record in records
    ]


def _tested_heads(model: Any, problem: BenchProblem) -> dict[tuple[int, int], dict[str, float]]:
    """How every head of the network that was kept does on the test rows, the selected one and the others."""
    import numpy as np

    from openset.stats.metrics import auprc, auroc, oscr

    novel = problem.y_test == problem.novel_label
    scores = model.head_scores(problem.X_test)
    members = list(range(len(scores)))
    if not np.ndim(model.selected_):  # one choice for all members, whose logits are averaged
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
    """Cap what is loaded by call and what will be loaded by environment, once in a process."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _load(method: str) -> type[Any]:
    """The estimator's class, with the slow imports of its first fit done: they are no run's own time."""
    found = get_method(method).load()
    if issubclass(found, NetworkClassifier):
        import torch._dynamo  # noqa: F401  (torch does so in its first optimiser step)
    return found


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)
