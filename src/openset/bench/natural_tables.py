"""The tables of the natural suite: methods on natural and on built problems, and without a new class."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from openset.bench.problems import get_source
from openset.bench.results import Block, Results, by_block
from openset.bench.spec import METRICS
from openset.bench.suite_tables import mean_over_cells, method_labels
from openset.bench.table_formats import Cell, Section, Table

LEVEL = 0.05
"""A test with a p-value up to this finds a new class."""


def natural_table(results: Results) -> Table | None:
    """The first metric of every method by problem, natural and built ones apart; None without a new class."""
    labels, metric = method_labels(results), results.spec.metrics[0]
    parts: dict[str, list[Block]] = {}
    for block in results.blocks:
        if not _is_null(block):
            parts.setdefault("Natural" if _is_natural(results, block) else "Built", []).append(block)
    if not parts:
        return None
    sections = [
        Section(
            title,
            (
                *(
                    _line(block.problem, f"{block.novel_fraction:.2f}", [block], labels, metric)
                    for block in blocks
                ),
                _line("mean", "", blocks, labels, metric),
            ),
        )
        for title, blocks in parts.items()
    ]
    note = f"{METRICS[metric]}, means over seeds; new: share of the target; best in bold."
    return Table("Natural and built problems", ("problem", "new", *labels), tuple(sections), (note,))


def null_table(results: Results) -> Table | None:
    """What every method says where the new class was taken out; None if there is no such problem."""
    labels, blocks = method_labels(results), [block for block in results.blocks if _is_null(block)]
    if not blocks:
        return None
    shown: dict[str, tuple[str, Callable[[Sequence[float]], str]]] = {
        "Share of target rows called novel": ("called", lambda values: f"{np.mean(values):.3f}"),
        "The novel share is stated to be at least": ("estimated_low", lambda values: f"{np.mean(values):.3f}"),
        f"Splits with p up to {LEVEL:g}": ("p_value", _found),
    }
    sections = [
        Section(title, tuple(_said(block, labels, metric, text) for block in blocks))
        for title, (metric, text) in shown.items()
        if _is_known(blocks, metric)
    ]
    notes = ("Means over seeds. A method without a test of a new class has no p.",)
    return Table("The same targets without their new class", ("problem", *labels), tuple(sections), notes)


def _is_null(block: Block) -> bool:
    return block.novel_fraction == 0


def _is_known(blocks: Sequence[Block], metric: str) -> bool:
    """Whether any run has a value of the metric."""
    values = [row.values[metric] for block in blocks for row in block.rows if metric in row.values]
    return any(not np.isnan(of_row).all() for of_row in values)


def _is_natural(results: Results, block: Block) -> bool:
    planned, _ = by_block(results.plan)[block.problem, block.x, block.setting][0]
    return get_source(planned.run.dataset).is_natural


def _line(name: str, share: str, blocks: Sequence[Block], labels: Sequence[str], metric: str) -> tuple[Cell, ...]:
    means = [mean_over_cells(blocks, label, metric) for label in labels]
    best = max((round(mean, 3) for mean in means if not math.isnan(mean)), default=math.nan)
    values = [Cell("–" if math.isnan(mean) else f"{mean:.3f}", bold=round(mean, 3) == best) for mean in means]
    return Cell(name), Cell(share), *values


def _said(
    block: Block, labels: Sequence[str], metric: str, text: Callable[[Sequence[float]], str]
) -> tuple[Cell, ...]:
    by_label = {row.label: row.values[metric] for row in block.rows}
    values = [by_label[label][~np.isnan(by_label[label])].tolist() for label in labels]
    return Cell(block.problem), *(Cell(text(given) if given else "–") for given in values)


def _found(p_values: Sequence[float]) -> str:
    return f"{sum(p <= LEVEL for p in p_values)} of {len(p_values)}"
