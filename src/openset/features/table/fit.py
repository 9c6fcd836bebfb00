"""Fitting a table: what each column becomes, from source; the target only tells where flags are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import listed
from openset.data.readers.cells import Cells
from openset.features.table.apply import Table, cells_as, date_parts, tamed, values_of
from openset.features.table.column_kinds import Kind, kind_of_cells, set_kind
from openset.features.table.fitted import DATE_PARTS, FittedTable, TableColumn
from openset.stats.column_checks import odd_columns
from openset.stats.scaling import fit_scaling, moments

ONE_HOT = 100
"""A category with more levels is hashed into ``BUCKETS`` columns."""
BUCKETS, MOST_LEVELS = 32, 5000
HEAVY = 10.0
"""A number has a heavy tail if its largest size is so many times the median of its sizes, zeros left out."""
ARRAY = 16
"""So many columns of numbers of about one spread, as pixels and genes have it, are an array of one unit."""
LEAST_VARIANCE = 0.01
"""So that a level that source hardly has, or a number that is nearly constant, is lifted tenfold at most."""
_NOTES = {
    "constant": "not used: one value everywhere",
    "empty": "not used: no values",
    "id": "not used: nearly every value occurs once; pass --id, or --as {name}=category",
    "text": "not used: free text; pass --text {name} to encode it",
    "nested": "not used: lists or records",
}


def fit_table(source: Table, target: Table | None = None, kinds: Mapping[str, str] | None = None) -> FittedTable:
    """Decide for every column what becomes of it. ``kinds`` has those that a person set.

    The target is looked at, without labels, for three things: a column with gaps there alone gets a flag too, a
    column is constant only if it is so in both, and parts of a date that tell the domains apart are left out.
    """
    columns = [
        _fit_column(name, cells, None if target is None else target.get(name), (kinds or {}).get(name))
        for name, cells in source.items()
    ]
    fitted = FittedTable(columns)
    if not fitted.used:
        reasons = listed([f"{column.name!r} is {column.note}" for column in columns], 8)
        raise ValueError(f"no column can be a feature: {reasons or 'there is none'}.")
    one_unit = _is_array(fitted, source)
    if not one_unit:
        columns = [_settled(column, source[column.name]) for column in columns]
        fitted = FittedTable(columns)
        if not fitted.used:
            raise ValueError("no column can be a feature: each has one value everywhere.")
    if all(_is_plain(column) for column in fitted.used):
        return fitted
    mean, factor = _scaling(fitted, tamed(fitted, values_of(fitted, source).values), one_unit)
    return replace(fitted, mean=mean.tolist(), factor=factor.tolist())


def _is_array(fitted: FittedTable, source: Table) -> bool:
    """Whether the columns of numbers are an array of one unit: it is left as it is, constants and all."""
    numbers = [column.name for column in fitted.used if column.kind == "number"]
    if len(numbers) < ARRAY:
        return False
    values = values_of(FittedTable([c for c in fitted.used if c.name in set(numbers)]), source).values
    return fit_scaling(moments(values), None, "auto").rule == "global"


def _settled(column: TableColumn, cells: Cells) -> TableColumn:
    """The column of a table of different units: constants are not used, heavy tails are tamed."""
    if column.is_used and column.is_constant:
        return TableColumn(column.name, "constant", note=_NOTES["constant"])
    if column.kind != "number":
        return column
    numbers = _numbers(cells, column.kind, column.form)
    sizes = np.abs(numbers[~np.isnan(numbers) & (numbers != 0)]).astype(np.float64)
    is_heavy = len(sizes) > 0 and sizes.max() > HEAVY * np.median(sizes)
    return replace(column, tail=float(np.median(sizes))) if is_heavy else column


def _fit_column(name: str, cells: Cells, target: Cells | None, chosen: str | None) -> TableColumn:
    try:
        kind = kind_of_cells(cells) if chosen is None else set_kind(cells, chosen)
    except ValueError as error:
        raise ValueError(f"column {name!r} cannot be a {chosen}: {error}.") from None
    if kind.name in _NOTES:
        return TableColumn(name, kind.name, note=_NOTES[kind.name].format(name=name))
    gaps, target_gaps = (0.0 if part is None else _gaps(part, kind) for part in (cells, target))
    column = TableColumn(
        name,
        kind.name,
        has_flag=bool(gaps or target_gaps),
        form=kind.form,
        missing=gaps,
        missing_in_target=target_gaps,
        note=f"{100 * kind.unusable:.3g} % cannot be read and count as missing" if kind.unusable else "",
    )
    column = replace(column, is_constant=not column.has_flag and _is_constant(cells, target, kind))
    fitters = {"category": _fit_category, "date": _fit_date}
    return fitters.get(kind.name, _fit_number)(column, cells, target)


def _fit_number(column: TableColumn, cells: Cells, target: Cells | None) -> TableColumn:
    numbers = _numbers(cells, column.kind, column.form)
    return replace(column, fill=float(np.median(numbers[~np.isnan(numbers)])))


def _fit_category(column: TableColumn, cells: Cells, target: Cells | None) -> TableColumn:
    codes, levels = cells.coded()
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    common = sorted(range(len(levels)), key=lambda i: (-counts[i], levels[i]))[:MOST_LEVELS]
    kept = sorted(levels[i] for i in common)
    return replace(column, fill=levels[common[0]], levels=kept, buckets=BUCKETS if len(kept) > ONE_HOT else 0)


def _fit_date(column: TableColumn, cells: Cells, target: Cells | None) -> TableColumn:
    """Parts that vary; those that alone tell source from target say only that the target is later."""
    seconds = cells.times(column.form)
    fill = float(np.median(seconds[~np.isnan(seconds)]))
    parts = _parts(seconds, fill)
    kept = [i for i, part in enumerate(parts) if np.ptp(part)]
    left_out: list[str] = []
    if target is not None:
        later = _parts(target.times(column.form), fill)
        kept = [i for i in range(len(parts)) if np.ptp(np.concatenate([parts[i], later[i]]))]
        if len(later[0]):
            left_out = _separating(parts, later, kept)
    names = [DATE_PARTS[i] for i in kept if DATE_PARTS[i] not in left_out]
    if not names:
        reason = "its parts alone tell source from target" if left_out else "one value everywhere"
        return TableColumn(column.name, "constant", note=f"not used: {reason}")
    note = f"without {', '.join(left_out)}, which alone tell source from target" if left_out else ""
    return replace(column, fill=fill, parts=names, note="; ".join(part for part in (column.note, note) if part))


def _separating(parts: list[NDArray[np.float64]], later: list[NDArray[np.float64]], kept: list[int]) -> list[str]:
    """The parts of a date that alone tell source from target."""
    if not kept:
        return []
    source, target = (np.column_stack([found[i] for i in kept]) for found in (parts, later))
    return [odd.name for odd in odd_columns(source, target, [DATE_PARTS[i] for i in kept])]


def _parts(seconds: NDArray[np.float64], origin: float) -> list[NDArray[np.float64]]:
    return date_parts(seconds[~np.isnan(seconds)], list(DATE_PARTS), origin)


def _numbers(cells: Cells, kind: str, form: str) -> NDArray[np.floating]:
    numbers = cells_as(cells, kind, form)
    return numbers if numbers.dtype.kind == "f" else numbers.astype(np.float64)


def _gaps(cells: Cells, kind: Kind) -> float:
    """The share of cells that are missing or cannot be read as this kind."""
    if not len(cells):
        return 0.0
    if kind.name == "category":
        return float(cells.missing.mean())
    return float(np.isnan(_numbers(cells, kind.name, kind.form)).mean())


def _is_constant(cells: Cells, target: Cells | None, kind: Kind) -> bool:
    if kind.name == "category":
        levels = {level for part in (cells, target) if part is not None for level in part.coded()[1]}
        return len(levels) < 2
    parts = [_numbers(part, kind.name, kind.form) for part in (cells, target) if part is not None]
    values = np.concatenate(parts)
    values = values[~np.isnan(values)]
    return bool(values.min() == values.max())


def _is_plain(column: TableColumn) -> bool:
    return column.kind in ("number", "boolean", "duration") and not column.has_flag and column.tail is None


def _least_variance(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variance that a number gets at least, from how far its values are from the median where they differ."""
    away = values - np.median(values, axis=0)
    differing = np.maximum((away != 0).sum(axis=0), 1)
    return np.asarray(LEAST_VARIANCE * (away**2).sum(axis=0) / differing)


def _scaling(
    fitted: FittedTable, values: NDArray[np.float64], one_unit: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and factor of every feature: each number, and each category as a whole, gets variance 1 in source.

    Numbers of one unit share one factor.
    """
    mean, variance = values.mean(axis=0), values.var(axis=0)
    if one_unit:
        kinds = [column.kind if i == 0 else "" for column in fitted.used for i in range(len(column.features))]
        is_number = np.array(kinds) == "number"
        variance[is_number] = variance[is_number].mean()
    start = 0
    for column in fitted.used:
        own = len(column.features) - column.has_flag
        stop = start + own
        if column.kind == "category":
            variance[start:stop] = max(variance[start:stop].sum(), LEAST_VARIANCE)
        elif not one_unit:
            variance[start:stop] = np.maximum(variance[start:stop], _least_variance(values[:, start:stop]))
        if column.has_flag:
            variance[stop] = max(variance[stop], LEAST_VARIANCE)
        start = stop + column.has_flag
    is_varying = variance > 1e-24 * np.maximum(1.0, mean**2)
    factor = 1 / np.sqrt(np.where(is_varying, variance, 1.0))
    return mean, factor
