"""CSV and TSV files, plain or packed by gzip or zstd, parsed by pyarrow in chunks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset._utils.files import extension, packing
from openset.data.readers.columns import kind_of
from openset.data.readers.source import SAMPLE, Chunk, Source, refuse_repeated, slices

_BLOCK_BYTES = 2**20  # parsed together: a row must fit, and pyarrow keeps about thirty blocks in memory


def open_csv(path: Path) -> Source:
    """A CSV or TSV file in UTF-8 with a header. The first rows tell what its columns hold."""
    require("pyarrow", "Reading CSV", "data")
    head = _first_bytes(path)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in head:
        raise ValueError(f"{path} is not UTF-8 text (it looks like UTF-16): save it as UTF-8.")
    broken: list[Any] = []

    def note(row: Any) -> str:
        broken.append(row)
        return "skip"

    batch = next(iter(_batches(path, None, note)), None)
    if batch is None and broken:
        raise ValueError(
            f"{path}: no row has as many fields as the header. The first row: {_field_count(broken[0])}."
        )
    if batch is None:
        raise ValueError(f"{path} has no rows below its header.")
    refuse_repeated(batch.schema.names, path)
    _refuse_other_separators(batch.schema.names, path)
    sample = batch.slice(0, SAMPLE)
    kinds = {name: kind_of(sample.column(name).to_pylist(), parse=True) for name in sample.schema.names}
    return Source(str(path), path.parent, kinds, partial(_chunks, path), typed=False)


def _chunks(path: Path, columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    """Blocks of the file, all columns as bytes; a row with too few or too many fields is a broken row."""
    broken: dict[int, str] = {}

    def note(row: Any) -> str:
        broken[row.number - 2] = _field_count(row)  # pyarrow counts from 1 and counts the header
        return "skip"

    start = 0
    for batch in _batches(path, list(columns), note):
        rows = _row_numbers(start, batch.num_rows, broken)
        start = int(rows[-1]) + 1
        due = {row: broken.pop(row) for row in sorted(broken) if row < start}
        for first, last in slices(batch.num_rows, batch_rows):
            yield Chunk(rows[first:last], {name: batch.column(name)[first:last] for name in columns}, due)
            due = {}
    if broken:
        yield Chunk(np.empty(0, dtype=np.int64), {name: [] for name in columns}, broken)


def _batches(path: Path, columns: list[str] | None, note: Callable[[Any], str]) -> Iterator[Any]:
    """Record batches of these columns, or of all; ``note`` is called with each row of a wrong length."""
    import pyarrow as pa
    import pyarrow.csv as csv

    delimiter = "\t" if extension(path).startswith(".tsv") else ","
    read = csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)
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
    except OSError as error:  # a truncated gzip file
        raise ValueError(f"{path} cannot be read to its end: {error}") from None


def _unpacked(path: Path) -> Any:
    """The unpacked bytes. pyarrow alone detects gzip only where the extension is in lower case."""
    import pyarrow as pa

    return pa.input_stream(str(path), compression=packing(path))


def _first_bytes(path: Path) -> bytes:
    try:
        with _unpacked(path) as file:
            head: bytes = file.read(4)
            return head
    except OSError as error:
        raise ValueError(f"{path} is not a readable {packing(path)} file: {error}") from None


def _field_count(row: Any) -> str:
    return f"it has {row.actual_columns} fields where the header has {row.expected_columns}"


def _row_numbers(start: int, count: int, broken: Mapping[int, str]) -> NDArray[np.int64]:
    """The next ``count`` row numbers from ``start`` on that are not broken.

    >>> _row_numbers(5, 3, {6: "…"}).tolist()
    [5, 7, 8]
    """
    numbers = np.arange(start, start + count + len(broken))
    return numbers[~np.isin(numbers, list(broken))][:count] if broken else numbers


def _refuse_other_separators(names: Sequence[str], path: Path) -> None:
    found = [mark for mark in (";", "\t", "|") if len(names) == 1 and mark in names[0]]
    if found:
        how = "name it .tsv" if found[0] == "\t" else "save it with commas"
        raise ValueError(
            f"{path} has one column, {names[0]!r}: its fields seem to be separated by {found[0]!r}, so {how}."
        )
