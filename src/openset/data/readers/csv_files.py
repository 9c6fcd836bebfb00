"""CSV and TSV files, plain or gzipped, parsed by pyarrow in chunks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset._utils.files import extension, packing
from openset.data.readers.boundary import reading
from openset.data.readers.columns import kind_of
from openset.data.readers.csv_text import CsvText, is_escaped, restored
from openset.data.readers.packed import open_unpacked
from openset.data.readers.source import SAMPLE, Chunk, Source, refuse_repeated, slices
from openset.errors import UnreadableError

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

    names = _column_names(path)
    batch = next(iter(_batches(path, names, names, note)), None)
    if batch is None and broken:
        raise ValueError(
            f"{path}: no row has as many fields as the header. The first row: {_field_count(broken[0])}."
        )
    if batch is None:
        raise ValueError(f"{path} has no rows below its header.")
    sample = batch.slice(0, SAMPLE)
    kinds = {name: kind_of(sample.column(name).to_pylist(), parse=True) for name in names}
    return Source(str(path), path.parent, kinds, partial(_chunks, path, names), typed=False)


def _chunks(path: Path, names: list[str], columns: Sequence[str], batch_rows: int | None) -> Iterator[Chunk]:
    """Blocks of the file, all columns as bytes; a row with too few or too many fields is a broken row."""
    broken: dict[int, str] = {}

    def note(row: Any) -> str:
        broken[row.number - 2] = _field_count(row)  # pyarrow counts from 1 and counts the header
        return "skip"

    start = 0
    for batch in _batches(path, names, list(columns), note):
        rows = _row_numbers(start, batch.num_rows, broken)
        start = int(rows[-1]) + 1
        due = {row: broken.pop(row) for row in sorted(broken) if row < start}
        for first, last in slices(batch.num_rows, batch_rows):
            yield Chunk(rows[first:last], {name: batch.column(name)[first:last] for name in columns}, due)
            due = {}
    if broken:
        yield Chunk(np.empty(0, dtype=np.int64), {name: [] for name in columns}, broken)


def _column_names(path: Path) -> list[str]:
    """The names in the header, each different from the others."""
    import pyarrow.csv as csv

    parse = _parse_options(path, lambda row: "skip")
    with _opened(path) as text:
        names: list[str] = csv.open_csv(text, _read_options(), parse).schema.names
    if any(map(is_escaped, names)):
        raise ValueError(f"{path}: the header is not UTF-8 text: save the file as UTF-8.")
    refuse_repeated(names, path)
    _refuse_other_separators(names, path)
    return names


def _batches(path: Path, names: list[str], columns: list[str], note: Callable[[Any], str]) -> Iterator[Any]:
    """Record batches of these columns, all bytes; ``note`` is called with each row of a wrong length."""
    import pyarrow as pa
    import pyarrow.csv as csv

    # a blank line is a missing value where there is one column; elsewhere it is no row
    parse = _parse_options(path, note, ignore_empty_lines=len(names) > 1)
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.binary()), include_columns=columns,
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
    )  # fmt: skip
    with _opened(path) as text, csv.open_csv(text, _read_options(), parse, convert) as reader:
        yield from (restored(batch) if text.escapes else batch for batch in reader if batch.num_rows)


@contextmanager
def _opened(path: Path) -> Iterator[CsvText]:
    """The text of the file. Where pyarrow gives up on a value without end, the error says why."""
    with reading(path, "CSV file"), CsvText(path, _delimiter(path)) as text:
        try:
            yield text
        except ValueError as error:
            if "straddling" not in str(error):
                raise
            text.refuse_open_quote()
            raise UnreadableError(f"{path}: a row is longer than 1 MB, so write the table as Parquet.") from None


def _read_options() -> Any:
    import pyarrow.csv as csv

    return csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES)


def _parse_options(path: Path, note: Callable[[Any], str], **more: Any) -> Any:
    import pyarrow.csv as csv

    return csv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True, invalid_row_handler=note, **more)


def _delimiter(path: Path) -> str:
    return "\t" if extension(path).startswith(".tsv") else ","


def _first_bytes(path: Path) -> bytes:
    with reading(path, f"{packing(path)} file"), open_unpacked(path) as file:
        return file.read(4)


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
