"""The results of a spec: its stored runs, and their means, spread, wins, times and paired tests."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from openset.bench.paper import paper_figures
from openset.bench.provenance import code_version
from openset.bench.runs import PlannedRun, expand
from openset.bench.spec import REFERENCE, Spec
from openset.bench.store import Store, StoredRun
from openset.stats.comparison import holm, shared_wins, signed_rank_test

Plan = Sequence[tuple[PlannedRun, StoredRun | None]]
LOWER_IS_BETTER = ("fpr_at_95_tpr",)
UNRANKED = ("called", "estimated_low", "p_value")
"""What a method said. No value is the best one without the truth, so none is marked."""
PAPER_RULE = "color_paper"
"""Algorithm 1: the method that the paper's claims are about."""
COLOR_METHODS = (REFERENCE, PAPER_RULE)


@dataclass(frozen=True)
class Average:
    """One metric of one method over all splits."""

    mean: float
    sd: float
    """Over splits, with n − 1; NaN for a single split."""
    wins: int
    is_best: bool
    """Whether the mean is the best of its column, as printed."""

    @property
    def text(self) -> str:
        """Mean ± sd as printed."""
        return _printed(self.mean, self.sd)


@dataclass(frozen=True)
class Row:
    """One method in a block."""

    label: str
    method: str
    x: float | None
    averages: Mapping[str, Average]
    values: Mapping[str, NDArray[np.float64]]
    """For every metric one value per split; NaN where the run failed or is not stored."""
    seconds: float
    """Mean CPU seconds of a run: on one thread, its time on an idle machine."""
    n_failed: int
    n_missing: int
    paper: Mapping[str, str] = field(default_factory=dict)
    """The figures that the paper prints for it."""


@dataclass(frozen=True)
class Block:
    """All methods on one problem in one setting, at one value of its swept option if it has one."""

    problem: str
    x: float | None
    setting: str
    splits: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]
    novel_fraction: float
    stand_in_for: str
    same_data: bool
    """Whether all runs of each split used the same rows."""

    @property
    def name(self) -> str:
        """The problem, and the dataset that it replaces."""
        return f"{self.problem} (stand-in for {self.stand_in_for})" if self.stand_in_for else self.problem

    @property
    def panel(self) -> str:
        """The name and the setting."""
        return f"{self.name}, {'with' if self.setting == 'shift' else 'without'} shift"

    @property
    def title(self) -> str:
        """The panel and the value of the swept option."""
        return self.panel if self.x is None else f"{self.panel}, at {self.x:g}"


@dataclass(frozen=True)
class Comparison:
    """The reference method against another on one metric, paired over splits."""

    block: str
    metric: str
    reference: str
    other: str
    n: int
    difference: float
    """Mean of reference − other."""
    p: float
    p_holm: float
    """Corrected for the number of methods compared with the reference in this block and metric."""


@dataclass(frozen=True)
class Results:
    """The stored runs of a spec, summarised."""

    spec: Spec
    plan: Plan
    blocks: list[Block]
    comparisons: list[Comparison]
    paper_comparisons: list[Comparison] = field(default_factory=list)
    """Algorithm 1 against every other method, where it is not the reference already."""

    @property
    def code(self) -> str:
        """The code versions that the runs were made with; several where later code did not touch some methods."""
        return ", ".join(sorted({stored.code_version for _, stored in self.plan if stored is not None}))


def results_of(spec: Spec, store: Store, code: str | None = None, data_dir: Path | None = None) -> Results:
    """Summarise the stored runs of a spec: those that today's code would give, or those made with ``code``.

    The data folder decides which runs were planned: on the paper's data if it is there, else on stand-ins.
    """
    plan = stored_plan(spec, store, code, data_dir)
    if not any(stored for _, stored in plan):
        versions = sorted({run.code_version for run in store.all() if run.spec == spec.name})
        hint = f" It has runs of {', '.join(versions)}: choose one with --code." if versions else ""
        raise ValueError(
            f"{store.path} has no runs of {spec.name} for {code or code_version()}: "
            f"run `openset bench run {spec.argument}` first, and give the same --data.{hint}"
        )
    blocks = summarise(plan, spec.metrics)
    comparisons = compare(blocks, spec.metrics, reference_row)
    return Results(spec, plan, blocks, comparisons, compare(blocks, spec.metrics, paper_rule_row))


