"""Which tables show an experiment, and the development suite's: a line a cell, the default beside its judges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openset.bench.summary import REFERENCE, Block
from openset.bench.tables import Cell, Results, Section, Table, comparison_table, heads_table, main_table

SMALL = 0.105
"""Cells up to this novel fraction count as small: a tenth, and what sampling adds to it."""


def tables_of(results: Results) -> list[Table]:
    """What an experiment is shown by: its table, what else its spec names, paired tests if there can be."""
    if results.spec.table == "suite":
        return [suite_table(results), main_table(results)]
    heads = [heads_table(results)] if results.spec.table == "heads" else []
    tests = comparison_table(results)
    return [main_table(results), *heads, *([tests] if tests is not None else [])]


def suite_table(results: Results) -> Table:
    """AUPRC of every method and of the default's best head in hindsight, by cell, and the means over cells."""
    labels = list(dict.fromkeys(row.label for block in results.blocks for row in block.rows))
    small = [block for block in results.blocks if block.setting == "shift" and block.novel_fraction <= SMALL]
    others = [block for block in results.blocks if block not in small]
    sections = [
        Section(
            title, (*(_line(block.problem, [block], labels) for block in blocks), _line("mean", blocks, labels))
        )
        for title, blocks in (
            ("With shift, a tenth novel at most", small),
            ("With a larger new class, or without shift", others),
        )
        if blocks
    ]
    differences = [f"Δ {label}" for label in labels if label != REFERENCE]
    note = "AUPRC, means over seeds; best head: of the same ensemble, chosen by test labels; Δ: the gain."
    return Table(
        "The default against what it is judged by",
        ("cell", *labels, "best head", *differences),
        tuple(sections),
        (note,),
    )


def _line(name: str, blocks: Sequence[Block], labels: Sequence[str]) -> tuple[Cell, ...]:
    means = {label: _mean(blocks, label, "auprc") for label in labels}
    best = max(means.values())
    return (
        Cell(name),
        *(Cell(f"{means[label]:.3f}", bold=means[label] == best) for label in labels),
        Cell(f"{_mean(blocks, REFERENCE, 'best_head_auprc'):.3f}", dim=True),
        *(Cell(f"{means[REFERENCE] - means[label]:+.3f}") for label in labels if label != REFERENCE),
    )


def _mean(blocks: Sequence[Block], label: str, metric: str) -> float:
    """The mean over cells of the mean over splits; NaN where a method has none."""
    found = [row.values[metric] for block in blocks for row in block.rows if row.label == label]
    means = [float(np.nanmean(values)) for values in found if not np.isnan(values).all()]
    return float(np.mean(means)) if means else float("nan")
