"""Writing tables batch by batch, in every format that is read except ``.npy``, which has no columns."""

from __future__ import annotations

import gzip
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from openset._utils.arrays import as_objects
from openset._utils.extras import require
from openset._utils.files import check_parent, extension, replacing
from openset._utils.text import listed
from openset.errors import Parameter, ParameterError

_ROW_GROUP = 2**17  # rows
_LONGEST_MEMBER = 65535  # bytes of a name in a zip archive
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a formula begins in a spreadsheet

Columns = Mapping[str, Any]
"""Columns by name: numpy or Arrow arrays."""
Write = Callable[[Columns], None]


@contextmanager
def writing_table(path: Path, *, csv_safe: bool = False) -> Iterator[Write]:
    """Yield ``write(columns)``, to be called once for each batch of rows; every batch has the same columns.

    The extension tells the format. The file, or the new one in place of an old one, appears only when all is
    written. With ``csv_safe`` no text of a CSV file is a formula to a spreadsheet.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with writing_table(Path(folder) / "rows.csv") as write:
    ...         write({"id": np.array([1, 2]), "name": np.array(["a", "b"])})
    ...     (Path(folder) / "rows.csv").read_text().split()
    ['"id","name"', '1,"a"', '2,"b"']
    """
    with replacing(path) as temporary, table_writer(path, temporary, csv_safe=csv_safe) as write:
        yield write


@contextmanager
def table_writer(path: Path, into: Path, *, csv_safe: bool = False) -> Iterator[Write]:
    """Like :func:`writing_table`, into another file than ``path``, which tells the format; not atomic."""
    with _opener(path)(into) as write:
        yield _without_formulas(write) if csv_safe else write


def check_writable(path: Path, *, csv_safe: bool = False) -> None:
    """Raise an error unless a table can be written: the extension is known and the folder exists."""
    _opener(path)
    check_parent(path)
    if csv_safe and not extension(path).startswith((".csv", ".tsv")):
        raise ParameterError(Parameter("csv_safe", True), f" is for CSV files, and {path} is none: leave it out.")


def check_format(path: Path, *advice: str | Parameter) -> None:
    """Raise an error unless tables of this extension can be written; ``advice`` is a part of the message."""
    try:
        _opener(path)
    except ValueError as error:
        if not advice:
            raise
        raise ParameterError(str(error).rstrip("."), *advice, ".") from None


def _without_formulas(write: Write) -> Write:
    """Write text that a spreadsheet would run as a formula with an apostrophe before it."""

    def safe(value: Any) -> Any:
        return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

    def write_safe(columns: Columns) -> None:
        write({safe(name): _mapped_text(safe, column) for name, column in columns.items()})

    return write_safe


def _mapped_text(function: Callable[[Any], Any], column: Any) -> Any:
    """A column with a function of every value, if it holds text."""
    if isinstance(column, np.ndarray):
        is_text = column.dtype.kind in "OU"
        return as_objects([function(value) for value in column.tolist()]) if is_text else column
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return column
    return pa.array([function(value) for value in column.to_pylist()], pa.string())


def _opener(path: Path) -> Any:
    suffix = extension(path)
    if suffix == ".npy":
        raise ValueError(f"{path}: a .npy file is one array and cannot hold ids and labels: write .npz.")
    if suffix not in _OPENERS:
        raise ValueError(f"{path}: the extension {suffix!r} is unknown. Known are {listed(_OPENERS, 20)}.")
    return _OPENERS[suffix]


def _arrow_writer(open_sink: Callable[[Path, Any, ExitStack], Any]) -> Any:
    """Wrap a writer of pyarrow, which is opened when the first batch tells the types."""

    @contextmanager
    def opened(path: Path) -> Iterator[Write]:
        pa = require("pyarrow", "Writing tables", "data")
        sink: Any = None
        schema: Any = None

        def write(columns: Columns) -> None:
            nonlocal sink, schema
            arrays = {name: as_arrow(column) for name, column in columns.items()}
            if sink is None:
                schema = pa.schema([(name, array.type) for name, array in arrays.items()])
                sink = open_sink(path, schema, files)
            try:
                typed = [array.cast(field.type) for array, field in zip(arrays.values(), schema, strict=True)]
            except pa.ArrowInvalid as error:
                raise ValueError(f"a column changes its type from batch to batch: {error}") from None
            sink.write_batch(pa.record_batch(typed, schema=schema))

        with ExitStack() as files:
            try:
                yield write
            except BaseException:
                if sink is not None:
                    with suppress(OSError, pa.ArrowException):  # the file is deleted, so closing it may fail
                        sink.close()
                raise
            if sink is not None:
                sink.close()

    return opened


