"""Columns that are carried from the data to the scored table as they are, in Arrow arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset.data.readers.columns import is_arrow


def as_carried(column: Any) -> Any:
    """A column as an Arrow array; the text of CSV files stays text, mixed values become JSON.

    >>> as_carried([1, "a", None]).to_pylist(), as_carried(np.array([1.5])).to_pylist()
    (['1', '"a"', None], [1.5])
    """
    pa = require("pyarrow", "Carrying columns", "data")
    if is_arrow(column):
        if pa.types.is_dictionary(column.type):
            return column.cast(column.type.value_type)
        return _decoded(column) if pa.types.is_binary(column.type) else column
    if isinstance(column, np.ndarray) and column.ndim > 1:
        column = column.tolist()
    try:
        return pa.array(column)
    except pa.ArrowException:  # values of several types
        return pa.array([None if value is None else json.dumps(value, default=str) for value in column])


def joined_carried(parts: Sequence[Any]) -> Any:
    """The parts of a column together; as text where their types differ."""
    import pyarrow as pa

    if len({part.type for part in parts}) > 1:
        types = {part.type for part in parts if not pa.types.is_null(part.type)}
        kind = types.pop() if len(types) == 1 else pa.string()
        parts = [part.cast(kind) for part in parts]
    return pa.concat_arrays(parts)


def _decoded(column: Any) -> Any:
    import pyarrow as pa

    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8
        return pa.array(
            [None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist()]
        )
