"""The gate before any verdict: checks that look for another explanation than a new class.

Each check names the column or class, and says what to do. Where one fails, the verdict is "cannot tell".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import listed
from openset.align.moved import find_move
from openset.pipeline.summary import Check
from openset.stats.column_checks import OddColumn, odd_columns
from openset.stats.mixing import mixing
from openset.stats.neighbours import evenly_spaced
from openset.stats.novelty import MOST_NOVEL
from openset.stats.scaling import fit_scaling, moments, scale_in_double

FEW_ROWS, TINY_SHARE = 2, 0.05
"""A class with so few rows is tiny; more than this share of source rows in tiny classes fails."""
COPIED, ALL_COPIED = 0.05, 0.9
"""Shares of target rows that are copies of source rows: from the first on it is said, the second fails."""
VANISHED = 0.1
"""A known class is gone if its share of the target is below this part of its share of the source."""
DISPLACED = 0.85
"""A group mixes with a known class, after one shift and scale, from this mixing on."""
_FEWEST_ROWS, _MOST_ROWS, _MOST_NAMES = 15, 1000, 5
_MOST_BYTES = 2**27
"""Of the rows of a domain that are compared for copies."""

Rows = NDArray[np.floating]


class NamedColumns(NamedTuple):
    """The columns of a table in their own units, of source and of target, and their names."""

    source: Rows
    target: Rows
    names: Sequence[str]


def run_gate(
    model: Any,
    X: Rows,
    y: NDArray[Any],
    X_target: Rows,
    *,
    columns: NamedColumns | None,
    nearest_known: NDArray[Any],
    called: NDArray[np.bool_],
) -> list[Check]:
    """Every check that the rows allow, failed ones first. ``columns`` are those of a table, None without one."""
    found = check_labels(y)
    if X.ndim == 2:
        moved = check_moved(model, X, X_target)
        odd = [] if columns is None else check_columns(*columns, moved=moved.state != "passed")
        # a batch that moved explains its columns, else a column may explain the move
        found = [moved, *odd, *found] if moved.state == "failed" and len(odd) > 1 else [*odd, *found, moved]
        found.append(check_copies(X, X_target))
        if called.sum() >= _FEWEST_ROWS:
            found.append(check_displaced(X, y, X_target, nearest_known, called))
    found.append(check_half(called))
    order = ("failed", "caution", "passed")
    return sorted(found, key=lambda check: order.index(check.state))


def check_columns(X: Rows, X_target: Rows, names: Sequence[str], *, moved: bool = False) -> list[Check]:
    """Does a column alone tell source from target? In a batch that moved, several do, and that is the move."""
    odd = odd_columns(X, X_target, names)
    if not odd:
        passed = f"None of the {len(names)} columns alone separates source and target."
        return [Check("separating column", "passed", passed)]
    is_move = moved and len(odd) > 1
    checks = [
        Check(
            "other unit" if column.kind == "unit" else "separating column",
            "caution" if is_move and column.kind == "range" else "failed",
            _column_sentence(column),
        )
        for column in odd[:_MOST_NAMES]
    ]
    if len(odd) > _MOST_NAMES:
        others = listed([repr(column.name) for column in odd[_MOST_NAMES:]], 8)
        state = "caution" if is_move else "failed"
        checks.append(Check("separating column", state, f"So do {len(odd) - _MOST_NAMES} more: {others}."))
    return checks


def _column_sentence(column: OddColumn) -> str:
    name, (low, high), (other_low, other_high) = repr(column.name), column.source, column.target
    ranges = f"{low:.6g} to {high:.6g} in source, {other_low:.6g} to {other_high:.6g} in target"
    leave_out = f"--drop {column.name}"
    if column.kind == "unit":
        times = f"{10 ** abs(column.power):,}".replace(",", " ")
        larger = "larger" if column.power > 0 else "smaller"
        return f"Values of column {name} are about {times} times {larger} in target: bring both to one unit."
    if column.kind == "constant":
        return (
            f"Column {name} is {low:.6g} in every source row and {other_low:.6g} in every target row: leave it "
            f"out with {leave_out}."
        )
    if column.kind == "number":
        return (
            f"Column {name} alone separates source and target ({ranges}), and nearly every value occurs once, as "
            f"in ids, dates and counters: pass --id {column.name} if it tells rows apart, else {leave_out}."
        )
    return f"Column {name} alone separates source and target ({ranges}): correct it, or use {leave_out}."


def check_labels(y: NDArray[Any]) -> list[Check]:
    """Are there classes with one or two rows?"""
    labels, counts = np.unique(np.asarray(y).astype(str), return_counts=True)
    tiny = labels[counts <= FEW_ROWS]
    if not len(tiny):
        return [Check("rows of a class", "passed", f"Every known class has more than {FEW_ROWS} source rows.")]
    share = counts[counts <= FEW_ROWS].sum() / counts.sum()
    words = (
        f"{len(tiny)} of {len(labels)} known classes have at most {FEW_ROWS} source rows: "
        f"{listed([repr(label) for label in tiny.tolist()], 3)}."
    )
    if share > TINY_SHARE:
        return [
            Check("rows of a class", "failed", f"{words} Is this the column of classes? Pass another --label.")
        ]
    return [
        Check("rows of a class", "caution", f"{words} They cannot be learned: merge them, or label more rows.")
    ]


def check_half(called: NDArray[np.bool_]) -> Check:
    """Is more than half of the target called new?"""
    share = float(called.mean()) if len(called) else 0.0
    words = f"{100 * share:.0f} % of the target rows are called new."
    if share <= MOST_NOVEL:
        return Check("share called new", "passed", words)
    advice = "A new class is a part of a batch: source and target seem to be different data."
    return Check("share called new", "failed", f"{words} {advice}")


def check_copies(X: Rows, X_target: Rows) -> Check:
    """Are target rows copies of source rows?"""
    width = X.dtype.itemsize * X.shape[1]
    source, target = (
        np.ascontiguousarray(rows[evenly_spaced(len(rows), max(_MOST_BYTES // width, 1))], dtype=X.dtype)
        .view(f"V{width}")
        .ravel()
        for rows in (X, X_target)
    )
    share = float(np.isin(target, source).mean())
    words = f"{100 * share:.1f} % of the target rows are copies of source rows."
    if share >= ALL_COPIED:
        return Check("copies", "failed", f"{words} Was one file given twice? Pass the batch as target.")
    if share >= COPIED:
        return Check(
            "copies", "caution", f"{words} They count as evidence for known rows; remove them if they leaked."
        )
    return Check("copies", "passed", words)


def check_moved(model: Any, X: Rows, X_target: Rows) -> Check:
    """Did the whole batch move?"""
    chosen = getattr(model, "alignment_", None)
    if chosen is not None:
        before, after = chosen.before, chosen.after
    else:
        before, after = find_move(*_scaled(X, X_target)), None
    words = (
        f"Around half of the target rows at most {100 * before.overlap:.0f} % of the nearest rows are source rows"
    )
    if not before.is_moved:
        return Check("moved batch", "passed", f"{words}: the batch did not move as a whole.")
    if chosen is not None and after is not None and not after.is_moved:
        done = f"the whole batch moved. It was aligned with source ({chosen.name}), which undid the move."
        return Check("moved batch", "caution", f"{words}: {done}")
    can_align = "align" in getattr(model, "get_params", dict)()
    advice = (
        "no alignment undid it"
        if after is not None
        else "try --align classes"
        if can_align
        else "method color can align it"
    )
    return Check(
        "moved batch",
        "failed",
        f"{words}: the whole batch moved, as from another laboratory, instrument or time; {advice}. "
        "Label some rows of the new origin, or correct the measurement.",
    )


def check_displaced(
    X: Rows, y: NDArray[Any], X_target: Rows, nearest_known: NDArray[Any], called: NDArray[np.bool_]
) -> Check:
    """Are the rows called new a known class that is elsewhere as a whole?

    It is if that class is gone from the other target rows, and if the rows called new mix with it after each of
    their columns got its mean and standard deviation.
    """
    source, target = _scaled(X, X_target)
    group = target[called][:_MOST_ROWS]
    for label in np.unique(y):
        own = y == label
        left = float((nearest_known[~called].astype(str) == str(label)).mean()) if (~called).any() else 0.0
        if left > VANISHED * own.mean() or own.sum() < _FEWEST_ROWS:
            continue
        rows = source[own][:_MOST_ROWS]
        for moved in (_shifted(group, rows), _rescaled(group, rows)):
            if mixing(rows, moved) >= DISPLACED:
                words = (
                    f"The {int(called.sum())} rows called new look like known class {str(label)!r} after one "
                    "shift or scale of their columns, and that class is gone from the rest of the target: it may "
                    "have moved. Look at these rows."
                )
                return Check("displaced class", "failed", words)
    return Check("displaced class", "passed", "The rows called new are no known class that moved as a whole.")


def _scaled(X: Rows, X_target: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scaling = fit_scaling(moments(X), moments(X_target), "auto")
    return scale_in_double(scaling, X), scale_in_double(scaling, X_target)


def _shifted(group: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(group - group.mean(axis=0) + rows.mean(axis=0))


def _rescaled(group: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = group.std(axis=0)
    factor = np.divide(rows.std(axis=0), spread, out=np.ones_like(spread), where=spread > 0)
    return np.asarray((group - group.mean(axis=0)) * factor + rows.mean(axis=0))
