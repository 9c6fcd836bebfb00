"""A table in one neutral form, written as terminal text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_LABEL_WIDTH = 11
_BETWEEN = 2
"""Blanks between two columns in the terminal."""
_TEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "±": r"$\pm$",
    "Δ": r"$\Delta$", "α": r"$\alpha$", "−": "$-$", "–": "--", "·": r"$\cdot$",
})  # fmt: skip
_WITH_THE_COLUMN_BEFORE = ("wins", "p")


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


def p_text(p: float) -> str:
    """A p-value as papers print it."""
    return "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0")


def terminal(table: Table, width: int = 80) -> Any:
    """A renderable for rich: sections below each other, with columns of equal width.

    Columns that do not fit are printed in a table below; nothing is cut off.
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
        parts.append(
            Text(section.title, style="italic")
        )  # as a title of the table it would wrap at the table's width
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
    """The columns after the first, in as few tables as fit; wins and p stay beside their column."""
    room = width + 1 - (min(widths[0], _LABEL_WIDTH) + _BETWEEN)  # the blank at the right edge may be cut off
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
    """A heading with line breaks at spaces where it is wider than its column."""
    whole = heading.replace("Δ ", "Δ\N{NO-BREAK SPACE}")
    longest = max(map(len, whole.split(" ")))
    return "\n".join(textwrap.wrap(whole, max(width, longest)))


def markdown(table: Table, level: int = 1) -> str:
    """Markdown: a table for each section, below a heading of the given level."""
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
    """LaTeX: one table with a rule between sections; needs no package."""
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
    """Text for LaTeX; a leading bracket is wrapped, because after the end of a row it would start a length.

    >>> print(_tex("[0.1, 0.2] & 5 %"))
    {[}0.1, 0.2] \\& 5 \\%
    """
    escaped = text.translate(_TEX).replace("$\\alpha$\N{COMBINING CIRCUMFLEX ACCENT}", r"$\hat\alpha$")
    return f"{{[}}{escaped[1:]}" if escaped.startswith("[") else escaped


def table_as_csv(table: Table) -> str:
    """CSV: the cells as printed, with the section in the first column."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("section", *table.headings))
    for section in table.sections:
        writer.writerows((section.title, *(cell.text for cell in row)) for row in section.rows)
    return file.getvalue()
