"""What a source of rows hands on: some rows' columns, and the rows that could not be read at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Chunk:
    """Some rows: their numbers, their columns (numpy, Arrow or list), and the broken rows among them."""

    rows: NDArray[np.int64]
    columns: Mapping[str, Any]
    broken: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A file, folder or frame that rows are read from.

    ``kinds`` says of each column whether it holds a ``number``, a ``vector`` or something ``other``.
    ``chunks(columns, batch_rows)`` gives all rows in order, at most so many at a time; None leaves the size open.
    ``folder`` is where relative image paths start, ``typed`` is False where all is text, as in CSV, and
    ``defaults`` are the columns taken where the user names none.
    """

    name: str
    folder: Path
    kinds: Mapping[str, str]
    chunks: Callable[[Sequence[str], int | None], Iterator[Chunk]]
    typed: bool = True
    defaults: Mapping[str, str] = field(default_factory=dict)


def slices(n_rows: int, batch_rows: int | None) -> Iterator[tuple[int, int]]:
    """Where each batch starts and ends.

    >>> list(slices(5, 2)), list(slices(5, None))
    ([(0, 2), (2, 4), (4, 5)], [(0, 5)])
    """
    step = batch_rows or max(n_rows, 1)
    return ((start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def sliced(
    name: str, columns: Mapping[str, Any], wanted: Sequence[str], batch_rows: int | None
) -> Iterator[Chunk]:
    """Chunks of columns that are there already, memory-mapped ones among them, without a copy."""
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
