"""From a user's files to the rows and features of a run, with the checks that only a whole run can make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import listed
from openset.data.readers.columns import has_value
from openset.data.readers.open import open_source
from openset.data.readers.records import Records
from openset.data.readers.tables import holds_row_numbers, iter_batches, read_table
from openset.pipeline.settings import RunSettings
from openset.pipeline.summary import EncodedColumn

FEWEST_ROWS = 20
"""Below this a held-out fifth has at most three rows, which can tell nothing."""


def read_source(settings: RunSettings, source: Any) -> tuple[Records, RunSettings]:
    """The labelled rows, and the settings with the columns that were found named."""
    if settings.label is None and not _is_folder(source):
        raise ValueError("no label column is named: say which column of the source holds the known class.")
    _refuse_categories(settings, source)
    # ids tell target rows apart; labelled rows need none
    has_ids = settings.id is not None and settings.id in open_source(source).kinds
    columns = _columns(settings if has_ids else replace(settings, id=None))
    records = read_table(source, label=settings.label, skip_bad=settings.skip_bad, **columns)
    if records.y is None:
        raise ValueError(f"{source} has no class folders: expected <class>/<name>.jpg, or a table with a label.")
    _refuse_few(records, source, "source")
    _refuse_blank(records, settings, source)
    if records.images is not None and settings.image is None:  # a folder brings its columns by itself
        named = replace(settings, image="image", id=settings.id or "image", label=settings.label or "label")
    else:
        named = replace(settings, features=records.feature_names) if records.X is not None else settings
    return records, named


def read_target(settings: RunSettings, target: Any) -> Records:
    """The unlabelled rows. Settings are those that :func:`read_source` gave back."""
    if settings.label is not None and not settings.ignore_target_labels and has_values(target, settings.label):
        raise ValueError(
            f"{_name(target)} has labels in {settings.label!r}, but the target is to be unlabelled. Were source "
            "and target swapped, or given twice? To go on without these labels, pass ignore_target_labels=True; "
            "to measure a fitted run against them, evaluate it on this file."
        )
    records = read_table(target, skip_bad=settings.skip_bad, **_columns(settings))
    _refuse_few(records, target, "target")
    _refuse_blank(records, settings, target)
    return records


def read_labelled(settings: RunSettings, data: Any, label: str | None) -> Records:
    """Rows whose labels arrived later, in the run's label column or another; they need no ids."""
    columns = _columns(replace(settings, id=None))
    return read_table(data, label=label or settings.label, skip_bad=settings.skip_bad, **columns)


def stream(settings: RunSettings, data: Any, batch_rows: int) -> Iterator[Records]:
    """The rows of further data, read as the target was; none is left out."""
    return iter_batches(data, batch_rows=batch_rows, **_columns(settings))


def left_out(settings: RunSettings, source: Any) -> list[str]:
    """Columns that are no numbers, or row numbers, and so no features; empty where features were named."""
    if settings.features is not None or settings.text is not None or settings.image is not None:
        return []
    kinds = open_source(source).kinds
    return [
        name
        for name, kind in kinds.items()
        if (kind == "other" or holds_row_numbers(name)) and name not in (settings.label, settings.id)
    ]


def has_values(data: Any, column: str) -> bool:
    """Whether there is such a column with a value in at least one row."""
    opened = open_source(data)
    if column not in opened.kinds:
        return False
    return any(has_value(chunk.columns[column]) for chunk in opened.chunks([column], 65536))


@dataclass
class FeatureMaker:
    """Makes the features of records: their numbers as they are, text and images through one encoder."""

    settings: RunSettings
    progress: bool = False
    _encoder: Any = field(default=None, init=False)

    def __call__(self, records: Records) -> NDArray[np.floating]:
        """One row of features for each record."""
        if records.X is not None:
            return records.X
        from openset.features import ImageEncoder, TextEncoder, encode_images, encode_texts

        given = () if self.settings.encoder is None else (self.settings.encoder,)
        if records.texts is not None:
            self._encoder = self._encoder or TextEncoder(*given)
            return encode_texts(records.texts, self._encoder, progress=self.progress)
        if records.images is not None:
            self._encoder = self._encoder or ImageEncoder(*given)
            return encode_images(records.images, self._encoder, progress=self.progress)
        raise ValueError("there are no features: name columns of numbers, or a text or image column.")

    @property
    def description(self) -> list[str] | EncodedColumn:
        """For the summary of a run: the columns' names, or the column and the encoder that read it."""
        if self._encoder is None:
            return list(self.settings.features or ())
        return EncodedColumn(
            kind="text" if self.settings.text is not None else "image",
            column=self.settings.text or self.settings.image,
            encoder=self._encoder.name,
            fingerprint=self._encoder.fingerprint,
        )


def _columns(settings: RunSettings) -> dict[str, Any]:
    names = {name: getattr(settings, name) for name in ("features", "text", "image", "id")}
    return {name: value for name, value in names.items() if value is not None}


def _is_folder(data: Any) -> bool:
    return isinstance(data, (str, Path)) and Path(data).is_dir()


def _name(data: Any) -> str:
    return str(data) if isinstance(data, (str, Path)) else "the data frame"


def _refuse_categories(settings: RunSettings, source: Any) -> None:
    kinds = open_source(source).kinds
    others = [name for name in settings.features or () if kinds.get(name) == "other"]
    if others:
        raise ValueError(
            f"{_name(source)}: {listed(map(repr, others))} holds no numbers, so it is no feature as it stands. "
            "Write categories as numbers (a column of 0 and 1 for each value), leave the column out, or pass it "
            "as text."
        )


def _refuse_few(records: Records, data: Any, role: str) -> None:
    if len(records) < FEWEST_ROWS:
        raise ValueError(
            f"{_name(data)} has {len(records)} rows to use, too few to learn from and to check on: "
            f"the {role} needs at least {FEWEST_ROWS}, and some hundreds for a useful answer."
        )


def _refuse_blank(records: Records, settings: RunSettings, data: Any) -> None:
    if records.texts is not None and not any(text.strip() for text in records.texts):
        raise ValueError(f"{_name(data)}: every text in column {settings.text!r} is blank.")
