"""One batch, read once: scored by the models in use, compared with the fit's rows, and its new rows grouped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.hashing import digest
from openset.data.readers.records import Records
from openset.data.readers.source import Source
from openset.pipeline.batch_answer import CONFIDENCE, BatchAnswer, CalledShare, answer_of
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.load import stream
from openset.pipeline.scored_batches import BATCH_ROWS
from openset.pipeline.scored_table import predictions
from openset.pipeline.settings import FEWEST_ROWS
from openset.problem import Predictions
from openset.stats.row_sample import RowSample, draw_sample
from openset.stats.shares import binomial_interval
from openset.watch.fits import FittedModel, WatchedRun
from openset.watch.grouping import CalledRows, find_groups
from openset.watch.labels import Labels
from openset.watch.records import BatchRecord, Count, OwnFit

KEPT_ROWS = 5000
"""Rows of a batch, drawn at random, that models are fitted on."""
_SEED = 2
"""Not that of the sample that batches are compared by."""
_LIMITS = {
    "moved": "the rows that the model was fitted on had moved away from source",
    "column": "a column alone tells the rows that the model was fitted on from source",
    "aligned": "the rows that the model was fitted on had moved away from source, and were aligned",
    "unmixed": "the rows that the model was fitted on do not mix with source, as if each had kinds of its own",
}


@dataclass(frozen=True, eq=False)
class Looked:
    """What is stored of a batch: its record, a sample of its features, and rows of its groups by number."""

    record: BatchRecord
    sample: NDArray[Any]
    groups: dict[int, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class _Sample:
    """Random rows of a batch, and their ids, drawn alike."""

    features: RowSample
    ids: RowSample

    @classmethod
    def of(cls, X: NDArray[Any], ids: NDArray[Any], numbers: NDArray[np.int64]) -> _Sample:
        return cls(*(draw_sample(part, numbers, KEPT_ROWS, seed=_SEED) for part in (X, ids)))

    def joined(self, other: _Sample) -> _Sample:
        return _Sample(self.features.joined(other.features), self.ids.joined(other.ids))


@dataclass(frozen=True, eq=False)
class _Part:
    """What is kept of a part of a batch; its memory does not grow with the rows."""

    sample: _Sample
    called: CalledRows
    """The rows that the newest model calls new."""
    counts: tuple[Count, ...]
    confirmed_known: int

    def joined(self, other: _Part) -> _Part:
        """The same of both parts together."""
        return _Part(
            self.sample.joined(other.sample),
            self.called.joined(other.called),
            tuple(one.joined(more) for one, more in zip(self.counts, other.counts, strict=True)),
            self.confirmed_known + other.confirmed_known,
        )


def look_at(
    run: WatchedRun,
    data: Source,
    models: Sequence[FittedModel],
    *,
    number: int,
    name: str,
    path: str,
    sha256: str | None,
    labels: Labels,
    earlier: Mapping[int, NDArray[np.float32]],
    alone: bool = False,
    max_density_ratio: float | None = None,
) -> Looked:
    """Read and score a batch. ``models`` are those in use, the newest last; ``earlier`` the groups so far.

    ``alone`` is whether it is fitted alone too, under a given ratio or the one that the method reads off its
    rows.
    """
    counter = FactCounter(run.profile)
    read = _read(run, data, models, labels, counter)
    if read is None:
        raise ValueError(f"{name} has no rows: leave it out.")
    answer = answer_of(counter.facts, run.profile, run.summary, data, run.settings.id)
    cannot_tell = _why_not(answer, models[-1])
    model, own, called = models[-1].model, None, read.called
    left = ~labels.is_known(_points(run, read.sample.features.rows))
    if alone and answer.moved.answer == "no" and left.sum() >= FEWEST_ROWS:
        X, ids = read.sample.features.rows[left], read.sample.ids.rows[left]
        model, own, called = _fit_alone(run, X, ids, max_density_ratio)
    # all rows of a batch that moved may be called new: they are no groups of new rows
    found = [] if answer.moved.answer == "yes" else find_groups(run, model, called, earlier)
    record = BatchRecord(
        number=number,
        name=name,
        sha256=sha256 or digest(read.sample.features.rows),
        rows=answer.rows,
        called_novel=called.number,
        called_share=_share(called.number, called.of),
        moved=answer.moved.answer,
        moved_sentence=answer.moved.sentence,
        model=models[-1].record.number,
        counts=[] if cannot_tell else list(read.counts),
        groups=[record for record, _ in found],
        own_fit=own,
        cannot_tell=cannot_tell,
        confirmed_known=read.confirmed_known,
        notes=_notes(answer, labels),
        path=path,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    # a batch that moved is not fitted on: its rows would all look new
    rows = read.sample.features.rows[: 0 if answer.moved.answer != "no" else None]
    return Looked(record, rows, {record.number: points for record, points in found})


def _read(
    run: WatchedRun, data: Source, models: Sequence[FittedModel], labels: Labels, counter: FactCounter
) -> _Part | None:
    """Read and score all rows; None if there are none."""
    whole: _Part | None = None
    for records in stream(replace(run.settings, carry=None), data, BATCH_ROWS, run.fitted):
        if not len(records):
            continue
        made = run.maker(records)
        found = [predictions(fitted.model, made.X) for fitted in models]
        counter.add(counter.facts_of(made, found[-1], records.rows))
        part = _part_of(run, models, found, labels, made.X, records)
        whole = part if whole is None else whole.joined(part)
    return whole


def _part_of(
    run: WatchedRun,
    models: Sequence[FittedModel],
    found: Sequence[Predictions],
    labels: Labels,
    X: NDArray[Any],
    records: Records,
) -> _Part:
    """Some rows as the models score them; those like rows that a review confirmed as known do not count."""
    ids = np.asarray(records.rows if records.ids is None else records.ids)
    scores = np.column_stack([each.novelty_score for each in found])
    called = np.column_stack([each.predicted_index == len(each.labels) - 1 for each in found])
    lowest = np.array([min(fitted.record.thresholds) for fitted in models])
    matter = np.flatnonzero((scores > lowest).any(axis=1) | called.any(axis=1))
    is_known = labels.is_known(_points(run, X[matter]))
    counted, newest = matter[~is_known], np.flatnonzero(called[:, -1])
    counts = tuple(
        Count(
            fitted.record.number,
            list(fitted.record.references.count_above(scores[counted, index])),
            fitted.record.n_reference,
            int(called[:, index].sum()),
        )
        for index, fitted in enumerate(models)
    )
    return _Part(
        _Sample.of(X, ids, records.rows),
        CalledRows(X[newest], ids[newest], scores[newest, -1], len(X), len(newest)),
        counts,
        int(is_known.sum()),
    )


def _fit_alone(
    run: WatchedRun, X: NDArray[Any], ids: NDArray[Any], max_density_ratio: float | None
) -> tuple[Any, OwnFit, CalledRows]:
    """Fit rows of the batch alone: model, test, rows called new."""
    model = run.fit_alone(X, max_density_ratio)
    scores = model.target_predictions().novelty_score
    called = np.flatnonzero(scores > model.threshold_)
    test = model.novelty_test_
    own = OwnFit(float(test.p_value), float(test.max_density_ratio), len(X), test.limit)
    return model, own, CalledRows(X[called], ids[called], scores[called], len(X), len(called))


def _share(called: int, of: int) -> CalledShare:
    low, high = binomial_interval(called, of, CONFIDENCE)
    return CalledShare(called / of, low, high, CONFIDENCE)


def _points(run: WatchedRun, X: NDArray[Any]) -> NDArray[np.float64]:
    return run.profile.scaled(X).astype(np.float64)


def _why_not(answer: BatchAnswer, newest: FittedModel) -> str:
    """Why a batch does not count, in words; empty if it does."""
    if answer.moved.answer == "yes":
        return "moved"
    if answer.moved.answer == "unknown":
        return "too few rows to tell whether it moved"
    return _LIMITS.get(newest.record.limit, "")


def _notes(answer: BatchAnswer, labels: Labels) -> list[str]:
    notes = [*answer.cells, *(found.sentence for found in answer.out_of_range)]
    return [*notes, labels.note] if labels.note else notes
