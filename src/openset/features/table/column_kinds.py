"""What a column of a table holds, decided by its cells alone, so that every file format gives the same answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from openset.data.readers.cells import DATE_FORMATS, ISO, Cells

USED = ("number", "boolean", "category", "date", "duration")
"""Kinds that features are made of."""
MOSTLY = 0.95
"""A column of text is one of numbers or times if at least this share of its cells is."""
MOST_UNUSABLE = 0.5
"""A person may say that a column is of numbers or dates if at most this share of its cells is not."""
_ALL_DIFFERENT, _MANY_LEVELS = 0.9, 20
_LONG_WORDS = 4
"""A column of mostly different texts of so many words on average is free text."""


class Kind(NamedTuple):
    """The kind of a column, the format of its times, and the share of its cells that are not of this kind."""

    name: str
    form: str = ISO
    unusable: float = 0.0


def kind_of_cells(cells: Cells) -> Kind:
    """The kind of a column: one of ``USED``, or ``text``, ``id``, ``nested`` or ``empty``, which are not used."""
    if cells.kind == "nested":
        return Kind("nested")
    present = ~cells.missing
    if not present.any():
        return Kind("empty")
    if cells.kind != "text":
        return Kind({"time": "date"}.get(cells.kind, cells.kind))
    readings = [
        Kind("boolean", unusable=_unusable(cells.booleans(), present)),
        Kind("number", unusable=_unusable(cells.numbers(), present)),
        Kind("date", ISO, _unusable(cells.times(), present)),
        Kind("duration", unusable=_unusable(cells.durations(), present)),
    ]
    found = min(readings, key=lambda kind: kind.unusable)
    if found.unusable <= 1 - MOSTLY:
        return found
    return _other_dates(cells) or _levels_or_text(cells)


def set_kind(cells: Cells, name: str) -> Kind:
    """The kind that a person set. A ValueError if most cells cannot be read so."""
    present = ~cells.missing
    if cells.kind == "nested" and name not in ("text", "id"):
        raise ValueError("it holds lists or records")
    if not present.any():
        return Kind("empty")
    if name in ("category", "text", "id"):
        return Kind(name)
    if name == "number":
        kind, what = Kind(name, ISO, _unusable(cells.numbers(), present)), "numbers"
    else:
        as_iso = Kind(name, ISO, _unusable(cells.times(), present))
        kind = as_iso if as_iso.unusable <= 1 - MOSTLY else _other_dates(cells, MOST_UNUSABLE) or as_iso
        what = "dates such as 2024-03-31"
    if kind.unusable > MOST_UNUSABLE:
        _, levels = cells.coded()
        raise ValueError(f"most of its values are no {what}: the first is {levels[0]!r}")
    return kind


def _unusable(read: np.ndarray, present: np.ndarray) -> float:
    return float(np.isnan(read[present]).mean())


def _other_dates(cells: Cells, most_unusable: float = 1 - MOSTLY) -> Kind | None:
    """Dates in one of the usual formats; None if no format fits, or two that give different dates."""
    present = ~cells.missing
    _, levels = cells.coded()
    with_marks = sum(level.count(".") == 2 or level.count("/") == 2 for level in levels)
    if with_marks < (1 - most_unusable) * len(levels):
        return None
    read = {form: cells.times(form)[present] for form in DATE_FORMATS}
    fitting = {form: times for form, times in read.items() if np.isnan(times).mean() <= most_unusable}
    first = next(iter(fitting.values()), None)
    if first is None or any(not np.array_equal(first, times, equal_nan=True) for times in fitting.values()):
        return None
    form = next(iter(fitting))
    return Kind("date", form, float(np.isnan(first).mean()))


def _levels_or_text(cells: Cells) -> Kind:
    codes, levels = cells.coded()
    present = int((codes >= 0).sum())
    words = float(np.mean([len(level.split()) for level in levels]))
    if len(levels) > _MANY_LEVELS:
        if len(levels) > present / 2 and words >= _LONG_WORDS:
            return Kind("text")
        if len(levels) > _ALL_DIFFERENT * present:
            return Kind("id" if words < 2 else "text")
    return Kind("category")
