"""From stored runs to the figures of a table: means, spread, wins, paired tests, times. Pure functions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from openset.bench.runs import PlannedRun
from openset.bench.spec import REFERENCE
from openset.bench.store import StoredRun
from openset.stats.comparison import holm, shared_wins, signed_rank_test

Plan = Sequence[tuple[PlannedRun, StoredRun | None]]
LOWER_IS_BETTER = ("fpr_at_95_tpr",)
SYNTHETIC_TABLES = ("synthetic-r-eta", "synthetic-theta")


@dataclass(frozen=True)
class Cell:
    """One metric of one method over all splits."""

    mean: float
    sd: float
    """Over splits with n − 1; NaN for a single one."""
    wins: int
    is_best: bool
    """Whether the mean is the best of its column, to the decimals printed."""

    @property
    def text(self) -> str:
        """Mean ± sd as it is printed."""
        return _printed(self.mean, self.sd)


@dataclass(frozen=True)
class Row:
    """One method in a block."""

    label: str
    method: str
    x: float | None
    cells: Mapping[str, Cell]
    values: Mapping[str, NDArray[np.float64]]
    """For every metric one value a split, NaN where the run failed or is not stored."""
    seconds: float
    """Mean CPU seconds of a run: on one thread, its time on an idle machine."""
    n_failed: int
    n_missing: int
    paper: Mapping[str, str] = field(default_factory=dict)
    """What the paper prints for it."""


@dataclass(frozen=True)
class Block:
    """All methods on one dataset in one setting, at one value of a swept option if there is one."""

    problem: str
    x: float | None
    setting: str
    splits: tuple[tuple[str, int], ...]
    rows: tuple[Row, ...]
    novel_fraction: float
    stand_in_for: str
    same_data: bool
    """Whether all runs of each split saw the same rows."""

    @property
    def name(self) -> str:
        """The dataset, and what it stands in for."""
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
    """The reference against another method on one metric, paired over splits."""

    block: str
    metric: str
    reference: str
    other: str
    n: int
    difference: float
    """Mean of reference − other; above 0 where the reference is higher."""
    p: float
    p_holm: float
    """Corrected for the number of methods that the reference is compared with in this block and metric."""


def summarise(plan: Plan, metrics: Sequence[str]) -> list[Block]:
    """Blocks in the order of the spec, one for each dataset and setting that has stored runs."""
    return [
        _block(problem, x, setting, items, metrics)
        for (problem, x, setting), items in by_block(plan).items()
        if any(stored for _, stored in items)
    ]


def by_block(plan: Plan) -> dict[tuple[str, float | None, str], list[tuple[PlannedRun, StoredRun | None]]]:
    """What was planned for each problem, value of its swept option, and setting."""
    groups: dict[tuple[str, float | None, str], list[tuple[PlannedRun, StoredRun | None]]] = {}
    for planned, stored in plan:
        groups.setdefault((planned.problem, planned.problem_x, planned.run.setting), []).append((planned, stored))
    return groups


def _block(problem: str, x: float | None, setting: str, items: Plan, metrics: Sequence[str]) -> Block:
    splits = tuple(dict.fromkeys(planned.run.split for planned, _ in items))
    by_row: dict[tuple[str, float | None], dict[tuple[str, int], StoredRun | None]] = {}
    methods: dict[tuple[str, float | None], str] = {}
    checksums: dict[tuple[str, int], set[str]] = {}
    for planned, stored in items:
        row = (planned.label, planned.x)
        methods[row] = planned.run.method
        by_row.setdefault(row, {})[planned.run.split] = stored
        if stored is not None and not stored.result.failure:
            checksums.setdefault(planned.run.split, set()).add(stored.result.manifest_checksum)
    values = {
        metric: np.array([[_value(runs.get(split), metric) for runs in by_row.values()] for split in splits])
        for metric in (*metrics, "novel_fraction")
    }
    cells = {metric: _cells(values[metric], metric) for metric in metrics}
    ok = [stored for _, stored in items if stored is not None and not stored.result.failure]
    stand_in_for = ok[0].result.stand_in_for if ok else ""
    paper = {} if stand_in_for else paper_figures(items[0][0].paper, setting)
    rows = [
        Row(
            label=_row_label(label, row_x),
            method=methods[label, row_x],
            x=row_x,
            cells={metric: cells[metric][i] for metric in metrics},
            values={metric: values[metric][:, i] for metric in metrics},
            seconds=_mean(s.result.seconds["cpu"] for s in runs.values() if s and not s.result.failure),
            n_failed=sum(bool(s and s.result.failure) for s in runs.values()),
            n_missing=sum(s is None for s in runs.values()),
            paper={
                metric: figures[_row_label(label, row_x)]
                for metric, figures in paper.items()
                if metric in metrics and _row_label(label, row_x) in figures
            },
        )
        for i, ((label, row_x), runs) in enumerate(by_row.items())
    ]
    fraction = values["novel_fraction"]
    return Block(
        problem,
        x,
        setting,
        splits,
        tuple(rows),
        novel_fraction=_mean(fraction[~np.isnan(fraction)]),
        stand_in_for=stand_in_for,
        same_data=all(len(seen) == 1 for seen in checksums.values()),
    )


def _row_label(label: str, x: float | None) -> str:
    return label if x is None else f"{label} {x:g}"


def _value(stored: StoredRun | None, metric: str) -> float:
    return float("nan") if stored is None else stored.result.metrics.get(metric, float("nan"))


def _cells(values: NDArray[np.float64], metric: str) -> list[Cell]:
    sign = -1.0 if metric in LOWER_IS_BETTER else 1.0
    wins = shared_wins(sign * values)
    means = [_mean(column[~np.isnan(column)]) for column in values.T]
    printed = [sign * round(mean, 2) for mean in means]
    best = max((p for p in printed if not np.isnan(p)), default=float("nan"))
    return [
        Cell(mean, _sd(column[~np.isnan(column)]), int(won), p == best)
        for mean, column, won, p in zip(means, values.T, wins, printed, strict=True)
    ]


def _mean(values: Iterable[float]) -> float:
    found = np.array(list(values))
    return float(found.mean()) if len(found) else float("nan")


def _sd(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def mean_and_sd(values: Sequence[float]) -> str:
    """Of some values, as it is printed.

    >>> mean_and_sd([0.1, 0.3]), mean_and_sd([0.1]), mean_and_sd([])
    ('0.20±0.14', '0.10', '–')
    """
    return _printed(_mean(values), _sd(np.array(values)))


def _printed(mean: float, sd: float) -> str:
    if np.isnan(mean):
        return "–"
    return f"{mean:.2f}" if np.isnan(sd) else f"{mean:.2f}±{sd:.2f}"


def compare(blocks: Iterable[Block], metrics: Sequence[str]) -> list[Comparison]:
    """CoLOR in every block against every other row, Holm-corrected within block and metric."""
    found: list[Comparison] = []
    for block in blocks:
        reference = _reference(block)
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


def _reference(block: Block) -> Row | None:
    """The row called after CoLOR, else the only one that is CoLOR; none among several variants."""
    named = [row for row in block.rows if row.label == _row_label(REFERENCE, row.x)]
    own = named or [row for row in block.rows if row.method == REFERENCE]
    return own[0] if len(own) == 1 else None


def paired(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both values of every split that has both."""
    both = ~np.isnan(a) & ~np.isnan(b)
    return a[both], b[both]


