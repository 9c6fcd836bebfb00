"""A row as a person reads it: text, picture, columns, or only a vector; and the known rows nearest to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.typed import plain
from openset.data.readers.open import open_source
from openset.data.readers.records import Records

MOST_COLUMNS = 60
MOST_LETTERS = 20_000
PICTURE = 640
"""The longer side of a picture on the page."""
_MOST_VALUE = 300
_CHUNK_ROWS = 65536


@dataclass(frozen=True)
class Column:
    """A column of a row: its value as text, and how unusual it is for source; ``note`` says that in words."""

    name: str
    value: str
    unusual: float
    note: str


def original_columns(
    path: str | None, records: Records, leave_out: set[str], *, vectors: bool = False
) -> dict[str, list[Any]]:
    """The file's own columns of the rows that were read, ``leave_out`` aside; none of data frames.

    This is the only place where a review opens the run's files. ``vectors`` are columns of whole vectors.
    """
    if path is None:
        return {}
    opened = open_source(path)
    kinds = {name: kind for name, kind in opened.kinds.items() if name not in leave_out}
    names = [name for name, kind in kinds.items() if vectors or kind != "vector"]
    columns: dict[str, list[Any]] = {name: [None] * len(records) for name in names}
    order = np.argsort(records.rows)
    wanted = records.rows[order]
    for chunk in opened.chunks(names, _CHUNK_ROWS) if names else ():
        # of a large file only the rows of the sample are kept
        first, last = (chunk.rows[0], chunk.rows[-1]) if len(chunk.rows) else (0, -1)
        here = slice(*np.searchsorted(wanted, [first, last + 1]).tolist())
        taken = np.searchsorted(chunk.rows, wanted[here])
        for name in names if len(taken) else ():
            values = chunk.columns[name]
            if hasattr(values, "to_pylist"):
                read = values.take(taken).to_pylist()
            else:
                read = plain([values[row] for row in taken.tolist()])
            for index, value in zip(order[here].tolist(), read, strict=True):
                columns[name][index] = _typed(value, kinds[name])
    return columns


class Domain:
    """The rows of source or target, to be shown."""

    def __init__(self, records: Records, path: str | None, features: NDArray[Any], leave_out: set[str]) -> None:
        self.records = records
        self._path, self._features, self._leave_out = path, features, leave_out

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The file's own columns or, of a data frame, the features by their names."""
        found = original_columns(self._path, self.records, self._leave_out)
        names = self.records.feature_names
        named = self._features.ndim == 2 and len(names) == self._features.shape[1]
        if not found and named:
            found = {name: self._features[:, j].tolist() for j, name in enumerate(names[:MOST_COLUMNS])}
        return found

    def text(self, row: int) -> str | None:
        """The row's text."""
        return None if self.records.texts is None else str(self.records.texts[row])[:MOST_LETTERS]

    @property
    def has_pictures(self) -> bool:
        """Whether rows are pictures."""
        return self.records.images is not None

    def picture(self, row: int) -> bytes:
        """The row's picture as a JPEG."""
        from PIL import Image

        if self.records.images is None:
            raise LookupError("these rows have no pictures.")
        try:
            image = Image.fromarray(self.records.images[row])
        except (OSError, ValueError, TypeError) as error:  # one without a file is scored too
            raise LookupError(f"row {row} has no picture that can be read: {error}") from None
        image.thumbnail((PICTURE, PICTURE))
        buffer = BytesIO()
        image.save(buffer, "JPEG", quality=88)
        return buffer.getvalue()


class Typical:
    """What is usual in source: mean and spread of numbers, shares of other values."""

    def __init__(self, columns: Mapping[str, list[Any]]) -> None:
        self._numbers: dict[str, tuple[float, float]] = {}
        self._shares: dict[str, dict[str, float]] = {}
        for name, values in columns.items():
            numbers = [float(v) for v in values if _is_number(v)]
            if numbers and len(numbers) >= 0.9 * len(values):
                self._numbers[name] = (float(np.mean(numbers)), float(np.std(numbers)))
            else:
                texts, counts = np.unique([_shown(value) for value in values], return_counts=True)
                self._shares[name] = dict(zip(texts.tolist(), (counts / len(values)).tolist(), strict=True))

    def describe(self, columns: Mapping[str, list[Any]], row: int) -> list[Column]:
        """The columns of a row, the most unusual first."""
        found = [self._column(name, values[row]) for name, values in list(columns.items())[:MOST_COLUMNS]]
        return sorted(found, key=lambda column: -column.unusual)

    def _column(self, name: str, value: Any) -> Column:
        shown = _shown(value)
        if name in self._numbers and _is_number(value):
            mean, sd = self._numbers[name]
            distance = abs(float(value) - mean) / sd if sd > 0 else 0.0 if float(value) == mean else math.inf
            note = f"known rows: {mean:.3g} ± {sd:.2g}"
            return Column(name, shown, min(distance / 3, 10.0), note)
        if name in self._shares and len(self._shares[name]) <= max(50, len(self._shares[name]) // 2):
            share = self._shares[name].get(shown, 0.0)
            note = f"{share:.1%} of known rows" if share else "no known row has this"
            return Column(name, shown, min(-math.log10(max(share, 1e-4)) / 2, 2.0), note)
        return Column(name, shown, 0.0, "")


def _typed(value: Any, kind: str) -> Any:
    """A value of CSV, which is read as bytes, as text or a number."""
    if not isinstance(value, (bytes, str)):
        return value
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    try:
        return float(text) if kind == "number" else text
    except ValueError:
        return text or None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any) -> str:
    text = f"{value:.5g}" if isinstance(value, float) else "" if value is None else str(value)
    return text[:_MOST_VALUE]
