"""Parquet, Arrow (Feather) and CSV files through pyarrow, in chunks of bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require_pyarrow
from openset._utils.files import extension, is_packed
from openset._utils.text import listed
from openset.data.readers.chunk import Chunk, Source, slices
from openset.data.readers.columns import arrow_kind, kind_of

_BLOCK = 2**20  # bytes of CSV parsed together: a row must fit, and pyarrow holds some thirty of them
_PAGES = 2**20  # bytes of a Parquet column read ahead
_SAMPLE = 1000


def _parquet_chunks(path: Path, columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    with _parquet_file(path) as file:
        size = batch_rows or max(1, file.metadata.num_rows)
        yield from _numbered(file.iter_batches(size, columns=list(columns)), columns, batch_rows, path)


def open_parquet(path: Path) -> Source:
    """A Parquet file, its schema read."""
    pa = require_pyarrow("Reading Parquet")
    try:
        with _parquet_file(path) as file:
            schema = file.schema_arrow
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a readable Parquet file: {error}") from None
    return Source(str(path), path.parent, _kinds(schema, path), partial(_parquet_chunks, path))


def _parquet_file(path: Path) -> Any:
    """Column pages are read as they are needed, so that memory does not grow with row groups."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(path, buffer_size=_PAGES, pre_buffer=False)


def _ipc_chunks(path: Path, columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    """Record batches as they were written, memory-mapped unless compressed, cut where longer than asked for."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        reader = _ipc_reader(file)
        count = getattr(reader, "num_record_batches", None)
        batches = iter(reader) if count is None else (reader.get_batch(i) for i in range(count))
        yield from _numbered(batches, columns, batch_rows, path)


def open_ipc(path: Path) -> Source:
    """An Arrow or Feather file, its schema read."""
    pa = require_pyarrow("Reading Arrow files")
    try:
        with pa.memory_map(str(path)) as file:
            schema = _ipc_reader(file).schema
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a readable Arrow or Feather (version 2) file: {error}") from None
    return Source(str(path), path.parent, _kinds(schema, path), partial(_ipc_chunks, path))


def _ipc_reader(file: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _csv_chunks(path: Path, columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    """Blocks of the file, all columns as bytes; a row with too few or too many fields is a broken row."""
    broken: dict[int, str] = {}

    def note(row: Any) -> str:
        broken[row.number - 2] = _field_count(row)  # pyarrow counts from 1 and counts the header
        return "skip"

    start = 0
    for batch in _csv_batches(path, list(columns), note):
        rows = _row_numbers(start, batch.num_rows, broken)
        start = int(rows[-1]) + 1
        due = {row: broken.pop(row) for row in sorted(broken) if row < start}
        for first, last in slices(batch.num_rows, batch_rows):
            yield Chunk(rows[first:last], {name: batch.column(name)[first:last] for name in columns}, due)
            due = {}
    if broken:
        yield Chunk(np.empty(0, dtype=np.int64), {name: [] for name in columns}, broken)


def open_csv(path: Path) -> Source:
    """A CSV or TSV file in UTF-8 with a header; what its columns hold is told from the first rows."""
    require_pyarrow("Reading CSV")
    head = _first_bytes(path)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in head:
        raise ValueError(f"{path} is not UTF-8 text (it looks like UTF-16): save it as UTF-8.")
    broken: list[Any] = []

    def note(row: Any) -> str:
        broken.append(row)
        return "skip"

    batch = next(iter(_csv_batches(path, None, note)), None)
    if batch is None and broken:
        raise ValueError(f"{path}: no row is like the header. Of the first one: {_field_count(broken[0])}.")
    if batch is None:
        raise ValueError(f"{path} has no rows below its header.")
    refuse_repeated(batch.schema.names, path)
    _refuse_other_separators(batch.schema.names, path)
    sample = batch.slice(0, _SAMPLE)
    kinds = {name: kind_of(sample.column(name).to_pylist(), parse=True) for name in sample.schema.names}
    return Source(str(path), path.parent, kinds, partial(_csv_chunks, path), typed=False)


def _unpacked(path: Path) -> Any:
    """Its bytes; pyarrow by itself takes only lower case for gzip."""
    import pyarrow as pa

    return pa.input_stream(str(path), compression="gzip" if is_packed(path) else None)


def _csv_batches(path: Path, columns: list[str] | None, note: Any) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.csv as csv

    delimiter = "\t" if extension(path) in (".tsv", ".tsv.gz") else ","
    read = csv.ReadOptions(use_threads=False, block_size=_BLOCK)
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note)
    try:
        names = columns
        if names is None:
            with _unpacked(path) as file, csv.open_csv(file, read_options=read, parse_options=parse) as reader:
                names = reader.schema.names
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()), include_columns=names,
            null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
        )  # fmt: skip
        options = {"read_options": read, "parse_options": parse, "convert_options": convert}
        with _unpacked(path) as file, csv.open_csv(file, **options) as reader:
            yield from (batch for batch in reader if batch.num_rows)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the header is not UTF-8 text: save the file as UTF-8.") from None
    except pa.ArrowInvalid as error:
        too_long = "straddling" in str(error)
        reason = "a row is longer than 1 MB, so write the table as Parquet" if too_long else error
        raise ValueError(f"{path} is not a readable CSV file: {reason}") from None
    except OSError as error:  # a gzip file that was cut
        raise ValueError(f"{path} cannot be read to its end: {error}") from None


def _first_bytes(path: Path) -> bytes:
    try:
        with gzip.open(path) if is_packed(path) else path.open("rb") as file:
            return file.read(4)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a readable gzip file: {error}") from None


def _field_count(row: Any) -> str:
    return f"it has {row.actual_columns} fields where the header has {row.expected_columns}"


def _row_numbers(start: int, count: int, broken: Mapping[int, str]) -> NDArray[np.int64]:
    """The next ``count`` row numbers from ``start`` on that are not broken.

    >>> _row_numbers(5, 3, {6: "…"}).tolist()
    [5, 7, 8]
    """
    numbers = np.arange(start, start + count + len(broken))
    return numbers[~np.isin(numbers, list(broken))][:count] if broken else numbers


def _numbered(batches: Any, columns: Sequence[str], batch_rows: int | None, path: Path) -> Iterator[Chunk]:
    import pyarrow as pa

    row = 0
    try:
        for batch in batches:
            for start, stop in slices(batch.num_rows, batch_rows):
                part = {column: batch.column(column)[start:stop] for column in columns}
                yield Chunk(np.arange(row + start, row + stop), part)
            row += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} cannot be read beyond row {row}: {error}") from None


def _kinds(schema: Any, path: Path) -> dict[str, str]:
    refuse_repeated(schema.names, path)
    return {column.name: arrow_kind(column.type) for column in schema}


def _refuse_other_separators(names: Sequence[str], path: Path) -> None:
    found = [mark for mark in (";", "\t", "|") if len(names) == 1 and mark in names[0]]
    if found:
        how = "name it .tsv" if found[0] == "\t" else "save it with commas"
        raise ValueError(
            f"{path} has one column, {names[0]!r}: its fields seem to be separated by {found[0]!r}, so {how}."
        )


def refuse_repeated(names: Sequence[str], source: Path | str) -> None:
    """Raise a ValueError that lists the names which come twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{source} has several columns named {listed(map(repr, repeated))}: rename them.")
