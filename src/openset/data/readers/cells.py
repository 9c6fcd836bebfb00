"""Cells: one column of any source, as numbers, times or text, with missing cells told apart.

What a cell means does not depend on the file it came from: "1.5" in a CSV file, 1.5 in Parquet and 1.5 in a data
frame are one number; "2024-03-01" and a date are one time; "", "NA" and null are missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import is_missing
from openset._utils.extras import require
from openset.data.readers.columns import is_arrow

Floats = NDArray[np.float64]
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "<NA>", "#N/A")
"""Text that stands for a missing cell."""
ISO = "iso"
DATE_FORMATS = tuple(
    f"{day}{clock}"
    for day in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d")
    for clock in ("", " %H:%M", " %H:%M:%S")
)
"""Formats of times beside ISO 8601."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = re.compile(r"-?(0|[1-9]\d*)\.0+$")
_MIDNIGHT = re.compile(r"\d{4}-\d\d-\d\d[ T]00:00:00(\.0+)?$")
_CLOCK = re.compile(r"(-?)(?:(\d+) days?,? )?(\d+):(\d{2})(?::(\d{2}(?:\.\d+)?))?$")
_ISO_DURATION = re.compile(r"(-?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column.

    ``kind`` is what they are: ``number``, ``boolean``, ``time``, ``duration``, ``text``, or ``nested`` for lists
    and records, which nothing is made of. Numbers keep their precision; a missing one is NaN. Times are seconds
    since 1970, durations are seconds. Text is an Arrow array of strings; a missing one is null.
    """

    kind: str
    values: Any

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are missing."""
        if self.kind == "nested":
            return np.zeros(len(self.values), dtype=bool)
        if self.kind == "text":
            return np.asarray(self.values.is_null().to_numpy(zero_copy_only=False), dtype=bool)
        return np.isnan(self.values) if self.values.dtype.kind == "f" else np.zeros(len(self.values), dtype=bool)

    def numbers(self) -> NDArray[Any]:
        """Every cell as a number; NaN where it is missing or no number."""
        if self.kind != "text":
            return self.values if self.kind != "nested" else np.full(len(self.values), np.nan)
        import pyarrow as pa

        try:
            numbers = self.values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:  # some cell is no number
            numbers = self._by_level(_number)
        return np.where(np.isfinite(numbers), numbers, np.nan)

    def booleans(self) -> Floats:
        """1 for true and 0 for false; NaN for anything else."""
        return self._by_level(_boolean) if self.kind == "text" else _zero_or_one(self.numbers())

    def times(self, form: str = ISO) -> Floats:
        """Every cell as seconds since 1970; text has the given form. NaN where it is missing or no time."""
        if self.kind != "text":
            return np.asarray(self.numbers(), dtype=np.float64)
        import pyarrow as pa

        if form == ISO:
            for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
                try:
                    return _seconds(self.values.cast(kind))
                except pa.ArrowInvalid:  # with a zone or without, or no time at all
                    continue
        return self._by_level(lambda text: _time(text, form))

    def durations(self) -> Floats:
        """Every cell as seconds; NaN where it is missing or no duration."""
        return self._by_level(_duration) if self.kind == "text" else np.asarray(self.numbers(), np.float64)

    def coded(self) -> tuple[NDArray[np.int64], list[str]]:
        """The different texts of the cells, and the index of each cell's text; −1 where it is missing.

        A number, boolean or time has one text, however it is written: 12 for 12.0, true for True.
        """
        if self.kind != "text":
            return _coded_numbers(self)
        encoded = self.values.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        texts = [_spelt(text) for text in encoded.dictionary.to_pylist()]
        levels = list(dict.fromkeys(texts))
        if len(levels) < len(texts):
            index = {level: i for i, level in enumerate(levels)}
            codes = np.array([*(index[text] for text in texts), -1])[codes]
        return codes, levels

    def _by_level(self, parse: Callable[[str], float]) -> Floats:
        """Parse each different text once."""
        codes, levels = self.coded()
        return np.array([*(parse(level) for level in levels), np.nan])[codes]


def cells_of(column: Any) -> Cells:
    """The cells of a column as a reader returns it: numpy, Arrow, or a list of Python values."""
    if isinstance(column, np.ndarray) and column.ndim > 1:
        return Cells("nested", np.zeros(len(column)))
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return _of_numbers(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        return _of_numpy_times(column)
    if is_arrow(column):
        return _of_arrow(column)
    return _of_values(column.tolist() if isinstance(column, np.ndarray) else list(column))


def joined_cells(parts: Sequence[Cells]) -> Cells:
    """The cells of several parts of a column; parts of different kinds are joined as text."""
    full = [part for part in parts if len(part)] or list(parts[:1])
    kinds = {part.kind for part in full if not part.missing.all()}
    if len(full) == 1:
        return full[0]
    if len(kinds) <= 1 and "text" not in {part.kind for part in full}:
        kind = kinds.pop() if kinds else full[0].kind
        return Cells(kind, np.concatenate([part.values for part in full]))
    import pyarrow as pa

    if "nested" in kinds:
        return Cells("nested", np.zeros(sum(map(len, full))))
    return Cells("text", pa.concat_arrays([_as_text(part) for part in full]))


def taken_cells(cells: Cells, rows: NDArray[np.intp]) -> Cells:
    """The cells of these rows, in this order."""
    return Cells(cells.kind, cells.values.take(rows) if cells.kind == "text" else cells.values[rows])


def _of_numbers(array: NDArray[Any]) -> Cells:
    if array.dtype.kind == "b":
        return Cells("boolean", array.astype(np.float64))
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        array = np.where(np.isfinite(array), array, array.dtype.type(np.nan))
    return Cells("number", array)


def _of_numpy_times(array: NDArray[Any]) -> Cells:
    kind, unit = ("time", "datetime64[us]") if array.dtype.kind == "M" else ("duration", "timedelta64[us]")
    seconds = array.astype(unit).astype(np.int64) / 1e6
    return Cells(kind, np.where(np.isnat(array), np.nan, seconds))


def _of_arrow(column: Any) -> Cells:
    import pyarrow as pa
    import pyarrow.types as types

    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_null(kind):
        return Cells("number", np.full(len(column), np.nan))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        column = column.cast(pa.float64()) if types.is_decimal(kind) else column
        return _of_numbers(column.to_numpy(zero_copy_only=False))
    if types.is_boolean(kind):
        return Cells("boolean", column.cast(pa.uint8()).cast(pa.float64()).to_numpy(zero_copy_only=False))
    if types.is_timestamp(kind) or types.is_date(kind):
        return Cells("time", _seconds(column))
    if types.is_duration(kind):
        return Cells("duration", _microseconds(column.cast(pa.duration("us"), safe=False)))
    if types.is_time(kind):
        return Cells("duration", _microseconds(column.cast(pa.time64("us"), safe=False)))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or _is_wide(kind):
        return Cells("text", _clean(column))
    return Cells("nested", np.zeros(len(column)))


def _is_wide(kind: Any) -> bool:
    import pyarrow.types as types

    views = [getattr(types, name, None) for name in ("is_large_binary", "is_string_view", "is_binary_view")]
    return any(view(kind) for view in views if view is not None)


def _clean(column: Any) -> Any:
    """Text without blanks around it, and null for text that stands for a missing cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        column = column.cast(pa.large_string())
    except pa.ArrowInvalid:  # not UTF-8
        values = [None if v is None else v.decode("utf-8", "replace") for v in column.to_pylist()]
        column = pa.array(values, pa.large_string())
    column = pc.utf8_trim_whitespace(column)
    missing = pc.is_in(column, value_set=pa.array(MISSING, pa.large_string()))
    return pc.if_else(missing, pa.scalar(None, pa.large_string()), column) if pc.any(missing).as_py() else column


def _of_values(values: list[Any]) -> Cells:
    """The cells of Python values, as JSON lines and mixed columns of data frames have them."""
    values = [None if _is_nothing(value) else value for value in values]
    kinds = {_kind_of_value(value) for value in values if value is not None}
    if not kinds or kinds == {"number"}:
        return _of_numbers(np.array([np.nan if value is None else float(value) for value in values]))
    if len(kinds) == 1:
        (kind,) = kinds
        if kind == "boolean":
            return Cells(kind, np.array([np.nan if value is None else float(value) for value in values]))
        if kind in ("time", "duration"):
            return Cells(kind, np.array([np.nan if value is None else _in_seconds(value) for value in values]))
        if kind == "nested":
            return Cells(kind, np.zeros(len(values)))
    pa = require("pyarrow", "Reading columns of text", "data")
    texts = [None if value is None else value if isinstance(value, str) else _text(value) for value in values]
    return Cells("text", _clean(pa.array(texts, pa.large_string())))


def _is_nothing(value: Any) -> bool:
    return value is None or (not isinstance(value, (list, dict)) and bool(is_missing(value)))


def _kind_of_value(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (int, float, np.integer, np.floating)):
        return "number"
    if isinstance(value, (datetime, date)):
        return "time"
    if isinstance(value, (timedelta, time)):
        return "duration"
    return "nested" if isinstance(value, (list, dict, tuple)) else "text"


def _in_seconds(value: Any) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return _since_epoch(value)


def _since_epoch(value: datetime) -> float:
    return ((value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _EPOCH).total_seconds()


def _as_text(part: Cells) -> Any:
    """A part as text, numbers written as short as they can be."""
    import pyarrow as pa

    if part.kind == "text":
        return part.values
    numbers = np.asarray(part.values, dtype=np.float64).tolist()
    texts = [
        None if value != value else _text(bool(value) if part.kind == "boolean" else value) for value in numbers
    ]
    return pa.array(texts, pa.large_string())


def _text(value: Any) -> str:
    """
    >>> _text(1.0), _text(0.5), _text(True), _text({"a": 1})
    ('1', '0.5', 'true', '{"a": 1}')
    """
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, default=str)


def _coded_numbers(cells: Cells) -> tuple[NDArray[np.int64], list[str]]:
    values, codes = np.unique(cells.values, return_inverse=True)
    write = {"boolean": lambda value: _text(bool(value)), "time": _time_text}.get(cells.kind, _text)
    names = [write(float(value)) for value in values if value == value]
    return np.where(codes < len(names), codes, -1).astype(np.int64), names


def _time_text(seconds: float) -> str:
    """
    >>> _time_text(0.0), _time_text(90.5)
    ('1970-01-01', '1970-01-01 00:01:30.500000')
    """
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(" ").removesuffix(" 00:00:00")


def _spelt(text: str) -> str:
    """
    >>> [_spelt(text) for text in ("12.0", "007", "True", "2024-01-01 00:00:00", "Ulm")]
    ['12', '007', 'true', '2024-01-01', 'Ulm']
    """
    if _WHOLE.match(text):
        return text.partition(".")[0]
    if _MIDNIGHT.match(text):
        return text[:10]
    return text.lower() if text in ("True", "False", "TRUE", "FALSE") else text


def _seconds(column: Any) -> Floats:
    """Seconds since 1970 of an Arrow column of dates or times; times without a zone count as UTC."""
    import pyarrow as pa
    import pyarrow.types as types

    zone = column.type.tz if types.is_timestamp(column.type) else None
    return _microseconds(column.cast(pa.timestamp("us", tz=zone), safe=False))


def _microseconds(column: Any) -> Floats:
    import pyarrow as pa

    counted = column.cast(pa.int64())
    seconds = counted.fill_null(0).to_numpy(zero_copy_only=False) / 1e6
    missing = counted.is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, np.nan, seconds)


def _number(text: str) -> float:
    try:
        return float(text) if "_" not in text else np.nan
    except ValueError:
        return np.nan


def _boolean(text: str) -> float:
    return {"true": 1.0, "false": 0.0}.get(text.lower(), np.nan)


def _zero_or_one(numbers: NDArray[Any]) -> Floats:
    return np.where((numbers == 0) | (numbers == 1), numbers, np.nan).astype(np.float64)


def _time(text: str, form: str) -> float:
    try:
        return _since_epoch(datetime.fromisoformat(text) if form == ISO else datetime.strptime(text, form))
    except ValueError:
        return np.nan


def _duration(text: str) -> float:
    """
    >>> _duration("1 days 02:00:00"), _duration("0:01:30.5"), _duration("PT2H"), _duration("two hours")
    (93600.0, 90.5, 7200.0, nan)
    """
    if (found := _CLOCK.match(text)) is not None:
        sign, days, hours, minutes, seconds = found.groups()
        weeks = None
    elif text != "P" and (found := _ISO_DURATION.match(text)) is not None:
        sign, weeks, days, hours, minutes, seconds = found.groups()
    else:
        return float("nan")
    whole = 604800 * int(weeks or 0) + 86400 * int(days or 0) + 3600 * int(hours or 0) + 60 * int(minutes or 0)
    return float((whole + float(seconds or 0)) * (-1 if sign else 1))