def stored_plan(
    spec: Spec, store: Store, code: str | None = None, data_dir: Path | None = None
) -> list[tuple[PlannedRun, StoredRun | None]]:
    """Every planned run, with its stored result if there is one, by today's code or made with ``code``."""
    planned = expand(spec, data_dir)
    if code is not None:
        made = {item.run: item for item in store.all() if item.code_version == code}
        return [(plan, made.get(plan.run)) for plan in planned]
    keys = [plan.run.key for plan in planned]
    stored = store.get(keys)
    return [(plan, stored.get(key)) for plan, key in zip(planned, keys, strict=True)]


def summarise(plan: Plan, metrics: Sequence[str]) -> list[Block]:
    """Blocks in the order of the spec, one for each problem and setting that has stored runs."""
    return [
        _block(problem, x, setting, items, metrics)
        for (problem, x, setting), items in by_block(plan).items()
        if any(stored for _, stored in items)
    ]


def by_block(plan: Plan) -> dict[tuple[str, float | None, str], list[tuple[PlannedRun, StoredRun | None]]]:
    """The plan by problem, value of its swept option, and setting."""
    groups: dict[tuple[str, float | None, str], list[tuple[PlannedRun, StoredRun | None]]] = {}
    for planned, stored in plan:
        groups.setdefault((planned.problem, planned.problem_x, planned.run.setting), []).append((planned, stored))
    return groups


def _block(problem: str, x: float | None, setting: str, items: Plan, metrics: Sequence[str]) -> Block:
    splits = tuple(dict.fromkeys(planned.run.split for planned, _ in items))
    by_row: dict[tuple[str, float | None], dict[tuple[str, int], StoredRun | None]] = {}
    methods: dict[tuple[str, float | None], str] = {}
    for planned, stored in items:
        methods[planned.label, planned.x] = planned.run.method
        by_row.setdefault((planned.label, planned.x), {})[planned.run.split] = stored
    values = {
        metric: np.array([[_value(runs.get(split), metric) for runs in by_row.values()] for split in splits])
        for metric in (*metrics, "novel_fraction")
    }
    averages = {metric: _averages(values[metric], metric) for metric in metrics}
    succeeded = [(plan, stored) for plan, stored in items if stored is not None and not stored.result.failure]
    stand_in_for = succeeded[0][1].result.stand_in_for if succeeded else ""
    paper = {} if stand_in_for else paper_figures(items[0][0].paper, setting)
    rows = [
        Row(
            label=(name := _row_label(label, row_x)),
            method=methods[label, row_x],
            x=row_x,
            averages={metric: averages[metric][i] for metric in metrics},
            values={metric: values[metric][:, i] for metric in metrics},
            seconds=_mean(s.result.seconds["cpu"] for s in runs.values() if s and not s.result.failure),
            n_failed=sum(bool(s and s.result.failure) for s in runs.values()),
            n_missing=sum(s is None for s in runs.values()),
            paper={
                metric: printed[name]
                for metric, printed in paper.items()
                if metric in metrics and name in printed
            },
        )
        for i, ((label, row_x), runs) in enumerate(by_row.items())
    ]
    fraction = values["novel_fraction"]
    checksums = {(plan.run.split, stored.result.manifest_checksum) for plan, stored in succeeded}
    return Block(
        problem,
        x,
        setting,
        splits,
        tuple(rows),
        novel_fraction=_mean(fraction[~np.isnan(fraction)]),
        stand_in_for=stand_in_for,
        same_data=len(checksums) == len({split for split, _ in checksums}),
    )


def _row_label(label: str, x: float | None) -> str:
    return label if x is None else f"{label} {x:g}"


