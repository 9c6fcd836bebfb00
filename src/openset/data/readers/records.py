"""Records: the rows that were read, the rows that were skipped, and which ids were seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.data.readers.carried import joined_carried
from openset.data.readers.cells import Cells, joined_cells, taken_cells
from openset.data.readers.images import ImageFiles


@dataclass(frozen=True)
class SkippedRow:
    """A row that was skipped, by its number in the file (from 0, the header not counted), and the reason."""

    row: int
    reason: str


@dataclass(frozen=True, eq=False)
class Drawn:
    """What is told of all usable rows where only a sample of them was kept.

    ``n_rows`` is their number, ``classes`` that of each class, and ``index`` has the position among them of each
    row of the sample. ``n_alike`` rows were drawn from all rows alike; the others are of rare classes. ``by`` is
    what the sample was drawn by: "id" or "row number".
    """

    n_rows: int
    index: NDArray[np.int64]
    n_alike: int
    classes: Mapping[Any, int]
    by: str


@dataclass(frozen=True, eq=False)
class Records:
    """Rows in the order of the file. A column that was not asked for is None.

    ``rows`` holds each row's number in the file, ``feature_names`` the columns that ``X`` was made from (one name
    if one column holds whole vectors), ``skipped`` the rows that were skipped. ``kinds`` and ``typed`` are those
    of the :class:`~openset.data.readers.source.Source`, with the columns that were not asked for. ``table`` has
    the columns that were asked for as cells, ``carried`` those to be kept as they are, in Arrow arrays.
    ``more_skipped`` counts skipped rows that are not listed. ``drawn`` is None unless these rows are a sample.
    """

    rows: NDArray[np.int64]
    X: NDArray[Any] | None = None
    y: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    texts: NDArray[np.object_] | None = None
    images: ImageFiles | None = None
    feature_names: tuple[str, ...] = ()
    skipped: tuple[SkippedRow, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    typed: bool = True
    table: Mapping[str, Cells] | None = None
    carried: Mapping[str, Any] = field(default_factory=dict)
    more_skipped: int = 0
    drawn: Drawn | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_skipped(self) -> int:
        """How many rows were skipped."""
        return len(self.skipped) + self.more_skipped

    def take(self, rows: NDArray[np.intp]) -> Records:
        """The given rows, in the given order; the rows skipped stay those of all."""
        names = [name for name in ("rows", "X", "y", "ids", "texts", "images") if getattr(self, name) is not None]
        parts = {name: getattr(self, name)[rows] for name in names}
        if self.table is not None:
            parts["table"] = {name: taken_cells(cells, rows) for name, cells in self.table.items()}
        parts["carried"] = {name: column.take(rows) for name, column in self.carried.items()}
        return replace(self, **parts, drawn=None)


def concatenate(batches: Sequence[Records]) -> Records:
    """Join batches in order. A single batch is returned unchanged, so memory-mapped arrays stay mapped.

    >>> one = Records(np.array([0]), X=np.ones((1, 2)))
    >>> concatenate([one, Records(np.array([1]), X=np.zeros((1, 2)))]).X.tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    first = batches[0]
    if len(batches) == 1:
        return first
    full = [batch for batch in batches if len(batch)] or [first]  # the type of an empty array means nothing

    def joined(name: str) -> Any:
        parts = [getattr(batch, name) for batch in full]
        return None if parts[0] is None else _joined(parts)

    images = first.images
    if images is not None:
        paths = [batch.images.paths for batch in full if batch.images is not None]
        images = ImageFiles(images.root, np.concatenate(paths))
    return Records(
        **{name: joined(name) for name in ("rows", "X", "y", "ids", "texts")},
        images=images,
        feature_names=first.feature_names,
        skipped=tuple(row for batch in batches for row in batch.skipped),
        kinds=first.kinds,
        typed=first.typed,
        table=_joined_table(full),
        carried={name: joined_carried([batch.carried[name] for batch in full]) for name in first.carried},
    )


def _joined_table(batches: Sequence[Records]) -> dict[str, Cells] | None:
    tables = [batch.table for batch in batches if batch.table is not None]
    return {name: joined_cells([table[name] for table in tables]) for name in tables[0]} if tables else None


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays. Integers below and above 2**63, which numpy would turn into floats, stay integers."""
    if {part.dtype.kind for part in parts} == {"i", "u"} and np.result_type(*parts).kind == "f":
        fits = all(part.dtype.kind == "u" or part.min() >= 0 for part in parts)
        return np.concatenate([part.astype(np.uint64 if fits else object) for part in parts])
    return np.concatenate(parts)


class SeenIds:
    """The ids of a stream so far, in eight bytes for each id.

    Integers are stored as they are, all else as a 64-bit hash: among ten million different ids the chance that
    any two are mistaken for one is below one in 300 000.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []  # sorted, each at least twice as long as the next

    def repeated(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Where an id was seen before, in this array or in an earlier one.

        >>> seen = SeenIds()
        >>> seen.repeated(np.array([1, 2, 1])).tolist(), seen.repeated(np.array([3, 2])).tolist()
        ([False, False, True], [False, True])
        """
        if ids.dtype.kind == "f":
            keys = ids.astype(np.float64).view(np.int64)
        elif ids.dtype.kind in "ib" or (ids.dtype.kind == "u" and (ids < 2**63).all()):
            keys = ids.astype(np.int64)
        else:
            keys = np.fromiter(map(_key, ids.tolist()), np.int64)
        if (keys[1:] > keys[:-1]).all():  # ids in order, as most files have them
            unique, first = keys, np.arange(len(keys))
        else:
            unique, first = np.unique(keys, return_index=True)
        again = np.ones(len(keys), dtype=bool)
        again[first] = False
        if not len(unique):
            return again
        for run in self._runs:
            if unique[0] <= run[-1] and run[0] <= unique[-1]:
                index = np.searchsorted(run, unique)  # many times faster as the keys are sorted
                again[first[run[np.minimum(index, len(run) - 1)] == unique]] = True
        self._runs.append(unique)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")
        return again


def _key(value: Any) -> int:
    """An integer as itself if it has 64 bits, and else a hash: Python's own is the same for -1 and -2."""
    if isinstance(value, int):
        return value if value < 2**63 else hash(str(value))
    return hash(value)
