"""The tables of pages of results, read back from their Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

NEW_LABEL = "color_paper"
"""What Algorithm 1 is called since the library's CoLOR is ``color``."""
REPEATED = ("wins", "p")
"""Headings that stand once for each metric: in a :class:`PageTable` the metric's comes before them."""


@dataclass(frozen=True)
class PageTable:
    """A table of a page: its title, that of its section, its headings, its rows."""

    title: str
    """The last heading of level 2 above it."""
    section: str
    """The last heading of any level above it."""
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

    def text(self, page: str, section: str, row: str, heading: str, title: str = "") -> str:
        """A cell of the first table of a section, and with this title, that has it."""
        label = self.label(page, row)
        for table in self.tables(page):
            here = section in table.section and title in table.title
            found = table.cell(label, heading) if here else None
            if found is not None:
                return found
        raise MissingCell(f"{page}.md has no row {label!r} with {heading} in a section {section!r}.")

    def number(self, page: str, section: str, row: str, heading: str) -> float:
        """The figure of a cell, as printed."""
        return number_of(self.text(page, section, row, heading))


def _tables(text: str) -> Iterator[PageTable]:
    title = section = ""
    lines: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append([cell.strip().replace("**", "") for cell in line.strip("|").split("|")])
            continue
        if len(lines) > 2:
            yield PageTable(title, section, _headings(lines[0]), tuple(map(tuple, lines[2:])))
        lines = []
        if line.startswith("#"):
            section = line.lstrip("# ")
            title = section if line.startswith("## ") else title


def _headings(cells: list[str]) -> tuple[str, ...]:
    """The headings, each of which then stands once.

    >>> _headings(["method", "AUROC", "wins", "AUPRC", "wins"])
    ('method', 'AUROC', 'AUROC wins', 'AUPRC', 'AUPRC wins')
    """
    before = ["", *cells]
    return tuple(
        f"{last} {cell}" if cell in REPEATED else cell for last, cell in zip(before, cells, strict=False)
    )


def number_of(text: str) -> float:
    """The figure that a cell begins with, or the mean in brackets that ends it.

    >>> number_of("0.85±0.10"), number_of("0.3"), number_of("0.937 0.968 (0.952)")
    (0.85, 0.3, 0.952)
    """
    found = re.search(r"\((\d*\.?\d+)\)$", text) or re.match(r"([-+]?\d*\.?\d+)", text)
    if found is None:
        raise ValueError(f"{text!r} is no figure.")
    return float(found.group(1))
