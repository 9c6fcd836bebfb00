"""One batch, read once: scored by the models in use, compared with the fit's rows, and its new rows grouped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.hashing import digest
from openset._utils.typed import plain
from openset.data.readers.source import Source
from openset.pipeline.batch_answer import BatchAnswer, CalledShare, answer_of
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.load import stream
from openset.pipeline.score import BATCH_ROWS
from openset.pipeline.scored_table import predictions
from openset.stats.e_process import References
from openset.stats.group_matching import MOST_ROWS, match_groups
from openset.stats.groups import FEWEST_ROWS, NovelGroup, discover_groups
from openset.stats.neighbours import evenly_spaced
from openset.stats.row_sample import RowSample, draw_sample
from openset.watch.fits import FittedModel, WatchedRun
from openset.watch.labels import Labels
from openset.watch.records import BatchRecord, Count, GroupRecord

KEPT_ROWS = 5000
"""Rows of a batch, drawn at random, that later models are fitted on."""
_MOST_CALLED = 20_000
"""Rows called new that are grouped: those of the highest scores."""
_LIMITS = {
    "moved": "the rows that the model was fitted on had moved away from source",
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
class _Kept:
    """The rows of a batch that may matter: above a model's lowest threshold, or called new by the newest one."""

    X: NDArray[Any]
    ids: NDArray[Any]
    scores: NDArray[np.float64]
    """(rows, models); the newest model is last."""
    called: NDArray[np.bool_]


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
) -> Looked:
    """Read and score a batch. ``models`` are those in use, the newest last; ``earlier`` the groups so far."""
    counter = FactCounter(run.profile)
    sample, kept = _read(run, data, models, counter)
    if sample is None or kept is None:
        raise ValueError(f"{name} has no rows: leave it out.")
    answer = answer_of(counter.facts, run.profile, run.summary, data, run.settings.id)
    is_known = labels.is_known(run.profile.scaled(kept.X).astype(np.float64))
    cannot_tell = _why_not(answer, models[-1])
    # all rows of a batch that moved may be called new: they are no groups of new rows
    found = [] if answer.moved.answer == "yes" else _groups(run, models[-1], kept, answer.rows, earlier)
    record = BatchRecord(
        number=number,
        name=name,
        sha256=sha256 or digest(sample.rows),
        rows=answer.rows,
        called_novel=answer.called_novel,
        called_share=answer.called_share,
        moved=answer.moved.answer,
        moved_sentence=answer.moved.sentence,
        model=models[-1].record.number,
        counts=[] if cannot_tell else _counts(models, kept.scores[~is_known]),
        groups=[record for record, _ in found],
        cannot_tell=cannot_tell,
        confirmed_known=int(is_known.sum()),
        notes=_notes(answer, labels),
        path=path,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    # a batch that moved is not fitted on: its rows would all look new
    rows = sample.rows[:0] if answer.moved.answer != "no" else sample.rows
    return Looked(record, rows, {record.number: points for record, points in found})


def _read(
    run: WatchedRun, data: Source, models: Sequence[FittedModel], counter: FactCounter
) -> tuple[RowSample | None, _Kept | None]:
    sample: RowSample | None = None
    parts: list[_Kept] = []
    lowest = np.array([min(fitted.record.thresholds) for fitted in models])
    for records in stream(replace(run.settings, carry=None), data, BATCH_ROWS, run.fitted):
        if not len(records):
            continue
        made = run.maker(records)
        found = [predictions(fitted.model, made.X) for fitted in models]
        counter.add(counter.facts_of(made, found[-1], records.rows))
        part = draw_sample(made.X, records.rows, KEPT_ROWS, seed=2)
        sample = part if sample is None else sample.joined(part)
        scores = np.column_stack([each.novelty_score for each in found])
        called = found[-1].predicted_index == len(found[-1].labels) - 1
        rows = np.flatnonzero((scores > lowest).any(axis=1) | called)
        ids = records.rows if records.ids is None else records.ids
        parts.append(_Kept(made.X[rows], np.asarray(ids)[rows], scores[rows], called[rows]))
    if not parts:
        return None, None
    joined = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "ids", "scores", "called")
    )
    return sample, _Kept(*joined)


def _why_not(answer: BatchAnswer, newest: FittedModel) -> str:
    """Why a batch does not count, in words; empty if it does."""
    if answer.moved.answer == "yes":
        return "moved"
    if answer.moved.answer == "unknown":
        return "too few rows to tell whether it moved"
    return _LIMITS.get(newest.record.limit, "")


def _counts(models: Sequence[FittedModel], scores: NDArray[np.float64]) -> list[Count]:
    counts = []
    for index, fitted in enumerate(models):
        references: References = fitted.record.references
        above = list(references.count_above(scores[:, index]))
        counts.append(Count(fitted.record.number, above, references.n_rows))
    return counts


def _notes(answer: BatchAnswer, labels: Labels) -> list[str]:
    notes = [*answer.cells, *(found.sentence for found in answer.out_of_range)]
    return [*notes, labels.note] if labels.note else notes


def _groups(
    run: WatchedRun,
    newest: FittedModel,
    kept: _Kept,
    n_rows: int,
    earlier: Mapping[int, NDArray[np.float32]],
) -> list[tuple[GroupRecord, NDArray[np.float32]]]:
    """The groups among the rows called new, each with its number over all batches and some of its rows."""
    called = np.flatnonzero(kept.called)
    scores = kept.scores[called, -1]
    called = called[np.sort(np.argsort(-scores, kind="stable")[:_MOST_CALLED])]
    if len(called) < FEWEST_ROWS:
        return []
    X, model = kept.X[called], newest.model
    points = run.profile.scaled(X)
    compared = np.asarray(model.representation(X)) if hasattr(model, "representation") else points
    found = discover_groups(compared, kept.scores[called, -1], n_target=n_rows)
    groups = [
        (group, np.flatnonzero(found.labels == index))
        for index, group in enumerate(found.groups)
        if group.size >= FEWEST_ROWS
    ]
    some = [points[rows[evenly_spaced(len(rows), MOST_ROWS)]] for _, rows in groups]
    numbers = sorted(earlier)
    matched = match_groups(
        [part.astype(np.float64) for part in some], [earlier[known].astype(np.float64) for known in numbers]
    )
    following = max(numbers, default=0) + 1
    described = []
    for (group, _), part, index in zip(groups, some, matched, strict=True):
        number = following if index is None else numbers[index]
        following += index is None
        ids = kept.ids[called[list(group.examples)]]
        described.append((_described(group, number, ids, again=index is not None), part))
    return described


def _described(group: NovelGroup, number: int, ids: NDArray[Any], *, again: bool) -> GroupRecord:
    share = group.share
    return GroupRecord(
        number=number,
        size=group.size,
        share=CalledShare(share.value, share.low, share.high, share.confidence),
        stability=group.stability,
        examples=plain(ids),
        again=again,
    )
