"""What is counted of a batch while it is scored, in constant memory and however it is cut into parts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openset.features.maker import MadeFeatures
from openset.features.table.apply import TableNotes
from openset.pipeline.fit_profile import SAMPLE_ROWS, FitProfile
from openset.problem import Predictions
from openset.stats.ranges import Outside, count_outside
from openset.stats.row_sample import RowSample, draw_sample

_SEED = 1
"""Not that of the fit's sample: a batch that holds the fit's rows again should not be compared with itself."""


@dataclass(frozen=True, eq=False)
class BatchFacts:
    """How many rows there were and were called novel; rows outside of the fit's ranges; a sample of rows.

    ``outside`` and ``sample`` are None where there is nothing to compare with; ``notes`` are those of a table.
    """

    rows: int
    called_novel: int
    outside: Outside | None = None
    sample: RowSample | None = None
    notes: TableNotes = field(default_factory=TableNotes)

    def joined(self, other: BatchFacts) -> BatchFacts:
        """The facts of both parts together."""
        outside, sample = self.outside, self.sample
        return BatchFacts(
            self.rows + other.rows,
            self.called_novel + other.called_novel,
            None if outside is None or other.outside is None else outside.joined(other.outside),
            None if sample is None or other.sample is None else sample.joined(other.sample),
            self.notes.joined(other.notes),
        )


class FactCounter:
    """Counts the facts of a batch, part by part; ``profile`` is what its rows are compared with.

    :meth:`facts_of` may be called in any thread; :meth:`add` then adds what it returned. ``sample_rows`` is the
    size of the sample. Parts whose rows are all numbered from 0 need a ``seed`` each.
    """

    def __init__(self, profile: FitProfile | None, *, sample_rows: int = SAMPLE_ROWS, seed: int = _SEED) -> None:
        self._profile = profile
        self._sample_rows, self._seed = sample_rows, seed
        self._facts: BatchFacts | None = None
        self._last_key = int(np.iinfo(np.uint64).max)

    @property
    def facts(self) -> BatchFacts:
        """The facts of all rows that were added; only where there was a row."""
        assert self._facts is not None
        return self._facts

    def facts_of(self, made: MadeFeatures, found: Predictions, numbers: NDArray[np.int64]) -> BatchFacts:
        """The facts of some rows, from their features, their predictions and their row numbers."""
        X = made.X
        called = int((found.predicted_index == len(found.labels) - 1).sum())
        if self._profile is None:
            return BatchFacts(len(X), called, notes=made.notes)
        ranges = self._profile.ranges
        return BatchFacts(
            len(X),
            called,
            None if ranges is None or made.values is None else count_outside(made.values, ranges),
            # the last key of some parts ago only lets more rows through, and joining leaves them out
            draw_sample(X, numbers, self._sample_rows, seed=self._seed, last_key=self._last_key),
            made.notes,
        )

    def add(self, facts: BatchFacts) -> None:
        """Add the facts of some rows to those of the rows before."""
        self._facts = facts if self._facts is None else self._facts.joined(facts)
        if self._facts.sample is not None:
            self._last_key = self._facts.sample.last_key
