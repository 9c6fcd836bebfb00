"""From one column of a chunk (numpy, Arrow or a list) to an array, and a problem for each row that is bad.

Each reader first tries to convert the whole column at once, if possible without a copy. Only where that fails it
looks at every value, to name the bad rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import as_objects, is_missing
from openset._utils.text import shortened

Problems = dict[int, str]
Read = tuple[NDArray[Any], Problems]
_BLOCK = 2**20  # values searched for NaN at a time, so that the temporary array stays small


def missing(name: str) -> str:
    """The problem of a row whose cell in this column is missing."""
    return f"column {name!r} is missing"


def kind_of(values: Iterable[Any], *, parse: bool = False) -> str:
    """What most values are: ``number``, ``vector`` or ``other``. With ``parse``, text like "1.5" is a number.

    >>> kind_of([1, 2.5, None, "x"]), kind_of([[1, 2]]), kind_of(["1", "2"]), kind_of(["1"], parse=True)
    ('number', 'vector', 'other', 'number')
    >>> kind_of([["red", "blue"], ["red"]])
    'other'
    """

    def kind(value: Any) -> str:
        if isinstance(value, list):
            return (
                "vector"
                if all(item is None or _as_number(item, False) is not None for item in value)
                else "other"
            )
        return "number" if _as_number(value, parse) is not None else "other"

    kinds = Counter(kind(value) for value in values if value is not None)
    return kinds.most_common(1)[0][0] if kinds else "other"


def arrow_kind(arrow_type: Any) -> str:
    """What a column of this Arrow type holds: ``number``, ``vector`` or ``other``."""
    import pyarrow.types as types

    def is_number(t: Any) -> bool:
        return bool(types.is_integer(t) or types.is_floating(t) or types.is_boolean(t) or types.is_decimal(t))

    if _is_list(arrow_type):
        return "vector" if is_number(arrow_type.value_type) else "other"
    return "number" if is_number(arrow_type) else "other"


def read_numbers(column: Any, name: str) -> Read:
    """A one-dimensional array of numbers. Bytes, as CSV files have them, are parsed."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column, {}
    if is_arrow(column):
        import pyarrow as pa
        import pyarrow.types as types

        try:
            if types.is_binary(column.type):
                column = column.cast(pa.string()).cast(pa.float64())
            elif types.is_decimal(column.type) or types.is_boolean(column.type):
                column = column.cast(pa.float64())
        except pa.ArrowInvalid:
            pass  # some value is not a number: it is found below
        if arrow_kind(column.type) == "number":
            return column.to_numpy(zero_copy_only=False), _null_rows(column, name)

    def number(value: Any) -> float:
        found = _as_number(value, parse=isinstance(value, bytes))
        if found is None:
            raise ValueError(f"column {name!r} holds {_shown(value)}, not a number")
        return found

    return _each(column, name, number, np.nan, np.float64)


def read_vectors(column: Any, name: str, width: int | None) -> Read:
    """A matrix whose rows have ``width`` numbers. With width None the first good row sets the width."""
    if isinstance(column, np.ndarray):
        return column, {}
    matrix = _arrow_matrix(column) if is_arrow(column) else _list_matrix(column)
    if matrix is not None and matrix.shape[1] and width in (None, matrix.shape[1]):
        return matrix, {}
    rows: list[Any] = []
    problems: Problems = {}
    for row, value in enumerate(_python(column)):
        numbers = value if isinstance(value, list) else []
        if value is None:
            problems[row] = missing(name)
        elif not isinstance(value, list):
            problems[row] = f"column {name!r} holds {_shown(value)}, not a list of numbers"
        elif any(item is None for item in value):
            problems[row] = f"column {name!r} has a missing value at index {value.index(None)}"
        elif not value or any(_as_number(item, parse=False) is None for item in value):
            problems[row] = f"column {name!r} holds {_shown(value)}, not a list of numbers"
        else:
            width = len(value) if width is None else width
            if len(value) != width:
                problems[row] = f"column {name!r} holds {len(value)} numbers where the rows before hold {width}"
        rows.append(numbers if row not in problems else None)
    empty = [0.0] * (width or 0)
    dtype = _arrow_dtype(column) if is_arrow(column) else np.float64
    filled = np.asarray([empty if row is None else row for row in rows], dtype=dtype)
    return filled.reshape(len(rows), width or 0), problems


