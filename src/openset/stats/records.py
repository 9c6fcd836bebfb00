"""Tables as numpy record arrays: columns by name, rows by index, no data-frame library needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def make_records(columns: Mapping[str, NDArray[Any]]) -> Any:
    """A record array from equally long columns; ``table.fpr`` is a column, ``table[3].fpr`` a value."""
    dtype = [(name, column.dtype) for name, column in columns.items()]
    return np.rec.fromarrays(list(columns.values()), dtype=dtype)