def paper_figures(table: str | None, setting: str) -> dict[str, dict[str, str]]:
    """What the paper prints, by metric and method: "mean±sd, wins", with "?" where it can't be right.

    >>> paper_figures("cifar100", "shift")["auroc"]["color"]
    '0.77±0.09'
    """
    if table in SYNTHETIC_TABLES:
        return _synthetic_figures(table)
    text = (resources.files("openset.bench") / "paper.toml").read_text("utf-8")
    figures: dict[str, dict[str, str]] = tomllib.loads(text).get(table or "", {}).get(setting, {})
    return figures


def _synthetic_figures(table: str) -> dict[str, dict[str, str]]:
    """The synthetic tables; no AUPRC of theirs can be right: some lie below the least possible one."""
    from openset.theory.sweep import PAPER_R_ETA, PAPER_THETA

    figures: dict[str, dict[str, str]] = {"auroc": {}, "auprc": {}}
    for x, printed in (PAPER_R_ETA if table == "synthetic-r-eta" else PAPER_THETA).items():
        for label, (area, precision) in (("dd", printed[:2]), ("color", printed[2:])):
            figures["auroc"][_row_label(label, x)] = f"{area:.2f}"
            figures["auprc"][_row_label(label, x)] = f"{precision:.2f}?"
    return figures
