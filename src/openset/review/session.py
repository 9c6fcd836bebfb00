"""``Session``: a review of a run, with the same moves in notebooks, in tests and on the page."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from openset._utils.hashing import digest
from openset._utils.params import check_choice
from openset._utils.text import did_you_mean
from openset.review.estimates import purity_bound
from openset.review.learn import gather_evidence, learn_ranking
from openset.review.numbers import Numbers, count_numbers
from openset.review.queues import Suggestion, explore
from openset.review.rows import Domain
from openset.review.state import BULK, LIST, REST, ReviewState, reduce_events
from openset.review.store import NAME, Event, Store
from openset.review.strata import begin

if TYPE_CHECKING:
    from openset.pipeline.result import Result
    from openset.review.learn import Evidence
    from openset.stats.groups import NovelGroups

ESTIMATE, EXPLORE, AGREE = "estimate", "explore", "agree"
QUEUES = (ESTIMATE, EXPLORE, AGREE)
DEFAULT_NAME = "new class"
REFIT_EVERY = 5
"""Answers after which the ranking is learnt anew."""
AUDIT = 12
"""Random rows of a group that are looked at, at least, before all of it may be accepted."""
PURE = 0.7
"""The least lower bound of a group's purity for that."""
_LEASE = 60.0
_LONGEST = 80


@dataclass(frozen=True)
class Audit:
    """How a group stands: its rows, how many of its audit were looked at, and its purity."""

    group: int
    rows: list[int]
    audited: int
    needed: int
    new: int
    purity: float
    """At least this share is new, with 95 % confidence at every look."""
    open: list[int]
    """Rows of the audit that are still to be looked at."""

    @property
    def ready(self) -> bool:
        """Whether the rest of the group may be accepted."""
        return self.audited >= self.needed and self.purity >= PURE


