"""Tables of an experiment: one neutral form, written as terminal text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openset.bench.runner import stored_plan
from openset.bench.runs import PlannedRun, code_version
from openset.bench.spec import METRICS, REFERENCE, Spec
from openset.bench.store import Store
from openset.bench.summary import Block, Comparison, Plan, Row, compare, summarise
from openset.registry import get_method

TESTABLE_SPLITS = 6
"""With fewer pairs a two-sided signed-rank test cannot fall below .05 (2 / 2⁵ = .06)."""
_LABEL_WIDTH = 11
_BETWEEN = 2
"""Blanks between two columns in the terminal."""
_TEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "±": r"$\pm$",
    "Δ": r"$\Delta$", "α": r"$\alpha$", "−": "$-$", "–": "--", "·": r"$\cdot$",
})  # fmt: skip
_WITH_THE_COLUMN_BEFORE = ("wins", "p")
_WITHOUT_WINS = ("top1",)
"""The paper counts wins of the open-set metrics only."""


@dataclass(frozen=True)
class Cell:
    """One printed cell."""

    text: str
    bold: bool = False
    dim: bool = False


@dataclass(frozen=True)
class Section:
    """Rows under a heading of their own."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Table:
    """A title, headings, sections of rows and notes below."""

    title: str
    headings: tuple[str, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Results:
    """An experiment's stored runs, summarised."""

    spec: Spec
    plan: Plan
    blocks: list[Block]
    comparisons: list[Comparison]
    code: str


def results_of(spec: Spec, store: Store, code: str | None = None, data_dir: Path | None = None) -> Results:
    """What the store holds of a spec, for this code version or another.

    The data folder says which runs were planned: those on the paper's data, if it is there, or on stand-ins.
    """
    plan = stored_plan(spec, store, code, data_dir)
    if not any(stored for _, stored in plan):
        versions = sorted({run.code_version for run in store.all() if run.spec == spec.name})
        hint = f" It holds runs of {', '.join(versions)}: choose with --code." if versions else ""
        raise ValueError(
            f"{store.path} holds no runs of {spec.name} for {code or code_version()}: "
            f"run `openset bench run {spec.argument}` first, and name the same --data.{hint}"
        )
    blocks = summarise(plan, spec.metrics)
    return Results(spec, plan, blocks, compare(blocks, spec.metrics), code or code_version())


def main_table(results: Results) -> Table:
    """Mean ± sd and wins of every method, a section for each dataset and setting."""
    metrics = results.spec.metrics
    headings = ["method"]
    for metric in metrics:
        headings += [METRICS[metric], *([] if metric in _WITHOUT_WINS else ["wins"])]
    panels: dict[str, list[Block]] = {}
    for block in results.blocks:
        panels.setdefault(block.panel, []).append(block)
    sections = [
        Section(
            f"{panel}: {_count(len(blocks[0].splits), 'split')}, novel fraction {_fractions(blocks)}",
            tuple(cells for block in blocks for row in block.rows for cells in _rows(row, metrics)),
        )
        for panel, blocks in panels.items()
    ]
    notes = [
        "Mean ± sd over novel classes and seeds; wins: splits on which a method is best, ties shared; "
        "s: mean CPU seconds of a run; best in bold.",
        *notes_of(results),
    ]
    return Table(title_of(results), (*headings, "s"), tuple(sections), tuple(notes))


def title_of(results: Results) -> str:
    """The experiment's title, which says when its data is not the paper's."""
    stand_in = " (on stand-in data)" if any(block.stand_in_for for block in results.blocks) else ""
    return f"{results.spec.title}{stand_in}"


def _fractions(blocks: Sequence[Block]) -> str:
    found = sorted({f"{block.novel_fraction:.2f}" for block in blocks})
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _rows(row: Row, metrics: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    cells = [Cell(row.label)]
    for metric in metrics:
        cell = row.cells[metric]
        cells.append(Cell(cell.text, bold=cell.is_best))
        if metric not in _WITHOUT_WINS:
            cells.append(Cell(str(cell.wins)))
    yield (*cells, Cell(_seconds(row.seconds)))
    if row.paper:
        printed = [Cell("  in the paper", dim=True)]
        for metric in metrics:
            printed.append(Cell(row.paper.get(metric, ""), dim=True))
            if metric not in _WITHOUT_WINS:
                printed.append(Cell(""))
        yield (*printed, Cell(""))


def _seconds(seconds: float) -> str:
    if math.isnan(seconds):
        return "–"
    return f"{seconds:.1f}" if seconds < 100 else f"{seconds:.0f}"


def notes_of(results: Results) -> Iterator[str]:
    """What a reader must know of the paper's figures, and of runs that are not in the table."""
    if any("?" in figure for block in results.blocks for row in block.rows for figure in row.paper.values()):
        yield "?: a figure of the paper that can't be right, by its other tables."
    if any("/" in figure for block in results.blocks for row in block.rows for figure in row.paper.values()):
        yield "a/b: figures of the paper for each novel class, of which it prints no mean."
    for name in results.spec.left_out:
        yield f"Not here: {name}, which needs {get_method(name).needs}."
    missing = sum(stored is None for _, stored in results.plan)
    if missing:
        yield f"{missing} of {len(results.plan)} runs are not stored yet: the table is of the others."
    yield from _failures(results)
    for block in results.blocks:
        if not block.same_data:
            yield f"{block.title}: runs of one split saw different rows (the data folder changed between them)."


def _failures(results: Results) -> Iterator[str]:
    """The first run that failed in each way: a fault that every split has would else fill the screen."""
    alike: dict[tuple[str, str], list[PlannedRun]] = {}
    for planned, stored in results.plan:
        if stored is not None and stored.result.failure:
            reason = stored.result.failure.strip().splitlines()[-1]
            alike.setdefault((planned.label, reason), []).append(planned)
    for (_, reason), (first, *others) in alike.items():
        yield f"Failed: {first.run}: {reason}" + (f" (and {len(others)} more like it)" if others else "")


def comparison_table(results: Results) -> Table | None:
    """The reference against every method: mean difference and Holm-corrected p; None with too few splits."""
    found = [c for c in results.comparisons if c.n >= TESTABLE_SPLITS]
    if not found:
        return None
    metrics = results.spec.metrics
    headings = ["against", *(text for metric in metrics for text in (f"Δ {METRICS[metric]}", "p"))]
    sections = []
    for block in dict.fromkeys(c.block for c in found):
        by_other: dict[str, dict[str, Comparison]] = {}
        for c in (c for c in found if c.block == block):
            by_other.setdefault(c.other, {})[c.metric] = c
        rows = []
        for other, by_metric in by_other.items():
            cells = [Cell(other)]
            for metric in metrics:
                tested = by_metric.get(metric)
                cells += _tested(tested) if tested is not None else (Cell("–"), Cell("–"))
            rows.append(tuple(cells))
        sections.append(Section(block, tuple(rows)))
    notes = [
        "Δ: mean of reference − other over splits. p: Wilcoxon's signed-rank test over splits, two-sided, exact, "
        "Holm-corrected over the methods; bold below .05.",
        *_beyond_reach(found),
    ]
    references = {c.reference for c in found}  # in a sweep a block has a reference of its own
    reference = references.pop() if len(references) == 1 else REFERENCE
    return Table(f"{reference} against every method", tuple(headings), tuple(sections), tuple(notes))


def _beyond_reach(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Say so where there are too few splits for the number of methods: such a test cannot tell a difference."""
    methods = Counter((c.block, c.metric) for c in comparisons)
    splits = {(c.block, c.metric): c.n for c in sorted(comparisons, key=lambda c: c.n)}  # the most of a family
    for n, others in dict.fromkeys((splits[family], others) for family, others in methods.items()):
        least = others * 2 / 2**n
        if least >= 0.05:
            yield f"With {n} splits and {others} methods to compare with, no p can fall below {p_text(least)}."


def _tested(comparison: Comparison) -> tuple[Cell, Cell]:
    p = comparison.p_holm
    return Cell(f"{comparison.difference:+.2f}"), Cell(p_text(p), bold=p < 0.05)


def p_text(p: float) -> str:
    """As papers print it."""
    return "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


# ---------------------------------------------------------------------- forms


def terminal(table: Table, width: int = 80) -> Any:
    """Something for rich to print: sections below each other in columns of one width.

    Columns that do not fit stand in a table of their own below, never cut off.
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = [row for section in table.sections for row in section.rows]
    widths = [max(len(cell.text) for cell in column) for column in zip(*rows, strict=True)]
    headings = [_wrapped(heading, width) for heading, width in zip(table.headings, widths, strict=True)]
    parts: list[Any] = [Text(table.title, style="bold")]
    for section in table.sections:
        parts.append(Text(section.title, style="italic"))  # as the table's own title it would wrap at its width
        for columns in _fitting(headings, widths, width):
            shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
            shown.add_column(headings[0], overflow="fold", min_width=min(widths[0], _LABEL_WIDTH))
            for i in columns:
                shown.add_column(headings[i], justify="right", no_wrap=True, min_width=widths[i])
            for row in section.rows:
                cells = (row[i] for i in (0, *columns))
                shown.add_row(*(Text(c.text, style="bold" if c.bold else "dim" if c.dim else "") for c in cells))
            parts.append(shown)
    return Group(*parts, *(Text(note, style="dim") for note in table.notes))


def _fitting(headings: Sequence[str], widths: Sequence[int], width: int) -> list[list[int]]:
    """The columns after the first, in as few tables as fit; wins and p stay with what they are of."""
    room = width + 1 - (min(widths[0], _LABEL_WIDTH) + _BETWEEN)  # the blank at the right edge may fall off
    kept_together: list[list[int]] = []
    for i in range(1, len(headings)):
        if headings[i] in _WITH_THE_COLUMN_BEFORE and kept_together:
            kept_together[-1].append(i)
        else:
            kept_together.append([i])
    tables: list[list[int]] = [[]]
    used = 0
    for columns in kept_together:
        needed = sum(max(widths[i], *map(len, headings[i].split("\n"))) + _BETWEEN for i in columns)
        if tables[-1] and used + needed > room:
            tables.append([])
            used = 0
        tables[-1] += columns
        used += needed
    return tables


def _wrapped(heading: str, width: int) -> str:
    """A heading broken at spaces where it is wider than its column, which would otherwise be cut off."""
    whole = heading.replace("Δ ", "Δ\N{NO-BREAK SPACE}")
    longest = max(map(len, whole.split(" ")))
    return "\n".join(textwrap.wrap(whole, max(width, longest)))


def markdown(table: Table, level: int = 1) -> str:
    """A Markdown table for each section, below a heading of the given level."""
    lines = [f"{'#' * level} {table.title}", ""]
    rule = "|".join(["---", *(["---:"] * (len(table.headings) - 1))])
    for section in table.sections:
        lines += [f"{'#' * (level + 1)} {section.title}", "", f"| {' | '.join(table.headings)} |", f"|{rule}|"]
        lines += [f"| {' | '.join(_marked(cell, '**{}**', _md) for cell in row)} |" for row in section.rows]
        lines.append("")
    return "\n".join([*lines, *(f"{note}\n" for note in table.notes)])


def _md(text: str) -> str:
    return text.replace("|", r"\|")


def latex(table: Table) -> str:
    """One LaTeX table with a rule between sections; needs no package."""
    width = len(table.headings)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_tex(table.title)}. {_tex(' '.join(table.notes))}}}",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\hline",
        " & ".join(map(_tex, table.headings)) + r" \\",
    ]
    for section in table.sections:
        lines += [r"\hline", rf"\multicolumn{{{width}}}{{l}}{{\textit{{{_tex(section.title)}}}}} \\"]
        lines += [
            " & ".join(_marked(cell, r"\textbf{{{}}}", _tex) for cell in row) + r" \\" for row in section.rows
        ]
    return "\n".join([*lines, r"\hline", r"\end{tabular}", r"\end{table}", ""])


