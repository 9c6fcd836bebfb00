"""Columns that are carried from the data to the scored table as they are, in Arrow arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset.data.readers.columns import is_arrow


def as_carried(column: Any, kind: str = "other") -> Any:
    """A column as an Arrow array, of one type in all chunks of a source; ``kind`` is the source's.

    The text of CSV files stays text. Python values, as JSON lines have them, are numbers where the source says
    so, else text: other values as JSON.

    >>> as_carried([1, "a", None]).to_pylist(), as_carried([1, None], "number").to_pylist()
    (['1', 'a', None], [1.0, None])
    """
    pa = require("pyarrow", "Carrying columns", "data")
    if is_arrow(column):
        if pa.types.is_dictionary(column.type):
            return column.cast(column.type.value_type)
        return _decoded(column) if pa.types.is_binary(column.type) else column
    if isinstance(column, np.ndarray):
        return pa.array(column.tolist() if column.ndim > 1 else column)
    if kind == "number":
        with suppress(pa.ArrowException):  # some value is no number
            return pa.array(column, pa.float64())
    return pa.array(
        [value if value is None or isinstance(value, str) else _json(value) for value in column], pa.string()
    )


def joined_carried(parts: Sequence[Any]) -> Any:
    """The parts of a column together: of the widest type, or as text where types have nothing in common."""
    import pyarrow as pa

    try:
        tables = [pa.table({"column": part}) for part in parts]
        joined = pa.concat_tables(tables, promote_options="permissive")["column"].combine_chunks()
    except pa.ArrowException:
        joined = pa.concat_arrays([as_carried(part.to_pylist()) for part in parts])
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _decoded(column: Any) -> Any:
    import pyarrow as pa

    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8
        return pa.array(
            [None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist()]
        )
