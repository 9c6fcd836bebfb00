"""From answers to a model with k + n classes: the extended labelled set, a fit on it, and before beside after."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset.errors import Parameter, ParameterError
from openset.pipeline.settings import ALL_ROWS
from openset.review.rows import original_columns
from openset.review.session import Session

if TYPE_CHECKING:
    from openset.pipeline.result import Result

LABELLED, TARGET, RUN = "labelled.parquet", "target.parquet", "run"
CHECK = 0.2
"""Share of the answers given by hand that is not trained on, to compare before and after."""
FEWEST = 10
"""Rows that a new class must have to be promoted."""
ORIGIN, ROW, ID, ANNOTATORS, BY = (f"review_{name}" for name in ("origin", "row", "id", "annotators", "by"))
"""Columns that say where a labelled row came from."""


@dataclass(frozen=True)
class Side:
    """A run before or after."""

    classes: int
    verdict: str
    called_novel: int
    target_rows: int
    right: int | None
    """Check rows whose class, or new, the run says rightly; None without check rows."""


@dataclass(frozen=True)
class Promotion:
    """What was promoted, and the run before beside that after."""

    promoted: dict[str, int]
    left_out: dict[str, int]
    """New classes with too few rows."""
    known_added: int
    check_rows: int
    before: Side
    after: Side

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def promote(
    run: str | PathLike[str] | Session,
    out: str | PathLike[str],
    *,
    check: float = CHECK,
    fewest: int = FEWEST,
    seed: int = 0,
    progress: bool = False,
) -> Promotion:
    """Write the labelled set with the answered rows to ``out``, fit on it, and compare.

    ``out`` gets ``labelled.parquet`` (source and answered rows; columns ``review_*`` say where each came from),
    ``target.parquet`` (the target rows that are left, open again) and ``run``. New classes with fewer than
    ``fewest`` rows are left out. A share ``check`` of the answers by hand stays in the target, to compare on.
    Of a run that was fitted on a sample, source and target are those of the sample: score the other rows with the
    new run.
    """
    from openset.pipeline.run import run_with

    session = run if isinstance(run, Session) else Session(run)
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise ParameterError(f"{folder} is not empty: name another folder with ", Parameter("out", ...), ".")
    labels = session.labels()
    new_rows = {name: [row for row, (label, new) in labels.items() if new and label == name]
                for name in session.state.names}  # fmt: skip
    promoted = {name: rows for name, rows in new_rows.items() if len(rows) >= fewest}
    if not promoted:
        raise ValueError(
            f"no new class has {fewest} answered rows yet ({_counts(new_rows)}): answer more rows with "
            "'openset review', or accept a group there."
        )
    kept = {row: label for row, (label, new) in labels.items() if not new or label in promoted}
    held = _held_out(session, kept, check, seed)
    trained = {row: label for row, label in kept.items() if row not in held}
    folder.mkdir(parents=True, exist_ok=True)
    _write_sets(session, trained, folder)
    settings = replace(
        session.result.summary.settings,
        source=str((folder / LABELLED).resolve()),
        target=str((folder / TARGET).resolve()),
        fit_rows=ALL_ROWS,
    )
    after = run_with(settings, settings.source, settings.target, progress=progress)
    after.save(folder / RUN)
    left = np.setdiff1d(np.arange(len(session)), list(trained))
    return Promotion(
        {name: len(rows) for name, rows in promoted.items()},
        {name: len(rows) for name, rows in new_rows.items() if name not in promoted},
        sum(row in trained and label not in promoted for row, label in kept.items()),
        len(held),
        _side(session.result, {row: kept[row] for row in held}, set(promoted)),
        _side(after, {int(np.searchsorted(left, row)): kept[row] for row in held}, set()),
    )


def _held_out(session: Session, kept: dict[int, str], check: float, seed: int) -> set[int]:
    """Random rows answered by hand; of each new class enough stay to train on."""
    by_hand = np.array([row for row in kept if session.state.by_hand(row)], dtype=int)
    if not check or len(by_hand) < 1 / check:
        return set()
    drawn = np.random.default_rng(seed).permutation(by_hand)[: int(check * len(by_hand))]
    return {int(row) for row in drawn}


def _write_sets(session: Session, trained: dict[int, str], folder: Path) -> None:
    pa = require("pyarrow", "Writing the labelled set", "data")
    pq = require("pyarrow.parquet", "Writing the labelled set", "data")
    result, settings = session.result, session.result.summary.settings
    rows = list(trained)
    label, unused = str(settings.label), _unused_id(result)
    source = _columns(result, "source", {label, *unused})
    target = _columns(result, "target", {label})
    assert result.source.y is not None  # a run has labels
    joined = {
        name: values + ([target[name][row] for row in rows] if name in target else [None] * len(rows))
        for name, values in source.items()
    }
    answers = session.state.rows
    joined |= {
        label: [*map(str, result.source.y.tolist()), *(trained[row] for row in rows)],
        ORIGIN: ["source"] * len(result.source) + ["target"] * len(rows),
        ROW: [*result.source.rows.tolist(), *result.target.rows[rows].tolist()],
        ID: [None] * len(result.source) + [str(result.scored.id[row]) for row in rows],
        ANNOTATORS: [None] * len(result.source) + [", ".join(answers[row].annotators) for row in rows],
        BY: [None] * len(result.source) + ["hand" if answers[row].by_hand else "group" for row in rows],
    }
    pq.write_table(pa.table(joined), folder / LABELLED)
    left = sorted(set(range(len(result.target))) - set(rows))
    pq.write_table(
        pa.table({name: [values[r] for r in left] for name, values in target.items()}), folder / TARGET
    )


def _columns(result: Result, role: str, leave_out: set[str]) -> dict[str, list[Any]]:
    """The file's columns of source or target; paths of pictures start at the root, since the table moves."""
    origin, records = getattr(result.summary.data, role), getattr(result, role)
    if origin.path is None:
        raise ValueError(f"the {role} was a data frame, whose columns are gone: fit from files to promote.")
    columns = original_columns(origin.path, records, leave_out, vectors=True)
    image = result.summary.settings.image
    if records.images is not None and image is not None:
        if records.images.root.is_file():
            raise ValueError(f"the pictures of the {role} are in an archive: unpack it and fit again to promote.")
        columns[image] = [str((records.images.root / path).resolve()) for path in records.images.paths]
    return columns


def _unused_id(result: Result) -> set[str]:
    """The column of ids, which need not differ between source and target; not where it is what is read."""
    settings = result.summary.settings
    used = {settings.image, settings.text, *(settings.features or ())}
    return set() if settings.id is None or settings.id in used else {settings.id}


def _side(result: Result, check: dict[int, str], new: set[str]) -> Side:
    """``new`` are classes that the run cannot know by name: to call such a row new is right."""
    predicted: NDArray[Any] = np.asarray(result.scored.predicted).astype(str)
    novel = str(result.summary.novel_label)
    right = sum(predicted[row] == (novel if label in new else label) for row, label in check.items())
    summary = result.summary
    return Side(
        len(summary.classes),
        summary.verdict.word,
        summary.called_novel,
        summary.data.target.rows,
        int(right) if check else None,
    )


def _counts(rows: dict[str, list[int]]) -> str:
    return ", ".join(f"{name}: {len(found)}" for name, found in rows.items()) or "none was answered"
