"""Runs as data: what identifies a run, what it returned, and all the runs of a spec."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from openset._utils.hashing import sha256
from openset.bench.problems import Setting
from openset.bench.reached_code import reached_code
from openset.bench.spec import MethodSpec, ProblemSpec, Spec
from openset.registry import get_method


@dataclass(frozen=True)
class Run:
    """A method on one split. It does not depend on a spec: two specs with the same run share its result."""

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

    @property
    def key(self) -> str:
        """The key of the run's result: a hash of everything that the result depends on."""
        return sha256(_canonical({**asdict(self), "code": reached_code(self.method)}))

    @property
    def split(self) -> tuple[str, int]:
        """What paired comparisons pair by, within one dataset and setting."""
        return self.novel, self.seed

    def __str__(self) -> str:
        return f"{self.method} · {self.dataset}, {self.setting}, novel {self.novel}, seed {self.seed}"


@dataclass(frozen=True)
class PlannedRun:
    """A run, and where it belongs in the tables and figures of a spec."""

    run: Run
    label: str
    problem: str
    problem_x: float | None
    """The value of the problem's swept option."""
    x: float | None
    """The run's value on the horizontal axis: the value swept by its method or by its problem."""
    paper: str | None = None


@dataclass(frozen=True)
class RunResult:
    """What a run returned: metrics, or the traceback of its failure."""

    metrics: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall-clock seconds of ``data``, ``fit`` and ``score``, and ``cpu``: CPU seconds of fitting and scoring.
    Training that a run shares with the run before counts for both."""
    heads: list[dict[str, Any]] = field(default_factory=list)
    """CoLOR's heads at every evaluation point; the chosen ones are marked ``selected``. Heads of the network that
    was kept also have their ``auroc``, ``auprc`` and ``oscr`` on the test rows."""
    manifest_checksum: str = ""
    stand_in_for: str = ""
    warnings: list[str] = field(default_factory=list)
    failure: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    """Of the process that carried it out."""

    @property
    def tested_heads(self) -> list[dict[str, Any]]:
        """Heads that have metrics of test rows: those of the network that was kept."""
        return [head for head in self.heads if "auroc" in head]

    @property
    def elapsed(self) -> float:
        """Wall-clock seconds."""
        return sum(value for name, value in self.seconds.items() if name != "cpu")


def expand(spec: Spec, data_dir: Path | None = None) -> list[PlannedRun]:
    """All runs of a spec, split by split, so that an interrupted sweep has whole splits.

    Where a dataset is not in the data folder, its stand-in is planned.
    """
    for method in spec.methods:
        get_method(method.name)  # raises before anything runs
    return [
        _planned(problem, method, setting, novel, seed)
        for problem in (problem.resolved(data_dir) for problem in spec.problems)
        for setting in problem.settings
        for novel in problem.novel
        for seed in problem.seeds
        for method in spec.methods
        if problem.takes(method.name)
    ]


def _planned(problem: ProblemSpec, method: MethodSpec, setting: Setting, novel: str, seed: int) -> PlannedRun:
    return PlannedRun(
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


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)
