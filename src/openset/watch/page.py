"""From an answer to what the page of a watch shows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from openset._utils.text import counted, listed
from openset._version import __version__
from openset.report.timeline import Timeline, TimelineBatch, TimelineGroup, example_ids, write_timeline
from openset.watch.answer import Batch, Group, WatchAnswer, evidence_text
from openset.watch.records import ModelRecord

PAGE = "watch.html"
"""The page in a run's folder."""
_MOODS = {"noticed": "found", "cannot_tell": "cannot", "nothing": "none"}


def write_page(answer: WatchAnswer, path: Path) -> Path:
    """Write the page of an answer."""
    return write_timeline(timeline_of(answer), path)


def timeline_of(answer: WatchAnswer) -> Timeline:
    """What the page shows."""
    names = {group.number: group.text for group in answer.groups}
    return Timeline(
        mood=_MOODS[answer.code],
        word=answer.word,
        headline=_headline(answer),
        sentence=answer.sentence,
        advice=answer.advice.sentence,
        command=answer.advice.command,
        run=answer.run,
        max_density_ratio=answer.max_density_ratio,
        evidence=evidence_text(answer.evidence),
        limit=answer.limit,
        error=answer.error,
        created=datetime.now(UTC).isoformat(timespec="minutes"),
        version=__version__,
        batches=tuple(_batch(batch, names) for batch in answer.batches),
        groups=tuple(_group(group, answer) for group in answer.groups),
        models=tuple(_model(record) for record in answer.models),
        notes=tuple(answer.notes),
    )


def _headline(answer: WatchAnswer) -> str:
    if answer.noticed_at is not None:
        return f"A new class was noticed in {answer.batches[answer.noticed_at - 1].record.name}."
    if not answer.batches:
        return "No batch was counted yet."
    if answer.code == "cannot_tell":
        return f"{answer.batches[-1].record.name} cannot be judged."
    return f"Nothing new was noticed in {counted(len(answer.batches), 'batch', 'batches')}."


def _batch(batch: Batch, names: dict[int, str]) -> TimelineBatch:
    record, share = batch.record, batch.record.called_share
    return TimelineBatch(
        name=record.name,
        rows=record.rows,
        called=record.called_novel,
        share=share.value,
        low=share.low,
        high=share.high,
        moved=record.moved,
        moved_sentence=record.moved_sentence,
        evidence=batch.evidence,
        state=record.cannot_tell,
        model=record.model,
        groups=", ".join(names[group.number] for group in record.groups),
    )


def _group(group: Group, answer: WatchAnswer) -> TimelineGroup:
    records = [batch.record for batch in answer.batches]
    latest = [found for found in records[group.last - 1].groups if found.number == group.number]
    return TimelineGroup(
        name=group.text,
        state={"new": "confirmed as new", "known": "confirmed as known", "": ""}[group.confirmed],
        shares=tuple(group.shares.get(record.number) for record in records),
        rows=sum(group.sizes.values()),
        examples=example_ids(latest[0].examples),
    )


def _model(record: ModelRecord) -> tuple[str, str]:
    when = "before the first batch" if not record.after else f"after batch {record.after}"
    what = f"{listed(record.target)}: {counted(record.target_rows, 'row')}"
    return f"Model {record.number}, {when}", what
