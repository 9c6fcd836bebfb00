"""One page: the paper's headline table with ours beside it, and which of the paper's claims hold here.

No figure is written by hand. Ours are read from the pages of results, the paper's from ``paper.toml``. Which
cells are compared for which claim is in ``summary.toml``, and whether a claim holds follows from the cells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from openset._utils.typed import read_as, read_toml
from openset.bench.paper import paper_figures
from openset.bench.table_formats import Cell, Section, Table, markdown

METRICS = {"auroc": "AUROC", "auprc": "AUPRC", "oscr": "OSCR"}
NOT_MEASURED = "–"
NEW_LABEL = "color_paper"
"""What Algorithm 1 is called since the library's CoLOR is ``color``."""


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
class Evidence:
    """One comparison of cells of a page; figures are compared as they are printed.

    ``left`` must be above the best of ``right`` minus ``margin``, in the section or in one of its own; or all
    ``rows``, in all ``sections`` if they are given, must lie within ``spread``; or one of them below ``below``.
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
    sections: tuple[str, ...] = ()
    spread: float = 0.0
    below: float = 0.0
    run: str = ""
    """The experiment that gives these cells; if they are not there yet, the evidence is not measured."""


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
    old_labels: dict[str, dict[str, str]]
    """What pages of before ``color_paper`` had its name call the methods, by page; "" if they are not there."""
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


class MissingCell(ValueError):
    """A page, or a cell of it, is not there."""


class Pages:
    """The tables of all pages of results in a folder."""

    def __init__(self, folder: Path, old_labels: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.folder = folder
        self.old_labels = old_labels or {}
        self._read: dict[str, list[PageTable]] = {}

    def has(self, page: str) -> bool:
        """Whether the folder has the page."""
        return (self.folder / f"{page}.md").is_file()

    def tables(self, page: str) -> list[PageTable]:
        """All tables of a page."""
        if page not in self._read:
            path = self.folder / f"{page}.md"
            if not path.is_file():
                raise MissingCell(
                    f"{self.folder} has no page {page}.md: give the folder of the pages of results."
                )
            self._read[page] = list(_tables(path.read_text("utf-8")))
        return self._read[page]

    def label(self, page: str, row: str) -> str:
        """What the page calls a row: its name, or the old one on a page that has no ``color_paper``."""
        if any(cells[0].startswith(NEW_LABEL) for table in self.tables(page) for cells in table.rows):
            return row
        name, space, value = row.partition(" ")
        return self.old_labels.get(page, {}).get(name, name) + space + value

    def text(self, page: str, section: str, row: str, heading: str) -> str:
        """A cell of the first table of a section that has it."""
        label = self.label(page, row)
        for table in self.tables(page):
            found = table.cell(label, heading) if section in table.section else None
            if found is not None:
                return found
        raise MissingCell(f"{page}.md has no row {label!r} with {heading} in a section {section!r}.")

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
    """The figure that a cell begins with, or the mean in brackets that ends it.

    >>> _number("0.85±0.10"), _number("0.3"), _number("0.937 0.968 (0.952)")
    (0.85, 0.3, 0.952)
    """
    found = re.search(r"\((\d*\.?\d+)\)$", text) or re.match(r"([-+]?\d*\.?\d+)", text)
    if found is None:
        raise ValueError(f"{text!r} is no figure.")
    return float(found.group(1))


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
        Section(heading, tuple(_headline_row(summary, pages, metric, heading, name) for name in summary.methods))
        for metric, heading in METRICS.items()
    ]
    notes = (
        "Mean ± sd over novel classes and seeds; paper's: as it prints it. Natural: the mean over its problems.",
        "–: the paper, or our page, has no such figure. ?: cannot be right, by the paper's other tables.",
    )
    return Table("The paper's headline table, and ours beside it", tuple(headings), tuple(sections), notes)


def _n_splits(column: Column, pages: Pages) -> str:
    """How many splits a column has, as the title of its section says it."""
    found = [
        match.group(1)
        for table in pages.tables(column.page)
        if table.section.startswith(column.sections[0])
        and (match := re.search(r": (\d+ splits?)", table.section))
    ]
    return f", {found[0]}" + (" each" if len(column.sections) > 1 else "") if found else ""


def _headline_row(summary: SummaryFile, pages: Pages, metric: str, heading: str, name: str) -> tuple[Cell, ...]:
    cells = [Cell(summary.methods[name])]
    for column in summary.column:
        if column.paper:
            printed = paper_figures(column.paper, "shift").get(metric, {})
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
        return found[0]
    numbers = [_number(text) for text in found[: len(column.sections)]]
    return f"{sum(numbers) / len(numbers):.2f}"


@dataclass(frozen=True)
class Finding:
    """What one piece of evidence shows; ``holds`` is None if it was not measured."""

    holds: bool | None
    text: str

    @property
    def word(self) -> str:
        """For, against or not measured."""
        return {True: "for", False: "against", None: "not measured"}[self.holds]


def judge(evidence: Evidence, pages: Pages) -> Finding:
    """Compare the cells of a piece of evidence."""
    page = evidence.page
    section = f", {evidence.section}" if evidence.section not in ("", Evidence.section) else ""
    link = f"[{Path(page).name}]({page}.md)" if pages.has(page) else f"{page}.md"
    about = f"{evidence.metric}, {link}{section} ({evidence.data})"
    try:
        return _spread(evidence, pages, about) if evidence.rows else _difference(evidence, pages, about)
    except MissingCell:
        if not evidence.run:
            raise
        return Finding(None, f"{about}: `openset bench run {evidence.run}` measures it")


def _spread(evidence: Evidence, pages: Pages, about: str) -> Finding:
    """Whether all rows lie within the spread asked for, or one of them below a value."""
    sections = evidence.sections or (evidence.section,)
    cells = [(section, row) for section in sections for row in evidence.rows]
    numbers = [pages.number(evidence.page, section, row, evidence.metric) for section, row in cells]
    first, last = evidence.rows[0], evidence.rows[-1]
    if evidence.below:
        text = f"{about}: {first} to {last} go from {min(numbers):.2f} to {max(numbers):.2f}"
        return Finding(min(numbers) < evidence.below, f"{text}; one below {evidence.below:.2f} asked for")
    width = round(max(numbers) - min(numbers), 4)
    rows = f"{first} to {last} lie" if len(evidence.rows) > 1 else f"{first} in {len(sections)} sections lies"
    text = f"{about}: {rows} within {width:.2f} ({min(numbers):.2f} to {max(numbers):.2f})"
    return Finding(width <= evidence.spread, f"{text}; {evidence.spread:.2f} asked for")


def _difference(evidence: Evidence, pages: Pages, about: str) -> Finding:
    """Whether one row is above the best of others."""
    page, metric = evidence.page, evidence.metric
    left_section = evidence.left_section or evidence.section
    right_section = evidence.right_section or evidence.section
    left = pages.number(page, left_section, evidence.left, metric)
    others = {row: pages.number(page, right_section, row, metric) for row in evidence.right}
    best = max(others, key=lambda row: others[row])
    among = f", the best of {len(others)}" if len(others) > 1 else ""
    same = left_section == right_section
    of_left, of_right = ("", "") if same else (f" {left_section}", f" {right_section}")
    allowed = f", {evidence.margin:.2f} allowed" if evidence.margin else ""
    ours, theirs = _as_printed(left, others[best])
    text = f"{about}: {evidence.left}{of_left} {ours}, {best}{of_right} {theirs}{among}{allowed}"
    return Finding(round(left - others[best] + evidence.margin, 4) > 0, text)


def _as_printed(*numbers: float) -> list[str]:
    """Figures with two digits, or three where one of them has more than two."""
    digits = 2 if all(round(number, 2) == number for number in numbers) else 3
    return [f"{number:.{digits}f}" for number in numbers]


def verdict_of(findings: Sequence[Finding]) -> str:
    """Holds, holds in part or does not, by how many of the measured findings speak for a claim.

    >>> verdict_of([Finding(True, ""), Finding(False, ""), Finding(None, "")])
    'holds in part (1 of 2; 1 not measured)'
    """
    measured = [finding for finding in findings if finding.holds is not None]
    if not measured:
        return "is not measured"
    n, total = sum(bool(finding.holds) for finding in measured), len(measured)
    left = f"; {len(findings) - total} not measured" if total < len(findings) else ""
    word = "holds" if n == total else "holds in part" if n else "does not hold"
    return f"{word} ({n} of {total}{left})"


def summary_page(folder: Path, command: str) -> str:
    """The page as Markdown, from the pages of results in a folder."""
    summary = load_summary()
    pages = Pages(folder, summary.old_labels)
    judged = [(claim, [judge(evidence, pages) for evidence in claim.evidence]) for claim in summary.claim]
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
        data = ", ".join(dict.fromkeys(evidence.data for evidence in claim.evidence))
        yield f"| {claim.text} | {verdict_of(findings)} | {data} |"
