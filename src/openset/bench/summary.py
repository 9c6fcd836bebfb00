"""One page: the paper's headline table with ours beside it, and which of the paper's claims hold here.

No figure is written by hand. Ours are read from the pages of results, the paper's from ``paper.toml``. Which
cells are compared for which claim is in ``summary.toml``, and whether a claim holds follows from the cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from openset._utils.typed import read_as, read_toml
from openset.bench.paper import paper_figures
from openset.bench.table_formats import Cell, Section, Table, markdown

METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "oscr": "OSCR"}
NOT_MEASURED = "–"


@dataclass(frozen=True)
class Column:
    """Our figures of one dataset: where they stand, and what they are to be compared with."""

    name: str
    data: str
    """paper's, paper's rows, stand-in or natural."""
    page: str
    sections: tuple[str, ...]
    """The beginnings of the sections' titles; of several, a cell is the mean."""
    labels: dict[str, str]
    """What the page calls a method."""
    paper: str = ""
    """The paper's table, if it has one for this dataset."""
    paper_name: str = ""


@dataclass(frozen=True)
class Evidence:
    """One comparison of cells of a page; figures are compared as they are printed.

    ``left`` must be above the best of ``right`` minus ``margin``, in the section or in one of its own; or all
    ``rows`` must lie within ``spread``.
    """

    data: str
    page: str
    metric: str
    section: str = "with shift"
    left: str = ""
    left_section: str = ""
    right: tuple[str, ...] = ()
    right_section: str = ""
    margin: float = 0.0
    rows: tuple[str, ...] = ()
    spread: float = 0.0


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, where it stands, and what speaks for or against it here."""

    text: str
    where: str
    evidence: tuple[Evidence, ...]
    remark: str = ""


@dataclass(frozen=True)
class SummaryFile:
    """The whole of ``summary.toml``."""

    title: str
    notice: str
    methods: dict[str, str]
    column: tuple[Column, ...]
    claim: tuple[Claim, ...]


@dataclass(frozen=True)
class PageTable:
    """A table of a page: the title of its section, its headings, its rows."""

    section: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def cell(self, row: str, heading: str) -> str | None:
        """The text of a cell; None where there is none."""
        if heading in self.headings:
            for cells in self.rows:
                if cells[0] == row:
                    return cells[self.headings.index(heading)]
        return None


class Pages:
    """The tables of all pages of results in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, list[PageTable]] = {}

    def tables(self, page: str) -> list[PageTable]:
        """All tables of a page."""
        if page not in self._read:
            path = self.folder / f"{page}.md"
            if not path.is_file():
                raise ValueError(f"{self.folder} has no page {page}.md: give the folder of the pages of results.")
            self._read[page] = list(_tables(path.read_text("utf-8")))
        return self._read[page]

    def text(self, page: str, section: str, row: str, heading: str) -> str:
        """A cell of the first table of a section that has it."""
        for table in self.tables(page):
            found = table.cell(row, heading) if section in table.section else None
            if found is not None:
                return found
        raise ValueError(f"{page}.md has no row {row!r} with {heading} in a section {section!r}.")

    def number(self, page: str, section: str, row: str, heading: str) -> float:
        """The figure of a cell, as printed."""
        return _number(self.text(page, section, row, heading))


def _tables(text: str) -> Iterator[PageTable]:
    section = ""
    lines: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append([cell.strip().replace("**", "") for cell in line.strip("|").split("|")])
            continue
        if len(lines) > 2:
            yield PageTable(section, tuple(lines[0]), tuple(map(tuple, lines[2:])))
        lines = []
        if line.startswith("#"):
            section = line.lstrip("# ")


def _number(text: str) -> float:
    """The figure that a cell begins with.

    >>> _number("0.85±0.10"), _number("0.3")
    (0.85, 0.3)
    """
    found = re.match(r"[-+]?\d*\.?\d+", text)
    if found is None:
        raise ValueError(f"{text!r} is no figure.")
    return float(found.group())


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
        headings.append(f"{column.name} ({column.data})")
    sections = [
        Section(heading, tuple(_headline_row(summary, pages, metric, heading, name) for name in summary.methods))
        for metric, heading in METRICS.items()
    ]
    notes = (
        "Mean ± sd over novel classes and seeds; paper's: as it prints it. Natural: the mean over its problems.",
        "–: the paper, or our page, has no such figure. ?: cannot be right, by the paper's other tables.",
    )
    return Table("The paper's headline table, and ours beside it", tuple(headings), tuple(sections), notes)


