"""A source of rows, opened but not read yet, and the chunks of rows that it yields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import listed

SAMPLE = 1000
"""Rows read to tell what the columns hold, where a source has no schema."""


@dataclass(frozen=True)
class Chunk:
    """Some rows: their row numbers, their columns (numpy, Arrow or list), and why a broken row was not read."""

    rows: NDArray[np.int64]
    columns: Mapping[str, Any]
    broken: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A file, folder or data frame that rows are read from.

    ``kinds`` says what each column holds: ``number``, ``vector`` or ``other``. ``chunks(columns, batch_rows)``
    yields all rows in order, at most ``batch_rows`` at a time; with None the source chooses the size. Relative
    image paths start at ``folder``. ``typed`` is False where every value is text, as in CSV. ``defaults`` names
    the columns used where the user names none. ``n_rows`` is the number of rows where the file tells it unread.
    """

    name: str
    folder: Path
    kinds: Mapping[str, str]
    chunks: Callable[[Sequence[str], int | None], Iterator[Chunk]]
    typed: bool = True
    defaults: Mapping[str, str] = field(default_factory=dict)
    n_rows: int | None = None


def slices(n_rows: int, batch_rows: int | None) -> Iterator[tuple[int, int]]:
    """The start and the end of each batch.

    >>> list(slices(5, 2)), list(slices(5, None))
    ([(0, 2), (2, 4), (4, 5)], [(0, 5)])
    """
    step = batch_rows or max(n_rows, 1)
    return ((start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def sliced(
    name: str, columns: Mapping[str, Any], wanted: Sequence[str], batch_rows: int | None
) -> Iterator[Chunk]:
    """Chunks of columns that are in memory or memory-mapped, without a copy."""
    lengths = {column: len(columns[column]) for column in wanted}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{column!r} {n}" for column, n in lengths.items())
        raise ValueError(f"{name}: columns of different lengths ({found}).")
    for start, stop in slices(max(lengths.values(), default=0), batch_rows):
        yield Chunk(np.arange(start, stop), {column: _slice(columns[column], start, stop) for column in wanted})


def _slice(column: Any, start: int, stop: int) -> Any:
    part = column[start:stop]
    if hasattr(part, "chunks"):  # Arrow's chunked arrays
        return part.chunk(0) if part.num_chunks == 1 else part.combine_chunks()
    return part


def refuse_repeated(names: Sequence[str], source: Path | str) -> None:
    """Raise a ValueError that lists the column names that occur more than once."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{source} has several columns named {listed(map(repr, repeated))}: rename them.")
