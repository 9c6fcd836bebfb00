"""From opened files to the rows of a run, with the checks that only a whole run can make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from openset.data.readers.columns import has_value
from openset.data.readers.open import open_source
from openset.data.readers.records import Records
from openset.data.readers.sampled import sample_rows
from openset.data.readers.source import Source
from openset.data.readers.tables import iter_batches, read_table
from openset.errors import BadRowsError, Parameter, ParameterError
from openset.features.fitted import FittedFeatures
from openset.features.table.fitted import TableColumn
from openset.pipeline.choose_columns import (
    ChosenColumns,
    carried_columns,
    choose_columns,
    refuse_missing_label,
)
from openset.pipeline.settings import FEWEST_ROWS, RunSettings

BATCH_ROWS = 16384
"""Rows read at a time where a sample of them is kept."""


@dataclass(frozen=True, eq=False)
class RunData:
    """The rows of a run, its settings with the columns that a folder of images brings, and columns not read.

    Where there are more rows than ``settings.fit_rows``, ``source`` and ``target`` are samples (``drawn``), and
    ``target_batches`` reads all target rows again.
    """

    settings: RunSettings
    source: Records
    target: Records
    unread: list[TableColumn] = field(default_factory=list)
    target_batches: Callable[[int], Iterator[Records]] | None = None


def read_data(settings: RunSettings, source: Any, target: Any) -> RunData:
    """Open source and target, each once, and read the rows that settings ask for."""
    opened, opened_target = open_source(source), open_source(target)
    refuse_missing_label(settings, opened, opened_target)
    settings = _with_defaults(settings, opened)
    chosen = choose_columns(settings, opened, opened_target)
    return RunData(
        settings,
        read_source(settings, opened, chosen),
        read_target(settings, opened_target, chosen),
        chosen.unread,
        partial(_target_batches, settings, opened_target, chosen),
    )


def read_fitted(settings: RunSettings, source: Any, target: Any, fitted: FittedFeatures | None) -> RunData:
    """The rows of a run that was fitted before."""
    chosen = columns_of(settings, fitted)
    opened, opened_target = open_source(source), open_source(target)
    return RunData(settings, read_source(settings, opened, chosen), read_target(settings, opened_target, chosen))


def read_source(settings: RunSettings, source: Source, chosen: ChosenColumns) -> Records:
    """The labelled rows. A row without a label is skipped and counted."""
    # ids tell target rows apart; labelled rows need none
    columns = _columns(settings if settings.id in source.kinds else replace(settings, id=None), chosen)
    records = _read(settings, source, label=settings.label, **columns)
    if records.y is None:
        raise ValueError(
            f"{source.name} has no class folders: expected <class>/<name>.jpg, or a table with a label."
        )
    _refuse_few(records, source, "source")
    _refuse_blank(records, settings, source)
    return records


def read_target(settings: RunSettings, target: Source, chosen: ChosenColumns) -> Records:
    """The unlabelled rows; every one that the file holds whole is read, whatever is missing in it."""
    if not settings.ignore_target_labels and has_labels(target, settings.label):
        raise ParameterError(
            f"{target.name} has labels in {settings.label!r}, but the target is to be unlabelled. Were source "
            "and target swapped, or given twice? To ignore these labels, pass ",
            Parameter("ignore_target_labels", True),
            "; to measure a fitted run against them, use 'openset evaluate'.",
        )
    records = _read(settings, target, **_target_columns(settings, target, chosen))
    _refuse_few(records, target, "target")
    _refuse_blank(records, settings, target)
    return records


def _read(settings: RunSettings, source: Source, **columns: Any) -> Records:
    """All rows, or a sample of ``settings.fit_rows``: which it is does not depend on how the rows are read."""
    options = {"skip_bad": settings.skip_bad, "keep_gaps": True, **columns}
    most = settings.most_rows
    if most is None or (source.n_rows is not None and source.n_rows <= most):
        return read_table(source, **options)
    # a source that cannot tell its length has small chunks of its own
    size = None if source.n_rows is None else BATCH_ROWS
    return sample_rows(iter_batches(source, batch_rows=size, **options), most, seed=settings.seed)


def _target_batches(
    settings: RunSettings, target: Source, chosen: ChosenColumns, batch_rows: int
) -> Iterator[Records]:
    """All rows of the target once more, read as :func:`read_target` reads them."""
    columns = _target_columns(settings, target, chosen)
    return iter_batches(target, batch_rows=batch_rows, skip_bad=settings.skip_bad, keep_gaps=True, **columns)


def _target_columns(settings: RunSettings, target: Source, chosen: ChosenColumns) -> dict[str, Any]:
    return {**_columns(settings, chosen), "carry": carried_columns(settings, target)}


def read_labelled(
    settings: RunSettings, data: Any, label: str | None, fitted: FittedFeatures | None = None
) -> Records:
    """Rows whose labels arrived later, in the run's label column or another; they need no ids."""
    columns = _columns(replace(settings, id=None), columns_of(settings, fitted))
    records = read_table(data, label=label or settings.label, skip_bad=settings.skip_bad, **columns)
    if records.y is None:
        raise ParameterError("no label column is named: pass ", Parameter("label", ...), ".")
    return records


