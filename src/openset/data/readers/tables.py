"""``read_table`` and ``iter_batches`` read a table, an array file, a folder of images or a data frame."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_flag, check_integer
from openset._utils.text import did_you_mean, listed
from openset.data.readers.carried import as_carried
from openset.data.readers.cells import cells_of
from openset.data.readers.columns import (
    Problems,
    missing,
    missing_in,
    read_keys,
    read_numbers,
    read_texts,
    read_vectors,
    without_blanks,
)
from openset.data.readers.images import ImageFiles
from openset.data.readers.open import open_source
from openset.data.readers.records import Records, SeenIds, SkippedRow, concatenate
from openset.data.readers.source import Chunk, Source
from openset.errors import BadRowsError, Parameter

_ROW_NUMBERS = re.compile(r"(__index_level_\d+__|Unnamed: \d+|\s*)$")
_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"


def read_table(
    source: Any,
    *,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    text: str | None = None,
    image: str | None = None,
    id: str | None = None,
    cells: Sequence[str] | None = None,
    carry: Sequence[str] = (),
    skip_bad: bool = False,
    keep_gaps: bool = False,
) -> Records:
    """Read all rows of a file, a folder of images, or a data frame.

    The extension tells the format: Parquet, CSV, TSV, JSON lines, Arrow, Feather, ``.npy`` or ``.npz``; CSV, TSV
    and JSON lines may be gzipped. ``features`` names the columns of ``X``: several columns of numbers, or one
    that holds whole vectors. Without ``features``, ``text`` and ``image``, ``X`` is made of every column of
    numbers except ``label`` and ``id``, or of the only column of vectors; ``feature_names`` lists them. Image
    paths are relative to the folder of the table. In a folder of images the first level of folders is the label
    and the path is the id. ``cells`` names columns of any kind, which may have gaps: they become ``table``.
    The columns ``carry`` are kept as they are, in ``carried``.

    A row with a missing or unusable value, or with an id that came before, is an error that names the row. With
    ``skip_bad=True`` such rows are skipped and listed in ``skipped``. All other rows are returned in order. With
    ``keep_gaps=True`` a missing text or image path is blank, and a row without a label is skipped even without
    ``skip_bad``.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [0.5, 1.5, None], "kind": ["a", "b", "a"]})
    >>> records = read_table(frame, label="kind", skip_bad=True)
    >>> records.X.tolist(), records.y.tolist(), records.skipped[0].reason
    ([[0.5], [1.5]], ['a', 'b'], "column 'x' is missing")
    """
    reader = _open_reader(source, _Asked(label, features, text, image, id, cells, carry), skip_bad, keep_gaps)
    return concatenate(list(reader.batches(None)))


def iter_batches(
    source: Any,
    *,
    label: str | None = None,
    features: str | Sequence[str] | None = None,
    text: str | None = None,
    image: str | None = None,
    id: str | None = None,
    cells: Sequence[str] | None = None,
    carry: Sequence[str] = (),
    batch_rows: int | None = 16384,
    skip_bad: bool = False,
    keep_gaps: bool = False,
) -> Iterator[Records]:
    """Read like :func:`read_table`, but in batches of at most ``batch_rows`` rows: for files larger than memory.

    With None the source chooses their size.

    Memory holds one batch, and eight bytes for each id so far, to find repeated ids. A missing column is an error
    at once, a bad row when its batch is read.

    >>> import pandas as pd
    >>> [len(batch) for batch in iter_batches(pd.DataFrame({"x": range(5)}), batch_rows=2)]
    [2, 2, 1]
    """
    check_integer("batch_rows", batch_rows, optional=True)
    asked = _Asked(label, features, text, image, id, cells, carry)
    return _open_reader(source, asked, skip_bad, keep_gaps).batches(batch_rows)


class _Asked(NamedTuple):
    """The columns that a caller names."""

    label: str | None
    features: str | Sequence[str] | None
    text: str | None
    image: str | None
    id: str | None
    cells: Sequence[str] | None
    carry: Sequence[str]


def _open_reader(source: Any, asked: _Asked, skip_bad: bool, keep_gaps: bool) -> _Reader:
    opened = open_source(source)
    return _Reader(opened, _choose(opened, asked), skip_bad, keep_gaps)


@dataclass(frozen=True)
class _Choice:
    """Which column is used for what."""

    label: str | None
    features: tuple[str, ...]
    vectors: bool  # whether one column holds whole vectors
    text: str | None
    image: str | None
    id: str | None
    cells: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        names = (*self.features, self.label, self.text, self.image, self.id, *self.cells, *self.carry)
        return tuple(dict.fromkeys(name for name in names if name is not None))


def _choose(source: Source, asked: _Asked) -> _Choice:
    label, image, id_ = (
        given if given is not None else source.defaults.get(role)
        for role, given in (("label", asked.label), ("image", asked.image), ("id", asked.id))
    )
    features, text, cells = asked.features, asked.text, tuple(asked.cells or ())
    named = [features] if isinstance(features, str) else list(features) if features is not None else []
    for name in (label, text, image, id_, *named, *cells, *asked.carry):
        if name is not None and name not in source.kinds:
            hint = did_you_mean(str(name), source.kinds)
            raise ValueError(f"{source.name} has no column {name!r}; it has {listed(source.kinds, 20)}.{hint}")
    if features is not None and not named:
        raise ValueError("features names no column: pass None to use all columns of numbers.")
    if features is None and text is None and image is None and asked.cells is None:
        named = numeric_columns(source, label, id_)
    vectors = [name for name in named if source.kinds[name] == "vector"]
    if vectors and len(named) > 1:
        raise ValueError(
            f"{source.name}: {listed(map(repr, vectors))} holds whole vectors, so it cannot be one feature among "
            f"{len(named)}: name in features either one column of vectors or only columns of numbers."
        )
    return _Choice(label, tuple(named), bool(vectors), text, image, id_, cells, tuple(asked.carry))


def holds_row_numbers(name: str) -> bool:
    """Whether a column's name says that it is the index of a pandas table, which is no feature.

    >>> [holds_row_numbers(name) for name in ("", "Unnamed: 0", "__index_level_0__", "x")]
    [True, True, True, False]
    """
    return _ROW_NUMBERS.match(name) is not None


def numeric_columns(source: Source, *but: str | None) -> list[str]:
    """The columns of numbers or vectors, except those named in ``but`` and row numbers."""
    named = [
        name
        for name, kind in source.kinds.items()
        if kind != "other" and name not in but and not holds_row_numbers(name)
    ]
    if not named:
        raise ValueError(
            f"{source.name} has no columns of numbers for features; it has {listed(source.kinds, 20) or 'none'}. "
            "Name a text or image column, or the features."
        )
    return named


@dataclass
class _Reader:
    """Reads chunks into records; remembers what all batches must agree on."""

    source: Source
    choice: _Choice
    skip_bad: bool
    keep_gaps: bool = False
    width: int | None = None
    kinds: dict[str, str | None] = field(default_factory=dict)
    seen: SeenIds = field(default_factory=SeenIds)

    def __post_init__(self) -> None:
        check_flag("skip_bad", self.skip_bad)

    def batches(self, batch_rows: int | None) -> Iterator[Records]:
        """Yield the records of every chunk. A source without any usable row is an error."""
        keys = [name for name in (self.choice.label, self.choice.id) if name is not None]
        integers = {name for name in keys if self._has_integers(name)}
        n_rows = n_kept = 0
        reason = ""
        for chunk in self.source.chunks(self.choice.columns, batch_rows):
            records = self._records(chunk, integers)
            n_rows += len(chunk.rows) + len(chunk.broken)
            n_kept += len(records)
            reason = reason or next((f"row {s.row}: {s.reason}" for s in records.skipped), "")
            yield records
        if not n_rows:
            raise ValueError(f"{self.source.name} is empty: it has columns but no rows.")
        if not n_kept:
            raise ValueError(f"{self.source.name}: none of its {n_rows} rows can be used. The first: {reason}.")

    def _has_integers(self, name: str) -> bool:
        """CSV has no types: labels or ids are integers if all look so, which means reading the whole column."""
        if self.source.typed:
            return False
        import pyarrow as pa
        import pyarrow.compute as pc

        for chunk in self.source.chunks([name], None):
            if not len(chunk.rows):
                continue
            try:
                column = without_blanks(chunk.columns[name].cast(pa.string()))
            except pa.ArrowInvalid:  # not UTF-8
                return False
            if not pc.all(pc.match_substring_regex(column, _INTEGER), min_count=0).as_py():
                return False
        return True

    def _records(self, chunk: Chunk, integers: set[str]) -> Records:
        choice, columns = self.choice, chunk.columns
        problems: Problems = {}
        X = y = ids = texts = images = table = None
        if choice.features:
            X = self._features(columns, problems)
        if choice.cells:
            table = {name: cells_of(columns[name]) for name in choice.cells}
        if choice.label is not None:
            y = self._keys(columns, choice.label, problems, integers)
        unlabelled = self._gaps(problems, choice.label)
        if choice.text is not None:
            texts = _noting(problems, read_texts(columns[choice.text], choice.text))
            for row in self._gaps(problems, choice.text):
                problems.pop(row)
        if choice.image is not None:
            paths = _noting(problems, read_texts(columns[choice.image], choice.image))
            images = ImageFiles(self.source.folder, paths)
            found = {row: images.problem(row) for row in range(len(paths)) if row not in problems}
            for row in self._gaps(problems, choice.image):
                problems.pop(row)
            problems.update({row: problem for row, problem in found.items() if problem is not None})
        if choice.id is not None:
            ids = self._keys(columns, choice.id, problems, integers)
            good = np.flatnonzero(_kept(len(ids), problems))
            for row in good[self.seen.repeated(ids[good])].tolist():
                problems[row] = f"id {ids[row]!s} in column {choice.id!r} came before"
        about = (choice.features, (), self.source.kinds, self.source.typed)
        carried = {name: as_carried(columns[name], self.source.kinds[name]) for name in choice.carry}
        records = Records(chunk.rows, X, y, ids, texts, images, *about, table, carried)
        if not problems and not chunk.broken:
            return records
        bad = {int(chunk.rows[row]): reason for row, reason in problems.items()} | dict(chunk.broken)
        skipped = tuple(SkippedRow(row, bad[row]) for row in sorted(bad))
        without_label = {int(chunk.rows[row]) for row in unlabelled}
        if not self.skip_bad and bad.keys() - without_label:
            raise _refusal(self.source.name, [row for row in skipped if row.row not in without_label])
        return _without(records, problems, skipped)

    def _gaps(self, problems: Problems, name: str | None) -> list[int]:
        """Rows whose only problem is that this column is missing, where gaps are kept."""
        if name is None or not self.keep_gaps:
            return []
        return [row for row, reason in problems.items() if reason == missing(name)]

    def _features(self, columns: Any, problems: Problems) -> NDArray[Any]:
        names = self.choice.features
        if not len(columns[names[0]]):
            return np.empty((0, self.width or len(names)))
        if self.choice.vectors:
            X = _noting(problems, read_vectors(columns[names[0]], names[0], self.width))
            self.width = X.shape[1] or self.width
        else:
            parts = [_noting(problems, read_numbers(columns[name], name)) for name in names]
            dtype = np.result_type(*parts)
            X = np.column_stack([part.astype(dtype, copy=False) for part in parts])
            X = X if dtype.kind == "f" else X.astype(np.float64)
        for row, reason in missing_in(X, names).items():
            problems.setdefault(row, reason)
        return X

    def _keys(self, columns: Any, name: str, problems: Problems, integers: set[str]) -> NDArray[Any]:
        kind = self.kinds.get(name)
        keys, found, self.kinds[name] = read_keys(columns[name], name, kind, integers=name in integers)
        return _noting(problems, (keys, found))


def _noting(problems: Problems, read: tuple[NDArray[Any], Problems]) -> NDArray[Any]:
    """Return the array that was read, and note its problems. Of several problems of a row the first counts."""
    array, found = read
    for row, reason in found.items():
        problems.setdefault(row, reason)
    return array


def _kept(n_rows: int, problems: Problems) -> NDArray[np.bool_]:
    keep = np.ones(n_rows, dtype=bool)
    keep[list(problems)] = False
    return keep


def _refusal(name: str, skipped: Sequence[SkippedRow]) -> BadRowsError:
    shown = "; ".join(f"row {bad.row}: {bad.reason}" for bad in skipped[:5])
    more = f"; and {len(skipped) - 5} more" if len(skipped) > 5 else ""
    found = f"{name} has rows that cannot be used: {shown}{more}."
    return BadRowsError(found, " Fix them, or skip them with ", Parameter("skip_bad", True), ".")


def _without(records: Records, problems: Problems, skipped: tuple[SkippedRow, ...]) -> Records:
    return replace(records.take(np.flatnonzero(_kept(len(records), problems))), skipped=skipped)