def read_texts(column: Any, name: str) -> Read:
    """An array of Python strings. Bytes are decoded as UTF-8."""
    if is_arrow(column):
        column = _decoded(column)
    elif isinstance(column, np.ndarray) and column.dtype.kind == "U":
        return column.astype(object), {}

    def text(value: Any) -> str:
        if isinstance(value, bytes):
            return _utf8(value, name)
        if not isinstance(value, str):
            raise ValueError(f"column {name!r} holds {_shown(value)}, not text")
        if not _is_unicode(value):
            raise ValueError(f"column {name!r} {_NO_UNICODE}")
        return value

    return _each(column, name, text, "", object)


def read_keys(
    column: Any, name: str, kind: str | None, *, integers: bool = False
) -> tuple[NDArray[Any], Problems, str | None]:
    """Labels or ids: numbers, text or booleans, but only one of the three in a column.

    ``kind`` is what earlier chunks held, None if there was no value yet; the kind is returned for the next chunk.
    With ``integers``, the text of CSV files becomes integers. Blank text counts as missing.
    """
    if is_arrow(column):
        column = without_blanks(_decoded(column))
        if integers:
            import pyarrow as pa

            column = column.cast(pa.int64())
    whole = _whole_keys(column)
    if whole is not None and kind in (None, whole[1]):
        return whole[0], {}, whole[1]
    values = [_utf8(v, name) if isinstance(v, bytes) and _is_utf8(v) else v for v in _python(column)]
    problems: Problems = {}
    for row, value in enumerate(values):
        found = _key_kind(value)
        if is_missing(value) or (found == "text" and not value.strip()):
            problems[row] = missing(name)
        elif found == "text" and not _is_unicode(value):
            problems[row] = f"column {name!r} {_NO_UNICODE}"
        elif found is None:
            what = "bytes that are not UTF-8 text" if isinstance(value, bytes) else _shown(value)
            problems[row] = f"column {name!r} holds {what}, not a number or text"
        elif found == "number" and not _in_64_bits(value):
            problems[row] = f"column {name!r} holds a whole number beyond 64 bits: write it as text"
        elif found != (kind := kind or found):
            problems[row] = f"column {name!r} mixes types: it holds {_shown(value)} after rows of {kind}"
    blank: Any = "" if kind == "text" else False if kind == "boolean" else 0
    kept = [blank if row in problems else value for row, value in enumerate(values)]
    array = as_objects(kept) if kind == "text" or not kept else _as_narrow(kept)
    return array, problems, kind


def _as_narrow(values: list[Any]) -> NDArray[Any]:
    """An array of numbers or booleans. numpy alone would turn integers below and above 2**63 into floats."""
    array = np.asarray(values)
    if array.dtype.kind != "f" or not all(isinstance(value, int) for value in values):
        return array
    return np.asarray(values, dtype=np.uint64) if min(values) >= 0 else as_objects(values)


def _in_64_bits(value: Any) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def has_value(column: Any) -> bool:
    """Whether any row of a column of labels has a label."""
    if is_arrow(column):
        column = without_blanks(_decoded(column))
        return bool(column.null_count < len(column))
    return any(not is_missing(value) and str(value).strip() for value in column)


def _whole_keys(column: Any) -> tuple[NDArray[Any], str] | None:
    """A column of one kind without missing values, and its kind; None where every value must be looked at."""
    if is_arrow(column) and not column.null_count:
        import pyarrow.types as types

        if types.is_string(column.type) or types.is_large_string(column.type) or types.is_integer(column.type):
            column = column.to_numpy(zero_copy_only=False)
            return column, "text" if column.dtype == object else "number"
    if isinstance(column, np.ndarray) and column.dtype.kind in "iubU":
        return column, {"U": "text", "b": "boolean"}.get(column.dtype.kind, "number")
    return None