def stream(
    settings: RunSettings, data: Source, batch_rows: int, fitted: FittedFeatures | None = None
) -> Iterator[Records]:
    """The rows of further data, read as the target was; every row must be usable."""
    columns = {**_columns(settings, columns_of(settings, fitted)), "carry": carried_columns(settings, data)}
    return _all_usable(iter_batches(data, batch_rows=batch_rows, keep_gaps=True, **columns))


def _all_usable(batches: Iterator[Records]) -> Iterator[Records]:
    try:
        yield from batches
    except BadRowsError as error:
        raise ValueError(f"{error.found} Every row must be scored: fix them first.") from None


def has_labels(target: Source, label: str | None) -> bool:
    """Whether the label column is there with a value in at least one row; reading stops at the first."""
    if label is None or label not in target.kinds:
        return False
    return any(has_value(chunk.columns[label]) for chunk in target.chunks([label], 65536))


def columns_of(settings: RunSettings, fitted: FittedFeatures | None) -> ChosenColumns:
    """The columns of a run that was fitted; a run of an earlier openset has numbers only, under ``features``."""
    if fitted is None:
        return ChosenColumns(features=settings.features)
    table = () if fitted.table is None else tuple(column.name for column in fitted.table.used)
    vectors = [block.column for block in fitted.blocks if block.kind == "vector" and block.column is not None]
    return ChosenColumns(table, tuple(vectors) or None)


def _with_defaults(settings: RunSettings, source: Source) -> RunSettings:
    """Settings that name the columns that a folder of images brings by itself."""
    if "image" not in source.defaults or settings.image is not None:
        return settings
    label = settings.label or source.defaults.get("label")
    return replace(settings, image="image", id=settings.id or "image", label=label)


def _columns(settings: RunSettings, chosen: ChosenColumns) -> dict[str, Any]:
    names = {name: getattr(settings, name) for name in ("text", "image", "id")}
    names |= {"features": chosen.features, "cells": chosen.table or None}
    return {name: value for name, value in names.items() if value is not None}


def _refuse_few(records: Records, source: Source, role: str) -> None:
    if len(records) < FEWEST_ROWS:
        raise ValueError(
            f"{source.name} has {len(records)} rows to use, too few to learn from and to check on: "
            f"the {role} needs at least {FEWEST_ROWS}, and some hundreds for a useful answer."
        )


def _refuse_blank(records: Records, settings: RunSettings, source: Source) -> None:
    if records.texts is not None and not any(text.strip() for text in records.texts):
        raise ValueError(f"{source.name}: every text in column {settings.text!r} is blank.")