class Session:
    """A review of a run: which row is next, what was answered, and what the answers say.

    Parameters
    ----------
    run : the folder of a run, or a :class:`~openset.pipeline.result.Result`
    annotator : who answers, where a move names nobody else
    store : file of the log; None for ``review.sqlite`` in the run's folder, and memory for a result
    seed : of the random order of Estimate; used only when a review begins. None for a random one

    Every move is saved before it returns. Several sessions may share a log.
    """

    def __init__(
        self,
        run: str | PathLike[str] | Result,
        *,
        annotator: str = "me",
        store: str | PathLike[str] | None = None,
        seed: int | None = None,
    ) -> None:
        from openset.pipeline.run import load_run

        if isinstance(run, (str, PathLike)):
            self.result: Result = load_run(run)
            self.store = Store(Path(run) / NAME if store is None else store)
        else:
            self.result = run
            self.store = Store(":memory:" if store is None else store)
        self.annotator = annotator
        self.batch = batch_of(self.result)
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._state = ReviewState()
        self._leases: dict[int, tuple[str, float]] = {}
        scored, threshold = self.result.scored, self.result.model.threshold_
        self.strata = begin(self.store, self.batch, annotator, scored.novelty_score, threshold, seed)
        self.ranking = self.evidence.prior
        self.learnt_from = self.changed = self._learnt = 0
        self.refit()

    def close(self) -> None:
        """Close the log; nothing needs to be saved."""
        self.store.close()

    # --- what there is

    @cached_property
    def evidence(self) -> Evidence:
        """The target's rows as the ranking compares them."""
        result = self.result
        scores, threshold = result.scored.novelty_score, result.model.threshold_
        return gather_evidence(result.features_source, result.features_target, scores, threshold)

    @cached_property
    def groups(self) -> NovelGroups:
        """Groups among the rows called new."""
        return self.result.novel_groups()

    @cached_property
    def target(self) -> Domain:
        """The target's rows, to be shown."""
        return self._domain("target")

    @cached_property
    def source(self) -> Domain:
        """The source's rows, to be shown."""
        return self._domain("source")

    @cached_property
    def classes(self) -> list[str]:
        """The known classes, as text."""
        return [str(label) for label in self.result.model.classes_.tolist()]

    def __len__(self) -> int:
        return len(self.result.scored)

    @property
    def state(self) -> ReviewState:
        """What was answered, by anybody, until now."""
        with self._lock:
            further = self.store.events(self.batch, self._number)
            if further:
                self._events += further
                self._state = reduce_events(self._events)
            return self._state

    @property
    def _number(self) -> int:
        """The number of the last event that was read."""
        return self._events[-1].number if self._events else 0

    # --- moves

    def next(self, queue: str = ESTIMATE, *, annotator: str | None = None) -> Suggestion | None:
        """The row that a queue asks for next, and why; None if it has none left.

        Two people are asked for different rows, as long as one of them is at it.
        """
        check_choice("queue", queue, QUEUES)
        who, state = annotator or self.annotator, self.state
        with self._lock:
            found = self._find(queue, who, state)
            if found is not None:
                self._leases[found.row] = (who, time.monotonic() + _LEASE)
            return found

    def new(self, row: int, name: str = DEFAULT_NAME, **more: Any) -> None:
        """Say that a row is of a new class."""
        self._answer(row, True, self._checked_name(name), **more)

    def known(self, row: int, label: Any = None, **more: Any) -> None:
        """Say that a row is of a known class; None for the one that the model suggests."""
        self._answer(row, False, self.suggested(row) if label is None else self._checked_class(label), **more)

    def skip(self, row: int, **more: Any) -> None:
        """Say nothing of a row; the estimate counts it as either."""
        self._answer(row, None, None, **more)

    def undo(self, *, annotator: str | None = None) -> list[int] | None:
        """Take back one's last answer, group or name; the rows that it was about, or None if there is nothing."""
        who = annotator or self.annotator
        own = [action for person, action in self.state.actions if person == who]
        if not own:
            return None
        self.store.append([Event("undo", self.batch, who, detail={"action": own[-1]})])
        self._leases.clear()
        numbers = [event for event in self._events if (event.detail or {}).get("action") == own[-1]]
        return [event.row for event in numbers if event.kind == "label" and event.row is not None]

    def rename(self, old: str, new: str, *, annotator: str | None = None) -> None:
        """Rename a new class; with the name of another one, both become one."""
        if old not in self.state.names:
            raise ValueError(f"there is no new class {old!r}.{did_you_mean(old, self.state.names)}")
        detail = {"action": _action(), "from": old, "to": self._checked_name(new)}
        self.store.append([Event("rename", self.batch, annotator or self.annotator, detail=detail)])

    def audit(self, group: int) -> Audit:
        """How far the audit of a group is: random rows of it, fixed before the first answer."""
        rows = self._members(group)
        order = np.random.default_rng([self.strata.seed, group]).permutation(rows).tolist()
        state = self.state
        looked = []
        for row in order:
            if not state.by_hand(row):
                break
            looked.append(row)
        new = sum(state.rows[row].is_new is True for row in looked)
        purity = purity_bound(new, len(looked), len(rows)) if looked else 0.0
        # the bound holds at every look, so a group that is not pure enough yet may be looked at further
        further = len(looked) + AUDIT // 2 if len(looked) >= AUDIT and purity < PURE else AUDIT
        needed = min(max(further, AUDIT), len(rows))
        waiting = [row for row in order[:needed] if not state.by_hand(row)]
        return Audit(group, rows, len(looked), needed, new, purity, waiting)

    def accept_group(self, group: int, name: str = DEFAULT_NAME, *, annotator: str | None = None) -> int:
        """Call the rest of a group new, after its audit. Such labels train, and never enter the estimate."""
        audit = self.audit(group)
        if not audit.ready:
            raise ValueError(
                f"group {group} cannot be accepted yet: {audit.audited} of {audit.needed} random rows were "
                f"looked at, and at least {audit.purity:.0%} of it is new; {PURE:.0%} are needed."
            )
        label, who, action = self._checked_name(name), annotator or self.annotator, _action()
        state = self.state
        rows = [row for row in audit.rows if row not in state.rows]
        self.store.append([self._event(row, True, label, BULK, who, action) for row in rows])
        return len(rows)

    def add_answers(self, answers: Sequence[tuple[int, bool | None, str | None, str]], *, queue: str) -> None:
        """Several answers at once, all or none: row, new or known (None to skip), class, and who says so."""
        action = _action()
        events = []
        for row, is_new, label, who in answers:
            if label is not None and is_new is not None:
                label = self._checked_name(label) if is_new else self._checked_class(label)
            who = self._checked_annotator(who)
            events.append(self._event(self._checked_row(row), is_new, label, queue, who, action))
        self.store.append(events)

    # --- what the answers say

    def numbers(self) -> Numbers:
        """Share, precision and recall with intervals that hold at every look, and the evidence of a new class."""
        return count_numbers(self.state, self.strata)

    def refit(self) -> bool:
        """Learn the ranking from the answers so far; whether there was anything new to learn from."""
        with self._lock:
            (rows, is_new), number = self.state.training(), self._number
        if number == self._learnt:
            return False
        ranking = learn_ranking(self.evidence, rows, is_new)
        size = max(int(self.strata.listed.sum()), 20)
        before, after = (
            set(np.argsort(-part, kind="stable")[:size].tolist()) for part in (self.ranking, ranking)
        )
        with self._lock:
            self.ranking, self.learnt_from, self.changed = ranking, len(rows), len(after - before)
            self._learnt = number
        return True

    @property
    def due(self) -> bool:
        """Whether enough was answered, or taken back, to learn the ranking anew."""
        with self._lock:
            _ = self.state  # reads what others wrote
            return self._number - self._learnt >= REFIT_EVERY

    def suggested(self, row: int) -> str:
        """The known class that the model finds nearest."""
        return str(self.result.scored.nearest_known[self._checked_row(row)])

    def labels(self) -> dict[int, tuple[str, bool]]:
        """Rows with a clear answer: the class, and whether it is new."""
        return {
            row: (str(answer.label), answer.is_new)
            for row, answer in self.state.rows.items()
            if answer.is_new is not None and answer.label is not None
        }

    # --- inside

    def _domain(self, role: str) -> Domain:
        settings, origin = self.result.summary.settings, getattr(self.result.summary.data, role)
        shown = (settings.label, settings.id, settings.text, settings.image)  # on their own, or not at all
        leave_out = {name for name in shown if name is not None}
        features = np.asarray(getattr(self.result, f"features_{role}"))
        return Domain(getattr(self.result, role), origin.path, features, leave_out)

    def _find(self, queue: str, who: str, state: ReviewState) -> Suggestion | None:
        now = time.monotonic()
        taken = {row for row, (other, until) in self._leases.items() if other != who and until > now}
        if queue == AGREE:
            return self._to_agree(who, state)
        if queue == ESTIMATE:
            free = (row for row in map(int, self.strata.order) if not state.by_hand(row) and row not in taken)
            row = next(free, None)
            if row is None:
                return None
            return Suggestion(row, f"drawn at random from the {'list' if self.strata.listed[row] else 'rest'}")
        answered = np.zeros(len(self), dtype=bool)
        answered[[*state.rows, *taken]] = True
        medoids = [group.medoid for group in self.groups.groups]
        turn = sum(a.queue == EXPLORE for found in state.answers.values() for a in found)
        return explore(self.ranking, self.evidence.points, answered, medoids, turn)

    def _to_agree(self, who: str, state: ReviewState) -> Suggestion | None:
        """A row that others answered and this person did not: those that are disputed first."""
        for row in state.disputed():
            if all(answer.annotator != who for answer in state.answers[row]):
                return Suggestion(row, "people disagree")
        for row, answers in state.answers.items():
            people = {answer.annotator for answer in answers}
            if state.by_hand(row) and who not in people and len(people) == 1:
                return Suggestion(row, f"a second opinion: {min(people)} answered")
        mine = state.disputed()
        return Suggestion(mine[0], "people disagree; answer again to change your answer") if mine else None

    def _answer(
        self,
        row: int,
        is_new: bool | None,
        label: str | None,
        *,
        queue: str = EXPLORE,
        annotator: str | None = None,
    ) -> None:
        who = self._checked_annotator(annotator or self.annotator)
        self.store.append([self._event(self._checked_row(row), is_new, label, queue, who, _action())])
        self._leases.pop(row, None)

    def _event(
        self, row: int, is_new: bool | None, label: str | None, queue: str, who: str, action: str
    ) -> Event:
        return Event(
            "label",
            self.batch,
            who,
            row=row,
            id=str(self.result.scored.id[row]),
            label=label,
            is_new=is_new,
            queue=queue,
            stratum=LIST if self.strata.listed[row] else REST,
            probability=1 / self._waiting(row) if queue == ESTIMATE else None,
            detail={"action": action},
        )

    def _waiting(self, row: int) -> int:
        """Rows of the same stratum that Estimate has not asked for: each is as likely to come next."""
        listed = self.strata.listed
        same = listed == listed[row]
        return max(int(same.sum()) - sum(bool(same[r]) and a.by_hand for r, a in self.state.rows.items()), 1)

    def _members(self, group: int) -> list[int]:
        if not 0 <= group < len(self.groups):
            raise ValueError(f"there is no group {group}: the run has {len(self.groups)}, numbered from 0.")
        return [int(row) for row in np.flatnonzero(self.groups.labels == group)]

    def _checked_row(self, row: int) -> int:
        if not 0 <= row < len(self):
            raise ValueError(f"there is no row {row}: the target has {len(self)}, numbered from 0.")
        return int(row)

    def _checked_class(self, label: Any) -> str:
        if str(label) not in self.classes:
            hint = did_you_mean(str(label), self.classes)
            raise ValueError(f"{str(label)!r} is no known class.{hint} Name a new class with new().")
        return str(label)

    def _checked_name(self, name: str) -> str:
        text = " ".join(str(name).split())
        if not text or len(text) > _LONGEST:
            raise ValueError(f"a new class needs a name of 1 to {_LONGEST} characters; got {len(text)}.")
        if text in self.classes:
            raise ValueError(f"{text!r} is a known class: answer with it, or choose another name.")
        return text

    def _checked_annotator(self, name: str) -> str:
        if not name.strip() or len(name) > _LONGEST:
            raise ValueError(f"an annotator needs a name of 1 to {_LONGEST} characters.")
        return name.strip()


def batch_of(result: Result) -> str:
    """What a log calls the target: the checksum of its data and of its ids."""
    checksum = result.summary.data.target.sha256 or digest(np.asarray(result.features_target))
    return digest(checksum, np.asarray(result.scored.id).astype(str))


def _action() -> str:
    return secrets.token_hex(8)
