"""The columns that a split is made from: checks, comparison with a manifest, and labels with a new class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import is_missing, resolve_novel_label, with_novel
from openset.errors import ManifestError
from openset.shift.manifest import column_checksum

Columns = dict[str, NDArray[Any]]


def as_columns(**columns: Any) -> Columns:
    """Return the columns that are not None, as one-dimensional arrays of equal length without missing values."""
    checked = {name: _as_column(name, values) for name, values in columns.items() if values is not None}
    lengths = {name: len(values) for name, values in checked.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(f"the columns differ in length: {listed}. Each needs one value per row.")
    if not all(lengths.values()):
        raise ValueError(f"{next(iter(lengths))} is empty: there are no rows to split.")
    return checked


def as_array(values: Any) -> NDArray[Any]:
    """Return an array of the values as they are; numpy alone would turn a number among texts into a text."""
    if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    return np.asarray(values)


def _as_column(name: str, values: Any) -> NDArray[Any]:
    column = as_array(values)
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}: expected one value per row.")
    if column.dtype.kind == "S":
        column = column.astype(str)
    if column.dtype.kind not in "biufU":
        column = column.astype(object)
        present = [value for value in column.tolist() if not is_missing(value)]
        kinds = {type(value) for value in present}
        others = [kind.__name__ for kind in kinds if not issubclass(kind, (str, int, float, bool))]
        if others or (len(kinds) > 1 and str in kinds):
            listed = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(f"{name} holds {listed}: expected texts in all rows, or numbers in all rows.")
        missing = len(column) - len(present)
    else:
        missing = int((~np.isfinite(column)).sum()) if column.dtype.kind == "f" else 0
    if missing:
        raise ValueError(f"{name} has {missing} missing values: every row needs one.")
    return column


def same_columns(columns: Columns, checksums: Mapping[str, str]) -> None:
    """Raise unless these columns have these checksums."""
    if columns.keys() != checksums.keys():
        raise ManifestError(
            f"the manifest was made from the columns {', '.join(checksums)}, but got "
            f"{', '.join(columns) or 'none'}: pass the same columns by name."
        )
    for name, checksum in checksums.items():
        if column_checksum(columns[name]) != checksum:
            raise ManifestError(
                f"column {name} is not the one the manifest was made from: its checksum differs. "
                "Use the same rows in the same order."
            )


def matches(columns: Columns, rule: Mapping[str, Sequence[Any]]) -> NDArray[np.bool_]:
    """Mark the rows that have, in every column of the rule, one of the values listed for it."""
    found = [np.isin(columns[name], as_values(columns[name], values)) for name, values in rule.items()]
    return np.logical_and.reduce(found)


def as_values(column: NDArray[Any], values: Iterable[Any]) -> NDArray[Any]:
    """Return the values as an array of the column's type, so that 1 never equals "1"."""
    listed = list(values)
    if column.dtype.kind == "U" and all(isinstance(value, str) for value in listed):
        return np.array(listed, dtype=str)
    if column.dtype.kind in "biuf" and not any(isinstance(value, str) for value in listed):
        return np.array(listed, dtype=column.dtype if not listed else None)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def require(name: str, column: NDArray[Any], values: Iterable[Any]) -> list[Any]:
    """Return the values as plain Python values; raise where the column lacks one, and list what it holds."""
    wanted = [value.item() if isinstance(value, np.generic) else value for value in values]
    there = set(np.unique(column).tolist())
    absent = [value for value in wanted if value not in there]
    if absent:
        shown = ", ".join(map(repr, sorted(there, key=str)[:12])) + (", …" if len(there) > 12 else "")
        raise ValueError(f"{name} has no rows of {', '.join(map(repr, absent))}: it holds {shown}.")
    return wanted


def open_set_labels(
    classes: NDArray[Any], is_novel: NDArray[np.bool_], novel_label: Any
) -> tuple[NDArray[Any], Any]:
    """Return every row's class, with the novel label for rows of the new class, and that label."""
    label = resolve_novel_label(novel_label, classes)
    if label in set(classes[~is_novel].tolist()):
        raise ValueError(f"novel_label={label!r} is one of the classes: choose a label that no class has.")
    labels = with_novel(classes, label)[:-1]
    labels[is_novel] = label
    return labels, label
