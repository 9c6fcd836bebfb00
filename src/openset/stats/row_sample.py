"""A sample of a stream of rows, drawn in constant memory: equal streams give equal samples, however batched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LAST = np.iinfo(np.uint64).max


@dataclass(frozen=True, eq=False)
class RowSample:
    """At most ``size`` rows: those with the smallest keys of all rows so far, in the order of their keys.

    A key is a hash of the row's number, so every set of ``size`` rows is as likely as any other.
    """

    keys: NDArray[np.uint64]
    rows: NDArray[Any]
    size: int

    @property
    def last_key(self) -> int:
        """A row with a larger key is not in the sample; every row may be before there are ``size`` rows."""
        return int(self.keys[-1]) if len(self.keys) == self.size else _LAST

    def joined(self, other: RowSample) -> RowSample:
        """The sample of the rows of both."""
        if not len(other.keys):
            return self
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(keys, kind="stable")[: self.size]
        return RowSample(keys[order], np.concatenate([self.rows, other.rows])[order], self.size)


def joined_samples(samples: Sequence[RowSample], size: int) -> RowSample:
    """The sample of the rows of several parts, whose samples may have other sizes.

    A part's sample says nothing of rows with keys above its last one. So only keys up to the smallest of these
    count: every row is as likely to be in the sample as any other, which may have fewer rows than ``size``.

    >>> one, two = RowSample(np.array([1, 9]), np.eye(2), 2), RowSample(np.array([3, 20]), np.eye(2), 9)
    >>> joined_samples([one, two], 5).keys.tolist()
    [1, 3, 9]
    """
    last = min(sample.last_key for sample in samples)
    keys, rows = (np.concatenate([getattr(sample, name) for sample in samples]) for name in ("keys", "rows"))
    index = np.flatnonzero(keys <= np.uint64(last))
    index = index[np.argsort(keys[index], kind="stable")[:size]]
    return RowSample(keys[index], rows[index], size)


def draw_sample(
    rows: NDArray[Any], numbers: NDArray[np.int64], size: int, *, seed: int = 0, last_key: int = _LAST
) -> RowSample:
    """The sample of rows with these row numbers; rows with keys above ``last_key`` are not looked at.

    >>> rows = np.arange(1000.0)[:, None]
    >>> whole = draw_sample(rows, np.arange(1000), 5)
    >>> first, last = (draw_sample(rows[part], np.arange(1000)[part], 5) for part in (slice(7), slice(7, None)))
    >>> whole.rows.ravel().tolist() == first.joined(last).rows.ravel().tolist()
    True
    """
    keys = row_keys(numbers, seed)
    index = np.flatnonzero(keys <= np.uint64(last_key))
    index = index[np.argsort(keys[index], kind="stable")[:size]]
    return RowSample(keys[index], np.asarray(rows[index]), size)


def row_keys(numbers: NDArray[np.integer], seed: int) -> NDArray[np.uint64]:
    """A pseudo-random number for every row number: the generator SplitMix64, of which no two numbers are equal.

    >>> row_keys(np.array([1]), 0)  # its first number for the seed 0
    array([16294208416658607535], dtype=uint64)
    """
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] if seed else np.uint64(0)
    keys: NDArray[np.uint64] = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
