"""A fitted table applied to rows: values in their own units, then scaled features, and what was odd."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import counted, did_you_mean, listed
from openset.data.readers.cells import Cells
from openset.features.table.column_kinds import kind_of_cells
from openset.features.table.fitted import FittedTable, TableColumn

Table = Mapping[str, Cells]
DAY = 86400.0
MOSTLY_UNUSABLE = 0.5
"""A column is of another kind than in the fit if more of its cells than this cannot be read."""
_MOST_LEVELS = 20
"""Unseen levels that are remembered for each column."""


@dataclass(frozen=True)
class TableNotes:
    """What was odd in some rows: levels that source lacks, cells that cannot be read, and missing ones.

    Every entry is a number of rows by column; ``unseen`` has one for each level. ``missing`` counts only columns
    that were complete when the table was fitted.
    """

    unseen: Mapping[str, Counter[str]] = field(default_factory=dict)
    unusable: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)

    def joined(self, other: TableNotes) -> TableNotes:
        """The notes of both parts together."""
        names = dict.fromkeys([*self.unseen, *other.unseen])
        both = {name: self.unseen.get(name, Counter()) + other.unseen.get(name, Counter()) for name in names}
        most = {name: Counter(dict(levels.most_common(_MOST_LEVELS))) for name, levels in both.items()}
        return TableNotes(most, self.unusable + other.unusable, self.missing + other.missing)

    def sentences(self) -> list[str]:
        """One sentence for each thing to know.

        >>> TableNotes({"town": Counter({"Ulm": 3})}).sentences()
        ["Column 'town' has levels that source lacks: 'Ulm' (3 rows). They count as one level, (other)."]
        """
        found = [
            f"Column {name!r} has levels that source lacks: "
            f"{listed([_level(*found) for found in levels.most_common()], 3)}. "
            "They count as one level, (other)."
            for name, levels in self.unseen.items()
        ]
        found += [
            f"{counted(count, 'value')} of column {name!r} cannot be read as in source: taken as missing."
            for name, count in self.unusable.items()
        ]
        return found + [
            f"{counted(count, 'value')} missing in column {name!r}, which was complete in the fit: the source's "
            "median or most common level is taken."
            for name, count in self.missing.items()
        ]


def _level(level: str, count: int) -> str:
    return f"{level!r} ({counted(count, 'row')})"


@dataclass(frozen=True, eq=False)
class TableValues:
    """Features in their own units, one column each, and the notes."""

    values: NDArray[np.floating]
    notes: TableNotes


def values_of(fitted: FittedTable, table: Table) -> TableValues:
    """The features of rows in their own units: numbers as they are, 0 and 1 for levels and flags."""
    unseen: dict[str, Counter[str]] = {}
    unusable: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    parts: list[NDArray[Any]] = []
    for column in fitted.used:
        cells = _cells(column, table)
        _refuse_other_type(column, cells)
        values, gaps, new = _read(column, cells)
        absent = int(cells.missing.sum())
        lost = int(gaps.sum()) - absent
        if lost:
            _refuse_other_kind(column, cells, lost)
            unusable[column.name] = lost
        if absent and not column.has_flag:
            missing[column.name] = absent
        if new:
            unseen[column.name] = new
        parts += values
        if column.has_flag:
            parts.append(gaps.astype(np.float64))
    return TableValues(_stacked(parts), TableNotes(unseen, unusable, missing))


def scaled(fitted: FittedTable, values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The features that models take, from values in their own units."""
    if fitted.mean is None or fitted.factor is None:
        return values
    return (tamed(fitted, values) - np.array(fitted.mean)) * np.array(fitted.factor)


