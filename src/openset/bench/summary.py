"""One page: the paper's headline table with ours beside it, and which of the paper's claims hold here.

No figure is written by hand. Ours are read from the pages of results, the paper's from ``paper.toml``. Which
cells are compared for which claim is in ``summary.toml``, and whether a claim holds follows from the cells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from openset._utils.typed import read_as, read_toml
from openset.bench.claims import Claim, Finding, judge, verdict_of
from openset.bench.paper import paper_figures
from openset.bench.result_pages import Pages, number_of
from openset.bench.table_formats import Cell, Section, Table, markdown

METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "oscr": "OSCR"}
NOT_MEASURED = "–"
WINS = " wins"


@dataclass(frozen=True)
class Column:
    """Our figures of one dataset: where they stand, and what they are to be compared with."""

    name: str
    data: str
    """paper's, paper's rows, stand-in or natural."""
    page: str
    sections: tuple[str, ...]
    """The beginnings of the sections' titles; of several, a cell is the mean."""
    paper: str = ""
    """The paper's table, if it has one for this dataset."""
    paper_name: str = ""


@dataclass(frozen=True)
class SummaryFile:
    """The whole of ``summary.toml``."""

    title: str
    notice: str
    methods: dict[str, str]
    old_labels: dict[str, dict[str, str]]
    """What pages of before ``color_paper`` had its name call the methods, by page; "" if they are not there."""
    column: tuple[Column, ...]
    claim: tuple[Claim, ...]


def load_summary() -> SummaryFile:
    """What ``summary.toml`` says."""
    content = (resources.files("openset.bench") / "summary.toml").read_bytes()
    return read_as(SummaryFile, read_toml(content, "summary.toml"), "summary.toml", refuse_unknown=True)


def headline_table(summary: SummaryFile, pages: Pages) -> Table:
    """Method by method, the paper's figure and ours for every dataset; the headings say on which data."""
    headings = ["method"]
    for column in summary.column:
        if column.paper:
            headings.append(f"{column.paper_name} (paper's)")
        headings.append(f"{column.name} ({column.data}{_n_splits(column, pages)})")
    sections = [
        Section(title, tuple(_headline_row(summary, pages, metric, title, name) for name in summary.methods))
        for metric, heading in METRICS.items()
        for title in (heading, f"{heading}{WINS}")
    ]
    notes = (
        "Mean ± sd over novel classes and seeds; paper's: as it prints it. Natural: the mean over its problems.",
        "Wins: on how many splits a method is the best of its page. Ours have the library's CoLOR and more "
        "methods beside the paper's, so they are no measure of Algorithm 1 against the paper's baselines.",
        "–: the paper, or our page, has no such figure. ?: cannot be right, by the paper's other tables.",
    )
    return Table("The paper's headline table, and ours beside it", tuple(headings), tuple(sections), notes)


def _n_splits(column: Column, pages: Pages) -> str:
    """How many splits a column has, as the title of its section says it."""
    n = _splits(column, pages)
    return f", {n} split{'' if n == 1 else 's'}" + (" each" if len(column.sections) > 1 else "") if n else ""


def _splits(column: Column, pages: Pages) -> int:
    found = [
        int(match.group(1))
        for table in pages.tables(column.page)
        if table.section.startswith(column.sections[0]) and (match := re.search(r": (\d+) split", table.section))
    ]
    return found[0] if found else 0


def _headline_row(summary: SummaryFile, pages: Pages, metric: str, heading: str, name: str) -> tuple[Cell, ...]:
    cells = [Cell(summary.methods[name])]
    for column in summary.column:
        if column.paper:
            setting = "wins" if heading.endswith(WINS) else "shift"
            printed = paper_figures(column.paper, setting).get(metric, {})
            cells.append(Cell(printed.get(name, NOT_MEASURED), dim=True))
        cells.append(Cell(_our_cell(column, pages, heading, name)))
    return tuple(cells)


def _our_cell(column: Column, pages: Pages, heading: str, name: str) -> str:
    label = pages.label(column.page, name)
    found = [
        text
        for section in column.sections
        for table in pages.tables(column.page)
        if table.section.startswith(section) and (text := table.cell(label, heading)) is not None
    ]
    if len(found) < len(column.sections):
        return NOT_MEASURED
    if len(column.sections) == 1:
        return f"{found[0]}/{_splits(column, pages)}" if heading.endswith(WINS) else found[0]
    if heading.endswith(WINS):  # of single splits, on which two methods may share one
        return NOT_MEASURED
    numbers = [number_of(text) for text in found[: len(column.sections)]]
    return f"{sum(numbers) / len(numbers):.2f}"


def summary_page(folder: Path, command: str) -> str:
    """The page as Markdown, from the pages of results in a folder."""
    summary = load_summary()
    pages = Pages(folder, summary.old_labels)
    judged = [(claim, [judge(evidence, pages) for evidence in claim.each()]) for claim in summary.claim]
    parts = [f"# {summary.title}", "", summary.notice, "", "Made by", "", f"    {command}", ""]
    parts += ["from the pages it links to; each names its command, date and versions.", ""]
    parts.append(markdown(headline_table(summary, pages), level=2))
    parts += ["## Which of the paper's claims hold here", "", *_claims_table(judged), ""]
    parts += ["## The evidence", ""]
    for claim, findings in judged:
        parts += [f"### {claim.text}", "", f"{claim.where}. Here it **{verdict_of(findings)}**.", ""]
        lines = Counter(f"- {finding.word}: {finding.text}" for finding in findings)
        parts += [line if n == 1 else f"{line} ({n} comparisons)" for line, n in lines.items()]
        parts += ["", *([claim.remark, ""] if claim.remark else [])]
    return "\n".join(parts)


def _claims_table(judged: Sequence[tuple[Claim, Sequence[Finding]]]) -> Iterator[str]:
    yield "| the paper's claim | here | on |"
    yield "|---|---|---|"
    for claim, findings in judged:
        measured = [
            one.data for one, finding in zip(claim.each(), findings, strict=True) if finding.holds is not None
        ]
        yield f"| {claim.text} | {verdict_of(findings)} | {', '.join(dict.fromkeys(measured)) or NOT_MEASURED} |"
