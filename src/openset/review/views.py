"""What the page is told: a row, the live numbers, a group. Plain values only; nothing here is HTML."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from openset._utils.typed import plain
from openset.review.queues import Suggestion
from openset.review.rows import Typical
from openset.review.session import PURE, REFIT_EVERY
from openset.review.words import marked, telling_words
from openset.stats.neighbours import evenly_spaced

if TYPE_CHECKING:
    from openset.review.rows import Domain
    from openset.review.session import Session

KEYS = 9
"""Known classes that have a key."""
NEIGHBOURS = 3
_UNUSUAL = 8
_EXCERPT = 220
_MOST_TEXTS = 4000
_GRID = 60


class Views:
    """What a session looks like; knows the words that tell, which follow the ranking."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._typical = Typical(session.source.columns)
        self._words: dict[str, float] = {}
        self._lock = threading.Lock()
        _ = session.groups  # what takes long is done before the page is open
        self.follow_ranking()

    def follow_ranking(self) -> None:
        """Find the words that tell, by the ranking as it is now."""
        texts, known = self.session.target.records.texts, self.session.source.records.texts
        if texts is None or known is None:
            return
        order = np.argsort(-self.session.ranking, kind="stable")
        size = max(20, int(self.session.strata.listed.sum()))
        highest = order[:size][:_MOST_TEXTS]
        others = known[evenly_spaced(len(known), _MOST_TEXTS)]
        words = telling_words(map(str, texts[highest]), map(str, others))
        with self._lock:
            self._words = words

    def overview(self) -> dict[str, Any]:
        """The live numbers, the names, the groups, and how far the ranking is."""
        session = self.session
        numbers = session.numbers()
        return {
            **plain(asdict(numbers)),
            "annotator": session.annotator,
            "rows": len(session),
            "listed": int(session.strata.listed.sum()),
            "list_is_called": session.strata.is_called,
            "names": [{"name": name, "rows": rows} for name, rows in session.state.names.items()],
            "classes": session.classes,
            "groups": [self._group(number) for number in range(len(session.groups))],
            "learnt_from": session.learnt_from,
            "changed": session.changed,
            "refit_every": REFIT_EVERY,
            "people": sorted({a.annotator for found in session.state.answers.values() for a in found}),
        }

    def row(self, suggestion: Suggestion, queue: str) -> dict[str, Any]:
        """A row, large: its content, the nearest known rows, its group and what was answered."""
        session, row = self.session, suggestion.row
        answer = session.state.rows.get(row)
        group = int(session.groups.labels[row])
        return {
            "row": row,
            "queue": queue,
            "reason": suggestion.reason,
            "id": str(session.result.scored.id[row]),
            "p_value": float(session.result.scored.p_value[row]),
            "rank": int((session.ranking > session.ranking[row]).sum()) + 1,
            "listed": bool(session.strata.listed[row]),
            "group": group,
            "suggested": session.suggested(row),
            "keys": self._keys(row),
            "neighbours": self._neighbours(row),
            "answer": None if answer is None else {"is_new": answer.is_new, "label": answer.label},
            **self._content(row),
        }

    def group(self, number: int) -> dict[str, Any]:
        """A group as a grid: its rows, small, with their answers, and how its audit stands."""
        session = self.session
        audit = session.audit(number)
        rows = [*audit.open, *(row for row in audit.rows if row not in audit.open)][:_GRID]
        return {**self._group(number), "members": [self.tile(row) for row in rows], "open": audit.open}

    def tile(self, row: int) -> dict[str, Any]:
        """A row, small."""
        session = self.session
        answer = session.state.rows.get(row)
        given = None if answer is None else {"is_new": answer.is_new, "label": answer.label}
        return {
            "row": row,
            "id": str(session.result.scored.id[row]),
            "answer": given,
            **self._excerpt(session.target, row),
        }

    def _group(self, number: int) -> dict[str, Any]:
        audit, answered = self.session.audit(number), self.session.state.rows
        return {
            "number": number,
            "size": len(audit.rows),
            "answered": sum(row in answered for row in audit.rows),
            "audited": audit.audited,
            "needed": audit.needed,
            "new": audit.new,
            "purity": audit.purity,
            "pure": PURE,
            "ready": audit.ready,
        }

    def _keys(self, row: int) -> list[str]:
        """Known classes by key: all in their order if they are few, else the most probable for the row."""
        session = self.session
        if len(session.classes) <= KEYS:
            return session.classes
        probable = np.argsort(-session.result.scored.probabilities[row, :-1], kind="stable")[:KEYS]
        return [session.classes[index] for index in probable]

    def _content(self, row: int) -> dict[str, Any]:
        target = self.session.target
        text = target.text(row)
        columns = self._typical.describe(target.columns, row)
        return {
            "kind": "text"
            if text is not None
            else "image"
            if target.has_pictures
            else "table"
            if columns
            else "vector",
            "text": None if text is None else marked(text, self._words),
            "picture": target.has_pictures,
            "columns": [asdict(column) for column in columns],
            "first_columns": _UNUSUAL,
        }

    def _neighbours(self, row: int) -> list[dict[str, Any]]:
        """The nearest known rows of source."""
        session = self.session
        evidence, labels = session.evidence, session.source.records.y
        distance = np.linalg.norm(evidence.source_points - evidence.points[row], axis=1)
        nearest = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        return [
            {
                "row": int(evidence.source_rows[index]),
                "label": "" if labels is None else str(labels[evidence.source_rows[index]]),
                "distance": float(distance[index]),
                **self._excerpt(session.source, int(evidence.source_rows[index])),
            }
            for index in nearest
        ]

    def _excerpt(self, domain: Domain, row: int) -> dict[str, Any]:
        text = domain.text(row)
        if text is not None:
            return {"text": text[:_EXCERPT] + ("…" if len(text) > _EXCERPT else ""), "picture": False}
        if domain.has_pictures:
            return {"text": "", "picture": True}
        columns = self._typical.describe(domain.columns, row)[:4]
        return {"text": " · ".join(f"{c.name} {c.value}" for c in columns), "picture": False}
