"""The gate's check of columns: does one alone tell source from target? Told in names of the data."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import listed
from openset.features.table.fitted import MISSING, OTHER
from openset.pipeline.summary import Check
from openset.stats.column_checks import OddColumn, odd_columns

_MOST_NAMES = 5

Rows = NDArray[np.floating]


class NamedColumns(NamedTuple):
    """The features of a table in their own units, of source and of target, and their names.

    ``columns`` has the column of the data that each feature was made of; empty if every feature is a column.
    """

    source: Rows
    target: Rows
    names: Sequence[str]
    columns: Sequence[str] = ()


def check_columns(table: NamedColumns, *, moved: bool = False) -> list[Check]:
    """Does a column alone tell source from target? In a batch that moved, several do, and that is the move."""
    odd = odd_by_column(table)
    if not odd:
        number = len(set(table.columns or table.names))
        passed = f"None of the {number} columns alone separates source and target."
        return [Check("separating column", "passed", passed)]
    of_move = []
    if moved and len(odd) > 1:
        of_move = [name for name, found in odd.items() if all(entry.kind == "range" for entry in found)]
    own = {name: found for name, found in odd.items() if name not in of_move}
    checks = [
        Check(
            "other unit" if found[0].kind == "unit" else "separating column",
            "failed",
            _sentence(name, found, table),
        )
        for name, found in list(own.items())[:_MOST_NAMES]
    ]
    if len(own) > _MOST_NAMES:
        others = listed([repr(name) for name in list(own)[_MOST_NAMES:]], 8)
        checks.append(Check("separating column", "failed", f"So do {len(own) - _MOST_NAMES} more: {others}."))
    if of_move:
        names = listed([repr(name) for name in of_move], _MOST_NAMES)
        many = f"Columns {names} each separate" if len(of_move) > 1 else f"Column {names} separates"
        checks.append(Check("separating column", "caution", f"{many} source and target: part of the move."))
    return checks


def odd_by_column(table: NamedColumns) -> dict[str, list[OddColumn]]:
    """The features that separate the domains, by the column of the data that they were made of."""
    column_of = dict(zip(table.names, table.columns or table.names, strict=True))
    found: dict[str, list[OddColumn]] = {}
    for entry in odd_columns(table.source, table.target, table.names):
        found.setdefault(column_of[entry.name], []).append(entry)
    return found


def _sentence(column: str, found: Sequence[OddColumn], table: NamedColumns) -> str:
    """What separates the domains in a column, and what to do; of several features the first is told of."""
    first, drop = found[0], f"--drop {shlex.quote(column)}"
    part = first.name[len(column) :] if first.name.startswith(column) else ""
    if part.startswith("=") or part.strip("_ ") == MISSING:
        return f"{_level_words(column, part, first, table)}: leave it out with {drop}."
    name, (low, high), (other_low, other_high) = repr(column), first.source, first.target
    ranges = f"{low:.6g} to {high:.6g} in source, {other_low:.6g} to {other_high:.6g} in target"
    if part.startswith("#"):
        return f"Column {name} alone separates source and target, by its levels: leave it out with {drop}."
    if part:
        ranges = f"{part.strip()}: {ranges}"
    if first.kind == "unit":
        times = f"{10 ** abs(first.power):,}".replace(",", " ")
        larger = "larger" if first.power > 0 else "smaller"
        return f"Values of column {name} are about {times} times {larger} in target: bring both to one unit."
    if first.kind == "constant":
        return (
            f"Column {name} is {low:.6g} in every source row and {other_low:.6g} in every target row: leave it "
            f"out with {drop}."
        )
    if first.kind == "number":
        return (
            f"Column {name} alone separates source and target ({ranges}), and nearly every value occurs once, as "
            f"in ids, dates and counters: pass --id {shlex.quote(column)} if it tells rows apart, else {drop}."
        )
    return f"Column {name} alone separates source and target ({ranges}): correct it, or use {drop}."


def _level_words(column: str, part: str, found: OddColumn, table: NamedColumns) -> str:
    """How often a level, or a gap, occurs in source and in target."""
    is_missing = part.strip("_ ") == MISSING
    level = "missing" if is_missing else part[1:] if part[1:].isalnum() else repr(part[1:])
    if part[1:] == OTHER:
        level = "a level that source lacks"
    index = list(table.names).index(found.name)
    shares = [float((rows[:, index] > 0.5).mean()) for rows in (table.source, table.target)]
    return f"{column!r} is {level} in {_rows_text(shares[0], 'source')} and in {_rows_text(shares[1], 'target')}"


def _rows_text(share: float, role: str) -> str:
    if share in (0.0, 1.0):
        return f"{'every' if share else 'no'} {role} row"
    return f"{100 * share:.0f} % of the {role} rows"