def tamed(fitted: FittedTable, values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Values with heavy tails as their logarithm: asinh(x / tail), which is x near 0."""
    found = np.array(values, dtype=np.float64)
    index = 0
    for column in fitted.used:
        if column.tail is not None:
            found[:, index] = np.arcsinh(found[:, index] / column.tail)
        index += len(column.features)
    return found


def date_parts(seconds: NDArray[np.float64], parts: list[str], origin: float) -> list[NDArray[np.float64]]:
    """Parts of times: month, day of the month, weekday from Monday, hour, and days since ``origin``."""
    days = np.floor(seconds / DAY)
    calendar = days.astype("datetime64[D]")
    month = calendar.astype("datetime64[M]")
    found = {
        "month": month.astype(np.int64) % 12 + 1,
        "day": (calendar - month.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": (days + 3) % 7,
        "hour": (seconds - days * DAY) / 3600,
        "elapsed days": (seconds - origin) / DAY,
    }
    return [np.asarray(found[part], dtype=np.float64) for part in parts]


def bucket(level: str, buckets: int) -> int:
    """The hashed column of a level; the same on every machine."""
    return zlib.crc32(level.encode("utf-8", "surrogatepass")) % buckets


def cells_as(cells: Cells, kind: str, form: str) -> NDArray[Any]:
    """Cells as numbers of a kind: seconds of dates (in this form) and of durations, 0 and 1 of booleans."""
    if kind == "date":
        return cells.times(form)
    readers = {"boolean": cells.booleans, "duration": cells.durations, "number": cells.numbers}
    return readers[kind]()


def _read(column: TableColumn, cells: Cells) -> tuple[list[NDArray[Any]], NDArray[np.bool_], Counter[str]]:
    """The values of a column's features but its flag, which cells are missing, and levels that source lacks."""
    if column.kind == "category":
        return _indicators(column, cells)
    numbers = cells_as(cells, column.kind, column.form)
    gaps = np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(len(numbers), dtype=bool)
    if gaps.any():
        numbers = np.where(gaps, numbers.dtype.type(column.fill), numbers)
    if column.kind != "date":
        return [numbers], gaps, Counter()
    return date_parts(numbers, column.parts, float(column.fill or 0.0)), gaps, Counter()


def _indicators(column: TableColumn, cells: Cells) -> tuple[list[NDArray[Any]], NDArray[np.bool_], Counter[str]]:
    codes, levels = cells.coded()
    known = {level: index for index, level in enumerate(column.levels)}
    width = column.buckets or len(column.levels)
    places = [
        width if level not in known else bucket(level, width) if column.buckets else known[level]
        for level in levels
    ]
    fill = str(column.fill)
    at_fill = bucket(fill, width) if column.buckets else known[fill]
    place = np.array([*places, at_fill])[codes]  # a missing cell has the code −1
    values = np.zeros((len(codes), width + 1))
    values[np.arange(len(codes)), place] = 1.0
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    new = {level: int(counts[i]) for i, level in enumerate(levels) if places[i] == width and counts[i]}
    return [values], codes < 0, Counter(dict(Counter(new).most_common(_MOST_LEVELS)))


def _cells(column: TableColumn, table: Table) -> Cells:
    if column.name not in table:
        hint = did_you_mean(column.name, table)
        raise ValueError(f"column {column.name!r} is missing; the run was fitted with it.{hint}")
    return table[column.name]


_TYPES = {
    "number": ("number", "boolean", "text"),
    "boolean": ("number", "boolean", "text"),
    "date": ("time", "text"),
    "duration": ("duration", "text"),
    "category": ("number", "boolean", "text", "time", "duration"),
}
"""What the cells of a column of each kind may be."""


def _refuse_other_type(column: TableColumn, cells: Cells) -> None:
    if cells.kind not in _TYPES[column.kind] and not cells.missing.all():
        now = {"time": "dates", "duration": "durations", "nested": "lists or records"}.get(cells.kind, "numbers")
        raise ValueError(
            f"column {column.name!r} holds {_PLURAL[column.kind]} in the fit, and now {now}: correct it."
        )


def _refuse_other_kind(column: TableColumn, cells: Cells, lost: int) -> None:
    present = int((~cells.missing).sum())
    if lost > MOSTLY_UNUSABLE * present and present > 1:
        _, levels = cells.coded()
        now = kind_of_cells(cells).name
        raise ValueError(
            f"column {column.name!r} holds {_PLURAL[column.kind]} in the fit, and now {_PLURAL.get(now, now)}, "
            f"such as {levels[0]!r}: correct it."
        )


_PLURAL = {
    "number": "numbers",
    "boolean": "true and false",
    "category": "categories",
    "date": "dates",
    "duration": "durations",
    "id": "text",
}


def _stacked(parts: list[NDArray[Any]]) -> NDArray[np.floating]:
    """One matrix of columns and blocks. Numbers of single precision stay so; whole numbers become floats."""
    dtype = np.result_type(*parts)
    widths = [1 if part.ndim == 1 else part.shape[1] for part in parts]
    stacked = np.empty((len(parts[0]), sum(widths)), dtype if dtype.kind == "f" else np.float64)
    start = 0
    for part, width in zip(parts, widths, strict=True):
        stacked[:, start : start + width] = part if part.ndim == 2 else part[:, None]
        start += width
    return stacked
