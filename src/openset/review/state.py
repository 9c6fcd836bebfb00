"""What the log's events add up to: the answer for each row, the names of new classes, tallies to estimate from.

Pure: the same events always give the same state, so the live numbers can be recomputed from the log alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from openset.review.estimates import Tally
from openset.review.store import Event

BULK = "bulk"
"""The queue of labels that were given to a whole group: they train, and never enter an estimate."""
LIST, REST = "list", "rest"


@dataclass(frozen=True)
class Answer:
    """What one person said of a row: new or known and of which class; ``is_new`` is None for a skipped row."""

    row: int
    annotator: str
    is_new: bool | None
    label: str | None
    queue: str
    action: str
    number: int


@dataclass(frozen=True)
class RowAnswer:
    """What all people together say of a row. ``is_new`` is None where it was skipped or they disagree."""

    row: int
    is_new: bool | None
    label: str | None
    annotators: tuple[str, ...]
    by_hand: bool
    """Whether somebody looked at this very row."""
    disputed: bool


@dataclass(frozen=True)
class ReviewState:
    """The review after some events."""

    answers: dict[int, list[Answer]] = field(default_factory=dict)
    rows: dict[int, RowAnswer] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    """New classes and their rows, in the order in which they appeared."""
    actions: tuple[tuple[str, str], ...] = ()
    """What can be undone, as (annotator, action), oldest first."""

    def training(self) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The rows with a clear answer, and whether they are new."""
        clear = [answer for answer in self.rows.values() if answer.is_new is not None]
        rows = np.array([answer.row for answer in clear], dtype=np.intp)
        return rows, np.array([answer.is_new for answer in clear], dtype=bool)

    def disputed(self) -> list[int]:
        """Rows that people disagree about."""
        return [row for row, answer in self.rows.items() if answer.disputed]

    def by_hand(self, row: int) -> bool:
        """Whether somebody answered for, or skipped, this very row."""
        return row in self.rows and self.rows[row].by_hand


def reduce_events(events: Iterable[Event]) -> ReviewState:
    """The state that events lead to."""
    kept, actions = _not_undone(list(events))
    names = _Names()
    answers: dict[int, list[Answer]] = {}
    for event in kept:
        if event.kind == "rename" and event.detail is not None:
            names.rename(event.detail["from"], event.detail["to"])
        elif event.kind == "label" and event.row is not None:
            _take(answers, event)
            if event.is_new and event.label is not None:
                names.add(event.label)
    named = {row: [_renamed(answer, names) for answer in found] for row, found in answers.items()}
    rows = {row: _together(row, found) for row, found in named.items() if found}
    counts = Counter(answer.label for answer in rows.values() if answer.is_new)
    listed = {name: counts.get(name, 0) for name in names.current()}
    return ReviewState(named, rows, listed, tuple(actions))


def tallies(
    state: ReviewState, order: NDArray[np.intp], listed: NDArray[np.bool_], guesses: tuple[float, float]
) -> tuple[Tally, Tally]:
    """The answers of the rows that came up in Estimate: the longest beginning of its order without a gap.

    A row that was answered elsewhere counts when its turn has come. The order was fixed before the first answer,
    so the sample is random however rows are chosen elsewhere.
    """
    counts = np.zeros((2, 3), dtype=int)
    for row in map(int, order):  # mostly a few: no list of all rows is made
        if not state.by_hand(row):
            break
        is_new = state.rows[row].is_new
        counts[0 if listed[row] else 1, 2 if is_new is None else 0 if is_new else 1] += 1
    sizes = (int(listed.sum()), int((~listed).sum()))
    first, rest = (
        Tally(size, int(found[0]), int(found[1]), int(found[2]), guess)
        for size, found, guess in zip(sizes, counts, guesses, strict=True)
    )
    return first, rest


def _not_undone(events: Sequence[Event]) -> tuple[list[Event], list[tuple[str, str]]]:
    undone = {event.detail["action"] for event in events if event.kind == "undo" and event.detail}
    kept = [event for event in events if _action(event) not in undone and event.kind in ("label", "rename")]
    actions = list(dict.fromkeys((event.annotator, _action(event)) for event in kept))
    return kept, actions


def _action(event: Event) -> str:
    return str((event.detail or {}).get("action", event.number))


def _take(answers: dict[int, list[Answer]], event: Event) -> None:
    """A person's later answer replaces the earlier one; that for a whole group replaces none given by hand."""
    assert event.row is not None  # labels have a row
    found = answers.setdefault(event.row, [])
    queue = event.queue or ""
    if queue == BULK and any(answer.queue != BULK for answer in found):
        return
    kept = [answer for answer in found if answer.annotator != event.annotator and answer.queue != BULK]
    own = Answer(event.row, event.annotator, event.is_new, event.label, queue, _action(event), event.number)
    found[:] = [*kept, own]


def _renamed(answer: Answer, names: _Names) -> Answer:
    if not answer.is_new or answer.label is None:
        return answer
    return replace(answer, label=names.now(answer.label))


def _together(row: int, answers: Sequence[Answer]) -> RowAnswer:
    clear = [answer for answer in answers if answer.is_new is not None]
    votes = Counter(answer.is_new for answer in clear).most_common()
    is_tie = len(votes) > 1 and votes[0][1] == votes[1][1]
    is_new = votes[0][0] if votes and not is_tie else None
    labels = Counter(answer.label for answer in clear if answer.is_new == is_new and answer.label is not None)
    label = labels.most_common(1)[0][0] if is_new is not None and labels else None
    by_hand = any(answer.queue != BULK for answer in answers)
    disputed = len(votes) > 1 or len(labels) > 1
    return RowAnswer(row, is_new, label, tuple(a.annotator for a in answers), by_hand, disputed)


class _Names:
    """Names of new classes: each label's name now, after renaming and merging."""

    def __init__(self) -> None:
        self._now: dict[str, str] = {}

    def add(self, name: str) -> None:
        self._now[name] = name  # a name that is used again means itself again

    def rename(self, old: str, new: str) -> None:
        self._now = {name: new if now == old else now for name, now in self._now.items()}
        self._now.setdefault(new, new)

    def now(self, name: str) -> str:
        return self._now.get(name, name)

    def current(self) -> list[str]:
        return list(dict.fromkeys(self._now.values()))
