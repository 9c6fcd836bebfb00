"""A sample of the rows of a stream, in memory bounded by the sample: the same rows however the stream is cut.

Each row has a key, a hash of its id or, without ids, of its row number. The rows with the smallest keys are the
sample. So it depends neither on the order of files nor on the size of batches, and it is the same when the data
is read again. Of each class some rows with the smallest keys are kept too: a rare class does not vanish.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.data.readers.records import Drawn, Records, concatenate
from openset.stats.row_sample import row_keys

RARE = 200
"""Rows that are kept of every class, if it has so many."""
RARE_SHARE = 0.1
"""Rare classes have at most so much more than their share of a sample: of many classes fewer rows are kept."""
FEWEST_OF_A_CLASS = 3
_WAITING = 1.5
"""Rows are discarded when there are so many times as many as the sample holds."""
_TOLD = 1000
"""Skipped rows that are named; the others are counted."""


def sample_rows(batches: Iterable[Records], most: int, *, seed: int = 0) -> Records:
    """All rows in order if there are at most ``most``; else a sample of that many, and more of rare classes.

    A sample is in the order of its keys. It says in ``drawn`` what all rows were.

    >>> batches = [Records(np.arange(start, start + 50), ids=np.arange(start, start + 50)) for start in (50, 0)]
    >>> sample_rows(batches, 5).ids.tolist() == sample_rows(batches[::-1], 5).ids.tolist()
    True
    >>> sample_rows(batches, 100).rows[:3].tolist()
    [50, 51, 52]
    """
    waiting = _Waiting(most, seed)
    for batch in batches:
        waiting.add(batch)
    return waiting.sample()


def id_keys(ids: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    """A pseudo-random number for every id, the same in every process.

    >>> id_keys(np.array([7], np.int32), 0).tolist() == id_keys(np.array([7, 8], np.uint64), 0)[:1].tolist()
    True
    """
    if ids.dtype.kind == "f":
        numbers = ids.astype(np.float64).view(np.uint64)
    elif ids.dtype.kind in "iub":
        numbers = ids.astype(np.int64 if ids.dtype.kind == "i" else np.uint64).view(np.uint64)
    else:
        numbers = np.fromiter(map(_number, ids.tolist()), np.uint64, len(ids))
    return row_keys(numbers, seed)


def _number(value: Any) -> int:
    if isinstance(value, int):
        return value % 2**64
    content = str(value).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


@dataclass
class _Part:
    """Rows that may be in the sample: their keys, codes of their classes, and positions among all rows."""

    records: Records
    keys: NDArray[np.uint64]
    codes: NDArray[np.intp]
    index: NDArray[np.int64]

    def take(self, rows: NDArray[np.intp]) -> _Part:
        return _Part(self.records.take(rows), self.keys[rows], self.codes[rows], self.index[rows])


class _Waiting:
    """The rows so far that may be in the sample.

    A row can be in it if its key is at most ``_cut``, the largest of the ``most`` smallest keys so far, or at
    most the cut of its class. Both only ever fall: a row that is discarded would be discarded later too.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most, self._seed = most, seed
        self._parts: list[_Part] = []
        self._held = self._n_rows = self._n_skipped = 0
        self._skipped: list[Any] = []
        self._codes: dict[Any, int] = {}
        self._counts = np.zeros(0, np.int64)
        self._last = np.uint64(np.iinfo(np.uint64).max)
        self._cut = self._last
        self._class_cuts = np.zeros(0, np.uint64)

    def add(self, batch: Records) -> None:
        """Add the rows of a batch, or those of them that can be in the sample."""
        self._n_skipped += batch.n_skipped
        self._skipped += batch.skipped[: max(_TOLD - len(self._skipped), 0)]
        keys = row_keys(batch.rows, self._seed) if batch.ids is None else id_keys(batch.ids, self._seed)
        index = np.arange(self._n_rows, self._n_rows + len(batch))
        part = _Part(replace(batch, skipped=()), keys, self._coded(batch), index)
        self._n_rows += len(batch)
        if self._cut < self._last:
            part = part.take(np.flatnonzero(keys <= np.maximum(self._cut, self._class_cuts[part.codes])))
        self._parts.append(part)
        self._held += len(part.keys)
        if self._n_rows > self._most and self._held > _WAITING * self._most:
            self._discard()

    def sample(self) -> Records:
        """All rows that were added, or the sample of them."""
        if self._n_rows > self._most:
            self._discard()
        records = concatenate([part.records for part in self._parts])
        more = self._n_skipped - len(self._skipped)
        records = replace(records, skipped=tuple(self._skipped), more_skipped=more)
        if self._n_rows <= self._most:
            return records
        classes = dict(zip(self._codes, self._counts.tolist(), strict=True))
        by = "row number" if records.ids is None else "id"
        return replace(records, drawn=Drawn(self._n_rows, self._parts[0].index, self._most, classes, by))

    def _coded(self, batch: Records) -> NDArray[np.intp]:
        """The class of each row as a code, new classes added; 0 for rows without labels."""
        if batch.y is None:
            self._class_cuts = np.zeros(1, np.uint64)
            return np.zeros(len(batch), np.intp)
        labels, inverse, counts = np.unique(batch.y, return_inverse=True, return_counts=True)
        codes = np.array([self._codes.setdefault(label, len(self._codes)) for label in labels.tolist()], np.intp)
        grown = len(self._codes) - len(self._counts)
        self._counts = np.concatenate([self._counts, np.zeros(grown, np.int64)])
        self._class_cuts = np.concatenate([self._class_cuts, np.full(grown, self._last)])
        self._counts[codes] += counts
        found: NDArray[np.intp] = codes[inverse]
        return found

    def _rows_of_a_class(self) -> int:
        """How many rows of every class are kept at least."""
        if not self._codes:
            return 0
        return max(min(RARE, int(RARE_SHARE * self._most / len(self._codes))), FEWEST_OF_A_CLASS)

    def _discard(self) -> None:
        """Keep the rows that can be in the sample, in the order of their keys, and set the cuts."""
        keys, codes, index = (
            np.concatenate([getattr(part, name) for part in self._parts]) for name in ("keys", "codes", "index")
        )
        order = np.argsort(keys, kind="stable")
        kept = np.arange(len(order)) < self._most
        if self._codes:
            fewest, in_class = self._rows_of_a_class(), np.argsort(codes[order], kind="stable")
            starts = np.searchsorted(codes[order][in_class], np.arange(len(self._codes)))
            rank = np.empty(len(order), np.int64)
            rank[in_class] = np.arange(len(order)) - starts[codes[order][in_class]]
            kept |= rank < fewest
            last = rank == fewest - 1
            self._class_cuts[codes[order][last]] = keys[order][last]
        self._cut = keys[order[self._most - 1]]
        rows = order[kept]
        whole = concatenate([part.records for part in self._parts])
        self._parts = [_Part(whole.take(rows), keys[rows], codes[rows], index[rows])]
        self._held = len(rows)
