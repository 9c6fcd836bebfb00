"""Rows to label elsewhere, and labels from elsewhere: Label Studio, JSON lines, Parquet, CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from openset._utils.arrays import is_missing
from openset._utils.files import extension, write_atomically
from openset._utils.text import listed
from openset._utils.typed import read_json
from openset.data.readers.open import open_source
from openset.data.writer import check_writable, writing_table
from openset.review.rows import Domain, _typed
from openset.review.session import DEFAULT_NAME, ESTIMATE, EXPLORE
from openset.review.state import LIST, REST

if TYPE_CHECKING:
    from openset.review.session import Session

ROWS = 100
"""Rows of each queue that are exported beside those that have an answer."""
IMPORT = "import"
SKIP = "skip"


def export_rows(session: Session, path: Path, rows: int = ROWS) -> int:
    """Write rows to label elsewhere: the next of Estimate, the highest of the ranking, and those answered.

    ``.json`` is Label Studio's list of tasks; every other extension a table. Returns how many rows there are.
    """
    found = [_described(session, row, queue) for row, queue in _chosen(session, rows).items()]
    if extension(path) == ".json":
        write_atomically(path, json.dumps([_task(entry) for entry in found], ensure_ascii=False).encode())
        return len(found)
    check_writable(path)
    columns = {
        name: np.array([str(entry[name]) if name in _TEXTS else entry[name] for entry in found])
        for name in (*_FIELDS, *([] if not found else [n for n in found[0] if n not in _FIELDS]))
    }
    with writing_table(path) as write:
        write(columns)
    return len(found)


def import_labels(session: Session, path: Path) -> int:
    """Answers from a file: rows by ``id`` or ``row``, a ``label``, and who gave it if ``annotator`` says so.

    A label that is a known class means known, "skip" skips, all others are names of new classes ("new" and the
    run's own novel label mean one without a name). Rows without a label are left alone. All or nothing is saved.
    """
    answers = [answer for answer in _answers(path) if not _is_blank(answer.get("label"))]
    ids = {str(value): row for row, value in enumerate(session.result.scored.id.tolist())}
    unknown = [answer for answer in answers if _row_of(answer, ids, len(session)) is None]
    if unknown:
        names = listed(str(answer.get("id", answer.get("row"))) for answer in unknown)
        raise ValueError(f"{path}: {len(unknown)} labels are of rows that the target does not have: {names}.")
    nameless = {"new", "novel", str(session.result.summary.novel_label)}
    moves = []
    for answer in answers:
        row, label = _row_of(answer, ids, len(session)), str(answer["label"]).strip()
        assert row is not None  # checked above
        is_new = None if label == SKIP else label not in session.classes
        name = None if is_new is None else DEFAULT_NAME if is_new and label in nameless else label
        moves.append((row, is_new, name, str(answer.get("annotator") or IMPORT)))
    session.add_answers(moves, queue=IMPORT)
    return len(moves)


_FIELDS = ("row", "id", "queue", "stratum", "score", "suggested", "answer", "annotators")
_TEXTS = ("id", "queue", "stratum", "suggested", "answer", "annotators")


def _chosen(session: Session, rows: int) -> dict[int, str]:
    state = session.state
    waiting = (row for row in session.strata.order.tolist() if not state.by_hand(row))
    chosen = dict.fromkeys(state.rows, "")
    chosen |= {row: ESTIMATE for row, _ in zip(waiting, range(rows), strict=False)}
    highest = (row for row in np.argsort(-session.ranking, kind="stable").tolist() if row not in chosen)
    return chosen | {row: EXPLORE for row, _ in zip(highest, range(rows), strict=False)}


def _described(session: Session, row: int, queue: str) -> dict[str, Any]:
    answer = session.state.rows.get(row)
    return {
        "row": row,
        "id": str(session.result.scored.id[row]),
        "queue": queue,
        "stratum": LIST if session.strata.listed[row] else REST,
        "score": float(session.ranking[row]),
        "suggested": session.suggested(row),
        "answer": "" if answer is None else SKIP if answer.is_new is None else str(answer.label),
        "annotators": "" if answer is None else ", ".join(answer.annotators),
        **content_of(session.target, row),
    }


def content_of(domain: Domain, row: int) -> dict[str, Any]:
    """What a row holds, for another tool: its text, the path of its picture, or its columns."""
    text = domain.text(row)
    if text is not None:
        return {"text": text}
    if domain.records.images is not None:
        return {"image": str(domain.records.images.paths[row])}
    return {f"column_{name}": str(values[row]) for name, values in domain.columns.items()}


def _task(entry: Mapping[str, Any]) -> dict[str, Any]:
    """One of Label Studio's tasks; an answer is a prediction, so that people there see it and can correct it."""
    task: dict[str, Any] = {"data": {name: value for name, value in entry.items() if name != "answer"}}
    if entry["answer"] not in ("", SKIP):
        choice = {
            "from_name": "label",
            "to_name": "row",
            "type": "choices",
            "value": {"choices": [entry["answer"]]},
        }
        task["predictions"] = [{"model_version": "openset review", "result": [choice]}]
    return task


def _answers(path: Path) -> list[dict[str, Any]]:
    if extension(path) == ".json":
        content = read_json(path)
        if not isinstance(content, list) or not all(isinstance(task, dict) for task in content):
            raise ValueError(f"{path} is no list of Label Studio's tasks: export them as JSON there.")
        return [answer for task in content for answer in _of_task(task)]
    opened = open_source(path)
    names = [name for name in ("id", "row", "label", "annotator") if name in opened.kinds]
    if "label" not in names or not {"id", "row"} & set(names):
        raise ValueError(
            f"{path} has the columns {listed(opened.kinds, 20)}: labels need 'label', and 'id' or 'row'."
        )
    answers: list[dict[str, Any]] = []
    for chunk in opened.chunks(names, None):
        columns = {n: c.to_pylist() if hasattr(c, "to_pylist") else list(c) for n, c in chunk.columns.items()}
        for values in zip(*columns.values(), strict=True):
            answers.append({name: _typed(v, "other") for name, v in zip(columns, values, strict=True)})
    return answers


def _of_task(task: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The answers in one exported task: each annotation's first choice."""
    data = task.get("data") or {}
    for annotation in task.get("annotations") or ():
        by = annotation.get("completed_by")
        who = by.get("email") or by.get("id") if isinstance(by, dict) else by
        choices = [
            choice
            for result in annotation.get("result") or ()
            for choice in (result.get("value") or {}).get("choices") or ()
        ]
        label = SKIP if annotation.get("was_cancelled") else choices[0] if choices else None
        yield {**{k: data[k] for k in ("id", "row") if k in data}, "label": label, "annotator": who}


def _row_of(answer: Mapping[str, Any], ids: Mapping[str, int], n_rows: int) -> int | None:
    if not _is_blank(answer.get("id")):
        return ids.get(str(answer["id"]))
    text = str(answer.get("row", "")).strip()
    return int(text) if text.isdigit() and int(text) < n_rows else None


def _is_blank(value: Any) -> bool:
    return is_missing(value) or not str(value).strip()
