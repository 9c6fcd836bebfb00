"""Which columns of the source are used for what: those that settings name, and a good guess at the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from openset._utils.text import did_you_mean, listed
from openset.data.readers.cells import cells_of
from openset.data.readers.source import SAMPLE, Source
from openset.data.readers.tables import holds_row_numbers
from openset.errors import Parameter, ParameterError
from openset.features.table.fitted import TableColumn
from openset.pipeline.settings import RunSettings

ALL = "all"
"""``carry="all"``: every column of the target."""
_LABEL_NAMES = ("label", "class", "target", "kind", "category", "type", "species", "family", "y")
_MOST_CLASSES = 100


@dataclass(frozen=True)
class ChosenColumns:
    """``table`` are read as cells, of any kind; ``features`` as numbers or vectors; ``unread`` not at all."""

    table: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    unread: list[TableColumn] = field(default_factory=list)


def choose_columns(settings: RunSettings, source: Source, target: Source) -> ChosenColumns:
    """The columns that features are made of, beside text and image.

    That is every column of both but label, id, text, image, row numbers and those that are dropped, or those
    named in ``features``. One column of vectors may stand among them.
    """
    _refuse_unknown(settings, source)
    roles = (settings.label, settings.id, settings.text, settings.image, *source.defaults.values())
    unread = []
    if settings.features is not None:
        candidates = [name for name in settings.features if not _is_dropped(name, settings)]
    else:
        candidates = [name for name in source.kinds if name not in roles]
        reasons = {name: _why_not(name, settings, target) for name in candidates}
        unread = [TableColumn(name, why, note=f"not used: {why}") for name, why in reasons.items() if why]
        candidates = [name for name, why in reasons.items() if not why]
    vectors = [name for name in candidates if source.kinds[name] == "vector"]
    if len(vectors) > 1:
        raise ParameterError(
            f"{source.name}: {listed(map(repr, vectors))} hold whole vectors, and only one such column can be "
            "used: name it in ",
            Parameter("features", ...),
            ".",
        )
    table = tuple(name for name in candidates if name not in vectors)
    if not table and not vectors and settings.text is None and settings.image is None:
        _refuse_nothing_left(settings, source, unread)
    return ChosenColumns(table, tuple(vectors) or None, unread)


def carried_columns(settings: RunSettings, data: Source) -> tuple[str, ...]:
    """The columns of the data that the scored table has too, as they are; the id is there anyway."""
    if settings.carry is None:
        return ()
    if settings.carry == (ALL,) and ALL not in data.kinds:
        return tuple(name for name in data.kinds if name != settings.id)
    for name in settings.carry:
        if name not in data.kinds:
            hint = did_you_mean(name, data.kinds)
            raise ParameterError(Parameter("carry", name), f" is no column of {data.name}.{hint}")
    return tuple(name for name in settings.carry if name != settings.id)


def refuse_missing_label(settings: RunSettings, source: Source, target: Source) -> None:
    """Raise an error that helps if the source has no label column: likely ones, or files that were swapped."""
    label = settings.label
    if label is None and source.defaults:
        return
    if label is not None and label not in source.kinds and label in target.kinds:
        raise ParameterError(
            f"{source.name} has no column {label!r}, and {target.name} has one: source and target seem to be "
            "swapped. Give the labelled file first."
        )
    if label is None:
        likely = likely_labels(source, target)
        hint = f" Likely ones: {listed(map(repr, likely))}." if likely else ""
        raise ParameterError(
            "no label column is named: pass ",
            Parameter("label", ...),
            f", the column of the source that holds the known class.{hint}",
        )


def likely_labels(source: Source, target: Source) -> list[str]:
    """Columns that may hold the known class, most likely first: in source alone, a few values, a usual name."""
    chunk = next(iter(source.chunks(list(source.kinds), SAMPLE)), None)
    if chunk is None:
        return []

    def rank(name: str) -> tuple[bool, bool, int]:
        is_named = any(word in name.lower() for word in _LABEL_NAMES)
        return name in target.kinds, not is_named, len(levels[name])

    levels = {
        name: set(cells_of(chunk.columns[name]).coded()[1])
        for name, kind in source.kinds.items()
        if kind != "vector" and not holds_row_numbers(name)
    }
    few = [name for name, found in levels.items() if 2 <= len(found) <= min(_MOST_CLASSES, len(chunk.rows) / 2)]
    return sorted(few, key=rank)[:5]


def _why_not(name: str, settings: RunSettings, target: Source) -> str:
    """Why a column is not used; empty if it is."""
    if _is_dropped(name, settings):
        return "dropped"
    if holds_row_numbers(name):
        return "row numbers"
    return "" if name in target.kinds else "not in target"


def _is_dropped(name: str, settings: RunSettings) -> bool:
    return any(name == given or fnmatchcase(name, given) for given in settings.drop or ())


def _refuse_unknown(settings: RunSettings, source: Source) -> None:
    given: list[tuple[str, Iterable[str]]] = [
        ("features", settings.features or ()),
        ("drop", [name for name in settings.drop or () if not _is_pattern(name)]),
        ("kinds", settings.kinds),
    ]
    for setting, names in given:
        for name in names:
            if name not in source.kinds and name != settings.id:
                hint = did_you_mean(name, source.kinds)
                has = f" It has {listed(source.kinds, 20)}." if not hint else ""
                raise ParameterError(Parameter(setting, name), f" is no column of {source.name}.{hint}{has}")


def _is_pattern(name: str) -> bool:
    return any(mark in name for mark in "*?[")


def _refuse_nothing_left(settings: RunSettings, source: Source, unread: list[TableColumn]) -> None:
    if settings.drop is not None:
        raise ParameterError(Parameter("drop", list(settings.drop)), " leaves no feature.")
    absent = [column.name for column in unread if column.kind == "not in target"]
    if absent:
        raise ValueError(f"no column of {source.name} is in the target: it lacks {listed(map(repr, absent))}.")
    raise ValueError(
        f"{source.name} has no columns for features; it has {listed(source.kinds, 20) or 'none'}. "
        "Name a text or image column, or the features."
    )