def _value(stored: StoredRun | None, metric: str) -> float:
    return float("nan") if stored is None else stored.result.metrics.get(metric, float("nan"))


def _averages(values: NDArray[np.float64], metric: str) -> list[Average]:
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    wins = shared_wins(sign * values) if metric not in UNRANKED else np.zeros(values.shape[1])
    means = [_mean(column[~np.isnan(column)]) for column in values.T]
    printed = [sign * round(mean, 2) for mean in means]
    ranked = [] if metric in UNRANKED else [p for p in printed if not np.isnan(p)]
    best = max(ranked, default=float("nan"))
    return [
        Average(mean, _sd(column[~np.isnan(column)]), int(won), p == best)
        for mean, column, won, p in zip(means, values.T, wins, printed, strict=True)
    ]


def _mean(values: Iterable[float]) -> float:
    found = np.array(list(values))
    return float(found.mean()) if len(found) else float("nan")


def _sd(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def mean_and_sd(values: Sequence[float]) -> str:
    """Mean ± sd of some values, as printed.

    >>> mean_and_sd([0.1, 0.3]), mean_and_sd([0.1]), mean_and_sd([])
    ('0.20±0.14', '0.10', '–')
    """
    return _printed(_mean(values), _sd(np.array(values)))


def _printed(mean: float, sd: float) -> str:
    if np.isnan(mean):
        return "–"
    return f"{mean:.2f}" if np.isnan(sd) else f"{mean:.2f}±{sd:.2f}"


def compare(
    blocks: Iterable[Block], metrics: Sequence[str], reference_of: Callable[[Block], Row | None]
) -> list[Comparison]:
    """Compare one row of every block with every other, Holm-corrected within block and metric."""
    found: list[Comparison] = []
    for block in blocks:
        reference = reference_of(block)
        if reference is None:
            continue
        others = [row for row in block.rows if row is not reference]
        for metric in metrics:
            pairs = [paired(reference.values[metric], row.values[metric]) for row in others]
            p_values = [signed_rank_test(a, b) for a, b in pairs]
            for row, (a, b), p, corrected in zip(others, pairs, p_values, holm(p_values), strict=True):
                difference = _mean(a - b)
                found.append(
                    Comparison(
                        block.title, metric, reference.label, row.label, len(a), difference, p, float(corrected)
                    )
                )
    return found


def reference_row(block: Block) -> Row | None:
    """The row with the reference's label, else the only one that is a CoLOR; None if there are several."""
    named = [row for row in block.rows if row.label == _row_label(REFERENCE, row.x)]
    found = named or [row for row in block.rows if row.method in COLOR_METHODS]
    return found[0] if len(found) == 1 else None


def paper_rule_row(block: Block) -> Row | None:
    """The row of Algorithm 1, unless there are several or it is the reference."""
    found = [row for row in block.rows if row.method == PAPER_RULE]
    return found[0] if len(found) == 1 and found[0] is not reference_row(block) else None


def paired(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The values of both on every split that has both."""
    both = ~np.isnan(a) & ~np.isnan(b)
    return a[both], b[both]


def results_as_csv(results: Results) -> str:
    """CSV with every figure at full precision, one line per block, method and metric."""
    tests = {(c.block, c.other, c.metric): c.p_holm for c in results.comparisons}
    columns = ("problem", "x", "setting", "stand_in_for", "method", "label", "metric", "splits", "mean", "sd",
               "wins", "paper", "p_holm", "cpu_seconds")  # fmt: skip
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for block in results.blocks:
        for row in block.rows:
            for metric, average in row.averages.items():
                p = tests.get((block.title, row.label, metric), "")
                done = len(block.splits) - row.n_failed - row.n_missing
                writer.writerow(
                    (
                        *(block.problem, "" if block.x is None else block.x, block.setting, block.stand_in_for),
                        *(row.method, row.label, metric, done),
                        *(average.mean, average.sd, average.wins),
                        *(row.paper.get(metric, ""), p, row.seconds),
                    )
                )
    return file.getvalue()
