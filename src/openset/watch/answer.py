"""What a watch says: one line a batch, the groups over time, the evidence, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from openset._utils.text import shortened, wrapped
from openset.pipeline.batch_answer import percent
from openset.watch.records import BatchRecord, GroupRecord, ModelRecord

VERDICTS = {
    "noticed": "new class noticed",
    "nothing": "nothing new noticed",
    "cannot_tell": "cannot tell",
}
"""The codes of a watch's verdict, which stay the same, and its words."""
_WIDTHS = (16, 7, 8, 20, 9, 14)
_MOST_SHOWN = 1e99


@dataclass(frozen=True)
class Batch:
    """A batch, and the evidence after it; ``evidence`` is compared with the answer's ``limit``."""

    record: BatchRecord
    evidence: float


@dataclass(frozen=True)
class Group:
    """A group over the batches: its name, whether a review confirmed it, and by batch its rows and its share.

    Where a batch is fitted alone, both are of the rows that it was fitted on, at most 5000.
    """

    number: int
    name: str
    confirmed: str
    """``new``, ``known`` or empty."""
    first: int
    last: int
    sizes: dict[int, int]
    shares: dict[int, float]

    @property
    def text(self) -> str:
        """The name that tables show."""
        return self.name if self.name else f"group {self.number}"


@dataclass(frozen=True)
class Advice:
    """When to fit again, and with what: a sentence and, where there is one, the command."""

    sentence: str
    command: str = ""


@dataclass(frozen=True)
class WatchAnswer:
    """What all batches say. ``answer()`` says it in words, ``answer.to_dict()`` for programs.

    ``code`` is ``noticed``, ``nothing`` or ``cannot_tell``. ``noticed_at`` is the number of the batch at which
    the evidence reached ``limit``. ``max_density_ratio`` is how many times as common a known kind may be as in
    source for that to be rare: what the watch assumes or, where a batch's own fit noticed, what that fit assumed.
    """

    run: str
    code: str
    sentence: str
    max_density_ratio: float
    evidence: float
    limit: float
    error: float
    noticed_at: int | None
    batches: list[Batch]
    groups: list[Group]
    models: list[ModelRecord]
    advice: Advice
    notes: list[str]

    @property
    def word(self) -> str:
        """The verdict in words."""
        return VERDICTS[self.code]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, under the names of the fields; a batch is its record with its evidence."""
        batches = [{**asdict(batch.record), "evidence": finite(batch.evidence)} for batch in self.batches]
        return {**asdict(self), "word": self.word, "evidence": finite(self.evidence), "batches": batches}

    def table(self) -> str:
        """One line a batch, 80 columns wide: rows, moved, called new, evidence, and groups by their numbers."""
        names = {group.number: group.name or str(group.number) for group in self.groups}
        lines = [_HEADINGS, *(_line(batch, names, self.limit) for batch in self.batches)]
        return "\n".join(_aligned(line) for line in lines)

    def __call__(self) -> str:
        """The answer in words, at most 80 columns wide; the table of the batches is :meth:`rows`."""
        lines = wrapped("Verdict   ", f"{self.word}. {self.sentence}")
        for group in self.groups:
            lines += wrapped("Group     ", self._group_line(group))
        lines += wrapped("Next      ", self.advice.sentence)
        if self.advice.command:
            lines.append(f"          {self.advice.command}")
        for note in self.notes:
            lines += wrapped("Note      ", note)
        return "\n".join(lines)

    def _group_line(self, group: Group) -> str:
        shown = [f"{percent(share)} %" for share in list(group.shares.values())[-6:]]
        state = {"new": ", confirmed as new", "known": ", confirmed as known", "": ""}[group.confirmed]
        when = f"batch {group.first}" if group.first == group.last else f"batches {group.first} to {group.last}"
        return f"{group.text}{state}: {', '.join(shown)} of the rows ({when})"


_HEADINGS = ("batch", "rows", "moved", "called new", "evidence", "groups")


def _line(batch: Batch, names: dict[int, str], limit: float) -> tuple[str, ...]:
    record, share = batch.record, batch.record.called_share
    return (
        record.name,
        str(record.rows) if record.rows < 10**7 else f"{record.rows / 1e6:.0f}M",
        "few rows" if record.moved == "unknown" else record.moved,
        f"{percent(share.value)} % ({percent(share.low)}–{percent(share.high)})",
        "–"
        if record.cannot_tell
        else f"{evidence_text(batch.evidence)}{' !' if batch.evidence >= limit else ''}",
        ", ".join(f"{'' if group.again else '+'}{names[group.number]}" for group in record.groups) or "–",
    )


def _aligned(cells: Sequence[str]) -> str:
    """Cells at the widths of the columns, those that are too long cut."""
    cut = [shortened(cell, width) for cell, width in zip(cells, _WIDTHS, strict=True)]
    name, rows, moved, called, evidence, groups = (
        cell.rjust(width) if index in (1, 4) else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cut, _WIDTHS, strict=True))
    )
    return f"{name} {rows} {moved} {called} {evidence}  {groups}".rstrip()


def evidence_text(value: float) -> str:
    """Evidence with two digits that say something.

    >>> evidence_text(0.0412), evidence_text(17.2), evidence_text(2.5e8), evidence_text(0.0), evidence_text(1e200)
    ('0.041', '17', '2.5e+08', '0', '>1e+99')
    """
    if value == 0:
        return "0"
    if value > _MOST_SHOWN:
        return f">{_MOST_SHOWN:.0e}"
    return f"{value:.2g}" if 1e-4 <= value < 100 else f"{value:.0f}" if 100 <= value < 1e5 else f"{value:.1e}"


def finite(value: float) -> float:
    """A number that JSON can hold: the largest one for infinity.

    >>> finite(2.0), finite(float("inf")) > 1e300
    (2.0, True)
    """
    return min(value, 1.7e308)


def groups_over_time(records: Sequence[BatchRecord], confirmed: dict[int, tuple[str, bool]]) -> list[Group]:
    """The groups of all batches by their numbers; ``confirmed`` has names that a review gave, and whether new."""
    found: dict[int, dict[int, GroupRecord]] = {}
    for record in records:
        for group in record.groups:
            found.setdefault(group.number, {})[record.number] = group
    return [
        Group(
            number=number,
            name=confirmed[number][0] if number in confirmed else "",
            confirmed="" if number not in confirmed else "new" if confirmed[number][1] else "known",
            first=min(by_batch),
            last=max(by_batch),
            sizes={batch: group.size for batch, group in by_batch.items()},
            shares={batch: group.share.value for batch, group in by_batch.items()},
        )
        for number, by_batch in sorted(found.items())
    ]
