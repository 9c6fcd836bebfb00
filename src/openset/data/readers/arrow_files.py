"""Parquet, Arrow and Feather files through pyarrow, in chunks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset.data.readers.boundary import Place, reading
from openset.data.readers.columns import arrow_kind
from openset.data.readers.source import Chunk, Source, refuse_repeated, slices

_PARQUET, _IPC = "Parquet file", "Arrow or Feather (version 2) file"
_PAGE_BYTES = 2**20  # of a Parquet column, read ahead


def open_parquet(path: Path) -> Source:
    """A Parquet file, its schema read."""
    require("pyarrow", "Reading Parquet", "data")
    with reading(path, _PARQUET), _parquet_file(path) as file:
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
    return Source(str(path), path.parent, _kinds(schema, path), partial(_parquet_chunks, path), n_rows=n_rows)


def _parquet_chunks(path: Path, columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    with reading(path, _PARQUET) as place, _parquet_file(path) as file:
        size = batch_rows or max(1, file.metadata.num_rows)
        yield from _numbered(file.iter_batches(size, columns=list(columns)), columns, batch_rows, place)


def _parquet_file(path: Path) -> Any:
    """Column pages are read when they are needed, so that memory does not grow with the row groups."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(path, buffer_size=_PAGE_BYTES, pre_buffer=False)


def open_ipc(path: Path) -> Source:
    """An Arrow or Feather file, its schema read."""
    pa = require("pyarrow", "Reading Arrow files", "data")
    with reading(path, _IPC), pa.memory_map(str(path)) as file:
        schema = _ipc_reader(file).schema
    return Source(str(path), path.parent, _kinds(schema, path), partial(_ipc_chunks, path))


def _ipc_chunks(path: Path, columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    """Record batches as they were written, memory-mapped unless compressed; longer ones are cut."""
    import pyarrow as pa

    with reading(path, _IPC) as place, pa.memory_map(str(path)) as file:
        reader = _ipc_reader(file)
        count = getattr(reader, "num_record_batches", None)
        batches = iter(reader) if count is None else (reader.get_batch(i) for i in range(count))
        yield from _numbered(batches, columns, batch_rows, place)


def _ipc_reader(file: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _numbered(batches: Any, columns: Sequence[str], batch_rows: int | None, place: Place) -> Iterator[Chunk]:
    """Chunks of at most ``batch_rows`` rows, with their row numbers.

    Lengths and offsets in a damaged file point anywhere in memory, so every batch is checked before it is used.
    """
    for batch in batches:
        used = batch.select(list(columns))
        used.validate(full=True)
        for start, stop in slices(batch.num_rows, batch_rows):
            rows = np.arange(place.row + start, place.row + stop)
            yield Chunk(rows, {name: used[name][start:stop] for name in columns})
        place.row += batch.num_rows


def _kinds(schema: Any, path: Path) -> dict[str, str]:
    refuse_repeated(schema.names, path)
    return {column.name: arrow_kind(column.type) for column in schema}