def _marked(cell: Cell, pattern: str, escape: Callable[[str], str] = str) -> str:
    text = escape(cell.text)
    return pattern.format(text) if cell.bold and text else text


def _tex(text: str) -> str:
    """Text for LaTeX; a leading bracket is wrapped, since after the end of a row it would begin a length.

    >>> print(_tex("[0.1, 0.2] & 5 %"))
    {[}0.1, 0.2] \\& 5 \\%
    """
    escaped = text.translate(_TEX).replace("$\\alpha$\N{COMBINING CIRCUMFLEX ACCENT}", r"$\hat\alpha$")
    return f"{{[}}{escaped[1:]}" if escaped.startswith("[") else escaped


def comma_separated(results: Results) -> str:
    """Every figure at full precision, one line for each block, method and metric."""
    tests = {(c.block, c.other, c.metric): c.p_holm for c in results.comparisons}
    columns = ("problem", "x", "setting", "stand_in_for", "method", "label", "metric", "splits", "mean", "sd",
               "wins", "paper", "p_holm", "cpu_seconds")  # fmt: skip
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for block in results.blocks:
        for row in block.rows:
            for metric, cell in row.cells.items():
                p = tests.get((block.title, row.label, metric), "")
                done = len(block.splits) - row.n_failed - row.n_missing
                place = (block.problem, "" if block.x is None else block.x, block.setting, block.stand_in_for)
                about = (*place, row.method, row.label, metric, done)
                writer.writerow(
                    (*about, cell.mean, cell.sd, cell.wins, row.paper.get(metric, ""), p, row.seconds)
                )
    return file.getvalue()


def table_as_csv(table: Table) -> str:
    """A table as it is printed, its sections in the first column."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("section", *table.headings))
    for section in table.sections:
        writer.writerows((section.title, *(cell.text for cell in row)) for row in section.rows)
    return file.getvalue()
