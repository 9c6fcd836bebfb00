"""From opened files to the rows of a run, with the checks that only a whole run can make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from openset._utils.text import did_you_mean, listed
from openset.data.readers.columns import has_value
from openset.data.readers.open import open_source
from openset.data.readers.records import Records
from openset.data.readers.source import Source
from openset.data.readers.tables import holds_row_numbers, iter_batches, numeric_columns, read_table
from openset.errors import BadRowsError, Parameter, ParameterError
from openset.pipeline.settings import RunSettings

FEWEST_ROWS = 20
"""With fewer, a fifth for validation has at most three rows, which can tell nothing."""


@dataclass(frozen=True, eq=False)
class RunData:
    """The rows of a run, and its settings with every column named."""

    settings: RunSettings
    source: Records
    target: Records
    ignored: list[str]
    """Columns of the source that are not used."""


def read_data(settings: RunSettings, source: Any, target: Any) -> RunData:
    """Open source and target, each once, and read the rows that settings ask for."""
    opened_source, opened_target = open_source(source), open_source(target)
    ignored = ignored_columns(settings, opened_source)
    source_records, named = read_source(settings, opened_source)
    return RunData(named, source_records, read_target(named, opened_target), ignored)


def read_source(settings: RunSettings, source: Source) -> tuple[Records, RunSettings]:
    """The labelled rows, and the settings with the columns that were found named."""
    if settings.label is None and not source.defaults:
        raise ParameterError(
            "no label column is named: pass ",
            Parameter("label", ...),
            ", the column of the source that holds the known class.",
        )
    settings = _without_dropped(settings, source)
    _refuse_categories(settings, source)
    # ids tell target rows apart; labelled rows need none
    columns = _columns(settings if settings.id in source.kinds else replace(settings, id=None))
    records = read_table(source, label=settings.label, skip_bad=settings.skip_bad, **columns)
    if records.y is None:
        raise ValueError(
            f"{source.name} has no class folders: expected <class>/<name>.jpg, or a table with a label."
        )
    _refuse_few(records, source, "source")
    _refuse_blank(records, settings, source)
    if records.images is not None and settings.image is None:  # a folder brings its columns by itself
        named = replace(settings, image="image", id=settings.id or "image", label=settings.label or "label")
    else:
        named = replace(settings, features=records.feature_names) if records.X is not None else settings
    return records, named


def read_target(settings: RunSettings, target: Source) -> Records:
    """The unlabelled rows. Settings are those that :func:`read_source` returned."""
    if not settings.ignore_target_labels and has_labels(target, settings.label):
        raise ParameterError(
            f"{target.name} has labels in {settings.label!r}, but the target is to be unlabelled. Were source "
            "and target swapped, or given twice? To ignore these labels, pass ",
            Parameter("ignore_target_labels", True),
            "; to measure a fitted run against them, use 'openset evaluate'.",
        )
    records = read_table(target, skip_bad=settings.skip_bad, **_columns(settings))
    _refuse_few(records, target, "target")
    _refuse_blank(records, settings, target)
    return records


def read_labelled(settings: RunSettings, data: Any, label: str | None) -> Records:
    """Rows whose labels arrived later, in the run's label column or another; they need no ids."""
    columns = _columns(replace(settings, id=None))
    return read_table(data, label=label or settings.label, skip_bad=settings.skip_bad, **columns)


def stream(settings: RunSettings, data: Source, batch_rows: int) -> Iterator[Records]:
    """The rows of further data, read as the target was; every row must be usable."""
    return _all_usable(iter_batches(data, batch_rows=batch_rows, **_columns(settings)))


def _all_usable(batches: Iterator[Records]) -> Iterator[Records]:
    try:
        yield from batches
    except BadRowsError as error:
        raise ValueError(f"{error.found} Every row must be scored: fix them first.") from None


def ignored_columns(settings: RunSettings, source: Source) -> list[str]:
    """Columns that are no features because they hold no numbers or row numbers; none where features are named."""
    if settings.features is not None or settings.text is not None or settings.image is not None:
        return []
    return [
        name
        for name, kind in source.kinds.items()
        if (kind == "other" or holds_row_numbers(name))
        and name not in (settings.label, settings.id, *(settings.drop or ()))
    ]


def has_labels(target: Source, label: str | None) -> bool:
    """Whether the label column is there with a value in at least one row; reading stops at the first."""
    if label is None or label not in target.kinds:
        return False
    return any(has_value(chunk.columns[label]) for chunk in target.chunks([label], 65536))


def _columns(settings: RunSettings) -> dict[str, Any]:
    names = {name: getattr(settings, name) for name in ("features", "text", "image", "id")}
    return {name: value for name, value in names.items() if value is not None}


def _without_dropped(settings: RunSettings, source: Source) -> RunSettings:
    """Settings that name the features, where columns of numbers are to be left out."""
    if settings.drop is None or settings.text is not None or settings.image is not None:
        return settings
    for name in settings.drop:
        if name not in source.kinds:
            hint = did_you_mean(name, source.kinds)
            raise ParameterError(Parameter("drop", name), f" is no column of {source.name}.{hint}")
    but = (settings.label, settings.id, *settings.drop)
    names = settings.features if settings.features is not None else numeric_columns(source, *but)
    kept = tuple(name for name in names if name not in settings.drop)
    if not kept:
        raise ParameterError(Parameter("drop", list(settings.drop)), " leaves no feature.")
    return replace(settings, features=kept)


def _refuse_categories(settings: RunSettings, source: Source) -> None:
    others = [name for name in settings.features or () if source.kinds.get(name) == "other"]
    if others:
        raise ParameterError(
            f"{source.name}: {listed(map(repr, others))} holds no numbers, so it cannot be a feature. "
            "Write categories as numbers (a column of 0 and 1 for each value), leave the column out, or encode "
            "it with ",
            Parameter("text", ...),
            ".",
        )


def _refuse_few(records: Records, source: Source, role: str) -> None:
    if len(records) < FEWEST_ROWS:
        raise ValueError(
            f"{source.name} has {len(records)} rows to use, too few to learn from and to check on: "
            f"the {role} needs at least {FEWEST_ROWS}, and some hundreds for a useful answer."
        )


def _refuse_blank(records: Records, settings: RunSettings, source: Source) -> None:
    if records.texts is not None and not any(text.strip() for text in records.texts):
        raise ValueError(f"{source.name}: every text in column {settings.text!r} is blank.")