def missing_in(matrix: NDArray[Any], names: tuple[str, ...]) -> Problems:
    """Rows with NaN or infinity. The search goes in blocks, so that a memory-mapped array stays on disk."""
    if matrix.dtype.kind != "f" or not matrix.size:
        return {}
    problems: Problems = {}
    step = max(1, _BLOCK // (matrix.size // len(matrix)))
    for start in range(0, len(matrix), step):
        block = matrix[start : start + step].reshape(len(matrix[start : start + step]), -1)
        if _all_finite(block):
            continue
        for row in np.flatnonzero(~np.isfinite(block).all(axis=1)).tolist():
            index = int(np.flatnonzero(~np.isfinite(block[row]))[0])
            where = f"{names[index]!r}" if len(names) == block.shape[1] else f"{names[0]!r} at index {index}"
            what = "missing (NaN)" if np.isnan(block[row, index]) else "infinite"
            problems[start + row] = f"column {where} is {what}"
    return problems


def _all_finite(block: NDArray[Any]) -> bool:
    if block.dtype == np.float16:  # five times as fast as isfinite
        return bool((block.view(np.uint16) & np.uint16(0x7FFF)).max() < 0x7C00)
    return bool(np.isfinite(block).all())


def is_arrow(column: Any) -> bool:
    """Whether a column is an Arrow array, without importing pyarrow."""
    return type(column).__module__.split(".")[0] == "pyarrow"


def _python(column: Any) -> list[Any]:
    return (
        column.to_pylist() if is_arrow(column) else column.tolist() if isinstance(column, np.ndarray) else column
    )


def _each(column: Any, name: str, convert: Callable[[Any], Any], blank: Any, dtype: Any) -> Read:
    values: list[Any] = []
    problems: Problems = {}
    for row, value in enumerate(_python(column)):
        try:
            if value is None:
                raise ValueError(missing(name))
            values.append(convert(value))
        except ValueError as error:
            values.append(blank)
            problems[row] = str(error)
    return (as_objects(values) if dtype is object else np.asarray(values, dtype=dtype)), problems


def _as_number(value: Any, parse: bool) -> float | None:
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1023):
        return float(value)
    if parse and isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        try:
            return float(text) if "_" not in text else None
        except ValueError:
            return None
    return None


def _key_kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else "text" if isinstance(value, str) else None


def _shown(value: Any) -> str:
    text = repr(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)
    kind = "text" if isinstance(value, bytes) else type(value).__name__
    return f"{shortened(text, 40)} ({kind})"


_NO_UNICODE = "holds text that is not valid Unicode: half of a surrogate pair"


def _is_unicode(value: str) -> bool:
    """JSON can hold code points that are not valid in text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _utf8(value: bytes, name: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"column {name!r} is not UTF-8 text") from None


def _decoded(column: Any) -> Any:
    """Dictionary-encoded columns become their values; bytes become text if all of them are UTF-8."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_binary(column.type) or types.is_large_binary(column.type):
        try:
            return column.cast(pa.large_string())
        except pa.ArrowInvalid:
            return column
    return column


def without_blanks(column: Any) -> Any:
    """An Arrow column with nulls in place of blank text and NaN, which also mark missing labels."""
    import pyarrow.compute as pc
    import pyarrow.types as types

    if types.is_string(column.type) or types.is_large_string(column.type):
        blank = pc.equal(pc.utf8_trim_whitespace(column), "")
    elif types.is_floating(column.type):
        blank = pc.is_nan(column)
    else:
        return column
    return pc.if_else(blank, None, column) if pc.any(blank).as_py() else column


def _null_rows(column: Any, name: str) -> Problems:
    if not column.null_count:
        return {}
    nulls = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
    return dict.fromkeys(nulls.tolist(), missing(name))


def _is_list(arrow_type: Any) -> bool:
    import pyarrow.types as types

    return bool(
        types.is_list(arrow_type) or types.is_large_list(arrow_type) or types.is_fixed_size_list(arrow_type)
    )


def _arrow_dtype(column: Any) -> Any:
    return column.type.value_type.to_pandas_dtype() if arrow_kind(column.type) == "vector" else np.float64


def _arrow_matrix(column: Any) -> NDArray[Any] | None:
    """Equally long lists without nulls as a matrix in Arrow's memory; None for other lists."""
    if arrow_kind(column.type) != "vector" or not len(column) or column.null_count:
        return None
    flat = column.flatten()
    if flat.null_count or len(flat) % len(column):
        return None
    width = len(flat) // len(column)
    if hasattr(column, "offsets") and (np.diff(column.offsets.to_numpy()) != width).any():
        return None
    return flat.to_numpy(zero_copy_only=False).reshape(len(column), width)


def _list_matrix(column: list[Any]) -> NDArray[Any] | None:
    try:
        matrix = np.array(column)
    except ValueError:  # ragged
        return None
    return matrix.astype(np.float64) if matrix.ndim == 2 and matrix.dtype.kind in "iuf" else None