def as_arrow(column: Any) -> Any:
    """An Arrow array; whole numbers that no Arrow type holds together, below 0 and from 2**63 on, as text."""
    import pyarrow as pa

    try:
        return pa.array(column)
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([str(value) for value in column.tolist()])


def _parquet(path: Path, schema: Any, files: ExitStack) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # novelty scores hardly repeat, so a dictionary pays only for text
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return _RowGroups(pq.ParquetWriter(path, schema, use_dictionary=texts, compression="snappy"))


class _RowGroups:
    """A Parquet writer that collects small batches; otherwise each would become a row group."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._waiting: list[Any] = []
        self._rows = 0

    def write_batch(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        waiting, self._waiting, self._rows = self._waiting, [], 0
        if waiting:
            self._writer.write_table(pa.Table.from_batches(waiting))

    def close(self) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()


def _arrow_file(path: Path, schema: Any, files: ExitStack) -> Any:
    import pyarrow as pa

    return pa.ipc.new_file(str(path), schema)


def _csv(delimiter: str, *, packed: bool = False) -> Callable[[Path, Any, ExitStack], Any]:
    def open_sink(path: Path, schema: Any, files: ExitStack) -> Any:
        import pyarrow.csv as csv

        file = files.enter_context(gzip.open(path, "wb") if packed else path.open("wb"))  # noqa: SIM115
        return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(delimiter=delimiter))

    return open_sink


@contextmanager
def _json_lines(path: Path, *, packed: bool = False) -> Iterator[Write]:
    with gzip.open(path, "wb") if packed else path.open("wb") as file:
        yield lambda columns: _write_lines(file, columns)


def _write_lines(file: Any, columns: Columns) -> None:
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        line = json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=str)  # dates as text
        file.write(line.encode() + b"\n")


@contextmanager
def _npz(path: Path) -> Iterator[Write]:
    """Batches are stored in one temporary file for each column until the length and the widest text are known."""
    waiting: dict[str, IO[bytes]] = {}
    batches: dict[str, list[tuple[int, np.dtype[Any]]]] = {}

    def write(columns: Columns) -> None:
        for name, column in columns.items():
            if len(f"{name}.npy".encode()) > _LONGEST_MEMBER:
                raise ValueError(f"a column's name is too long for .npz ({len(name)} letters): write .parquet.")
            if name not in waiting:
                waiting[name] = files.enter_context(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115
            values = column if isinstance(column, np.ndarray) else column.to_numpy(zero_copy_only=False)
            plain = values.astype(str) if values.dtype == object else values
            np.lib.format.write_array(waiting[name], plain, allow_pickle=False)
            batches.setdefault(name, []).append((len(plain), plain.dtype))

    with ExitStack() as files:
        yield write
        with zipfile.ZipFile(path, "w", allowZip64=True) as archive:
            for name, file in waiting.items():
                file.seek(0)
                lengths, dtypes = zip(*batches[name], strict=True)
                dtype = np.result_type(*dtypes)
                header = {"descr": dtype.str, "fortran_order": False, "shape": (sum(lengths),)}
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array_header_1_0(member, header)
                    for _ in lengths:
                        member.write(np.lib.format.read_array(file).astype(dtype).tobytes())


_OPENERS: dict[str, Any] = {
    ".parquet": _arrow_writer(_parquet),
    ".csv": _arrow_writer(_csv(",")),
    ".csv.gz": _arrow_writer(_csv(",", packed=True)),
    ".tsv": _arrow_writer(_csv("\t")),
    ".tsv.gz": _arrow_writer(_csv("\t", packed=True)),
    ".jsonl": _json_lines,
    ".jsonl.gz": partial(_json_lines, packed=True),
    ".ndjson": _json_lines,
    ".json": _json_lines,
    ".json.gz": partial(_json_lines, packed=True),
    ".arrow": _arrow_writer(_arrow_file),
    ".feather": _arrow_writer(_arrow_file),
    ".npz": _npz,
}
