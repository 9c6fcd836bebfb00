"""The tables of the development suite: CoLOR's default against other methods, one line per cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp

from openset.bench.results import Block, Results, paired
from openset.bench.spec import METRICS, REFERENCE
from openset.bench.table_formats import Cell, Section, Table, p_text
from openset.stats.comparison import holm

SMALL = 0.105
"""The largest novel fraction of a small cell: a tenth, and some room for sampling."""
_SMALL_CELLS = "With shift, at most a tenth novel"
_JUDGED = ("auprc", "oscr", "top1")


def suite_table(results: Results) -> Table:
    """AUPRC of every method, and of the default's best head by test labels, by cell; means over cells."""
    labels = method_labels(results)
    parts = _parts(results)
    sections = [
        Section(
            title, (*(_line(_name(block), [block], labels) for block in blocks), _line("mean", blocks, labels))
        )
        for title, blocks in parts.items()
    ]
    families = _families(parts.get(_SMALL_CELLS, []))
    if len(families) > 1:
        lines = tuple(_line(family, blocks, labels) for family, blocks in families.items())
        sections.append(Section(f"{_SMALL_CELLS}: means by family", lines))
    differences = [f"Δ {label}" for label in labels if label != REFERENCE]
    note = (
        "AUPRC, means over seeds; best head: of the default's ensemble, by test labels; Δ: gain of the default."
    )
    return Table(
        "The default against the others",
        ("cell", *labels, "best head", *differences),
        tuple(sections),
        (note,),
    )


def suite_tests_table(results: Results) -> Table | None:
    """The default against every other method by cell, if there is one: mean differences, and paired tests."""
    metrics = [metric for metric in results.spec.metrics if metric in _JUDGED]
    sections = [
        Section(f"Against {label}: {title}", tuple(_differences(blocks, label, metrics)))
        for label in method_labels(results)
        if label != REFERENCE
        for title, blocks in _parts(results).items()
    ]
    if not sections:
        return None
    headings = ("cell", *(text for metric in metrics for text in (f"Δ {METRICS[metric]}", "p")))
    note = (
        "Δ: mean gain of the default over seeds. p: paired t-test over seeds, two-sided, Holm-corrected over the "
        "cells of its section (five pairs are too few for a signed-rank test); bold: a loss with p below .05."
    )
    return Table("The default by cell, paired tests", headings, tuple(sections), (note,))


def paired_p(difference: NDArray[np.float64]) -> float:
    """Two-sided p-value of a paired t-test; NaN for fewer than two pairs.

    >>> round(paired_p(np.array([1.0, 2.0, 3.0])), 4)
    0.0742
    """
    if len(difference) < 2:
        return math.nan
    if np.ptp(difference) == 0:  # scipy warns, and returns NaN
        return float(difference[0] == 0)
    return float(ttest_1samp(difference, 0).pvalue)


def method_labels(results: Results) -> list[str]:
    """The labels of all methods, in the order of the spec."""
    return list(dict.fromkeys(row.label for block in results.blocks for row in block.rows))


def _parts(results: Results) -> dict[str, list[Block]]:
    """Shifted cells with a small new class, which the default is made for, and the others."""
    small = [block for block in results.blocks if block.setting == "shift" and block.novel_fraction <= SMALL]
    others = [block for block in results.blocks if block not in small]
    parts = {_SMALL_CELLS: small, "With a larger new class, or without shift": others}
    return {title: blocks for title, blocks in parts.items() if blocks}


def _name(block: Block) -> str:
    return block.problem if block.setting == "shift" else f"{block.problem}, no shift"


def _families(blocks: Sequence[Block]) -> dict[str, list[Block]]:
    """Blocks by family: what comes before the comma in the label of a cell."""
    families: dict[str, list[Block]] = {}
    for block in blocks:
        families.setdefault(block.problem.partition(",")[0], []).append(block)
    return families


def _differences(blocks: Sequence[Block], label: str, metrics: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    columns: list[list[Cell]] = []
    for metric in metrics:
        gains = [_gains(block, label, metric) for block in blocks]
        raw = np.array([paired_p(gain) for gain in gains])
        p_values = np.full(len(raw), math.nan)
        p_values[~np.isnan(raw)] = holm(raw[~np.isnan(raw)])
        means = [float(gain.mean()) if len(gain) else math.nan for gain in gains]
        columns.append([Cell(f"{mean:+.3f}") for mean in (*means, np.nanmean(means) if means else math.nan)])
        columns.append([*(_p_cell(p, mean) for p, mean in zip(p_values, means, strict=True)), Cell("")])
    names = [Cell(_name(block)) for block in blocks] + [Cell("mean")]
    return zip(names, *columns, strict=True)


def _p_cell(p: float, mean: float) -> Cell:
    return Cell("–") if math.isnan(p) else Cell(p_text(p), bold=p < 0.05 and mean < 0)


def _gains(block: Block, label: str, metric: str) -> NDArray[np.float64]:
    """Default − other on every split that both have."""
    values = {row.label: row.values[metric] for row in block.rows}
    default, other = paired(values[REFERENCE], values[label])
    return default - other


def _line(name: str, blocks: Sequence[Block], labels: Sequence[str]) -> tuple[Cell, ...]:
    means = {label: mean_over_cells(blocks, label, "auprc") for label in labels}
    best = max(means.values())
    return (
        Cell(name),
        *(Cell(f"{means[label]:.3f}", bold=means[label] == best) for label in labels),
        Cell(f"{mean_over_cells(blocks, REFERENCE, 'best_head_auprc'):.3f}", dim=True),
        *(Cell(f"{means[REFERENCE] - means[label]:+.3f}") for label in labels if label != REFERENCE),
    )


def mean_over_cells(blocks: Sequence[Block], label: str, metric: str) -> float:
    """The mean over cells of the mean over splits; NaN if a method has no values."""
    found = [row.values[metric] for block in blocks for row in block.rows if row.label == label]
    means = [float(np.nanmean(values)) for values in found if not np.isnan(values).all()]
    return float(np.mean(means)) if means else float("nan")