def _headline_row(summary: SummaryFile, pages: Pages, metric: str, heading: str, name: str) -> tuple[Cell, ...]:
    cells = [Cell(summary.methods[name])]
    for column in summary.column:
        if column.paper:
            printed = paper_figures(column.paper, "shift").get(metric, {})
            cells.append(Cell(printed.get(name, NOT_MEASURED), dim=True))
        cells.append(Cell(_our_cell(column, pages, heading, name)))
    return tuple(cells)


def _our_cell(column: Column, pages: Pages, heading: str, name: str) -> str:
    label = column.labels.get(name, name)
    found = [
        text
        for section in column.sections
        for table in pages.tables(column.page)
        if table.section.startswith(section) and (text := table.cell(label, heading)) is not None
    ]
    if len(found) < len(column.sections):
        return NOT_MEASURED
    if len(column.sections) == 1:
        return found[0]
    numbers = [_number(text) for text in found[: len(column.sections)]]
    return f"{sum(numbers) / len(numbers):.2f}"


@dataclass(frozen=True)
class Finding:
    """What one piece of evidence shows."""

    holds: bool
    text: str


def judge(evidence: Evidence, pages: Pages) -> Finding:
    """Compare the cells of a piece of evidence."""
    page, metric = evidence.page, evidence.metric
    section = "" if evidence.section == Evidence.section else f", {evidence.section}"
    about = f"{metric}, [{page}]({page}.md){section} ({evidence.data})"
    if evidence.rows:
        numbers = [pages.number(page, evidence.section, row, metric) for row in evidence.rows]
        width = round(max(numbers) - min(numbers), 4)
        rows = f"{evidence.rows[0]} to {evidence.rows[-1]}"
        text = f"{about}: {rows} lie within {width:.2f} ({min(numbers):.2f} to {max(numbers):.2f})"
        return Finding(width <= evidence.spread, f"{text}; {evidence.spread:.2f} asked for")
    left_section = evidence.left_section or evidence.section
    right_section = evidence.right_section or evidence.section
    left = pages.number(page, left_section, evidence.left, metric)
    others = {row: pages.number(page, right_section, row, metric) for row in evidence.right}
    best = max(others, key=lambda row: others[row])
    among = f", the best of {len(others)}" if len(others) > 1 else ""
    same = left_section == right_section
    of_left, of_right = ("", "") if same else (f" {left_section}", f" {right_section}")
    allowed = f", {evidence.margin:.2f} allowed" if evidence.margin else ""
    text = f"{about}: {evidence.left}{of_left} {left:.2f}, {best}{of_right} {others[best]:.2f}{among}{allowed}"
    return Finding(round(left - others[best] + evidence.margin, 4) > 0, text)


def verdict_of(findings: Sequence[Finding]) -> str:
    """Holds, holds in part or does not, by how many findings speak for a claim.

    >>> verdict_of([Finding(True, ""), Finding(False, "")])
    'holds in part (1 of 2)'
    """
    n = sum(finding.holds for finding in findings)
    if n == len(findings):
        return f"holds ({n} of {n})"
    return f"holds in part ({n} of {len(findings)})" if n else f"does not hold (0 of {len(findings)})"


def summary_page(folder: Path, command: str) -> str:
    """The page as Markdown, from the pages of results in a folder."""
    summary, pages = load_summary(), Pages(folder)
    judged = [(claim, [judge(evidence, pages) for evidence in claim.evidence]) for claim in summary.claim]
    parts = [f"# {summary.title}", "", summary.notice, "", "Made by", "", f"    {command}", ""]
    parts += ["from the pages it links to; each names its command, date and versions.", ""]
    parts.append(markdown(headline_table(summary, pages), level=2))
    parts += ["## Which of the paper's claims hold here", "", *_claims_table(judged), ""]
    parts += ["## The evidence", ""]
    for claim, findings in judged:
        parts += [f"### {claim.text}", "", f"{claim.where}. Here it **{verdict_of(findings)}**.", ""]
        parts += [f"- {'for' if finding.holds else 'against'}: {finding.text}" for finding in findings]
        parts += ["", *([claim.remark, ""] if claim.remark else [])]
    return "\n".join(parts)


def _claims_table(judged: Sequence[tuple[Claim, Sequence[Finding]]]) -> Iterator[str]:
    yield "| the paper's claim | here | on |"
    yield "|---|---|---|"
    for claim, findings in judged:
        data = ", ".join(dict.fromkeys(evidence.data for evidence in claim.evidence))
        yield f"| {claim.text} | {verdict_of(findings)} | {data} |"
