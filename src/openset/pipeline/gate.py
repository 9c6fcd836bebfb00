"""The gate before any verdict: checks that look for another explanation than a new class.

Each check names the column or class, and says what to do. Where one fails, the verdict is "cannot tell".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.text import listed
from openset.align.moved import find_move
from openset.pipeline.check_columns import NamedColumns, check_columns
from openset.pipeline.summary import Check
from openset.stats.mixing import FARTHER, mixing, other_rows
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
SURROUNDED = 0.35
"""From this mixing, and this share of other rows around, a group is a known class after one shift and scale."""
_FEWEST_ROWS, _MOST_ROWS = 15, 1000
_MOST_BYTES = 2**27
"""Of the rows of a domain that are compared for copies."""

Rows = NDArray[np.floating]


def run_gate(
    model: Any,
    X: Rows,
    y: NDArray[Any],
    X_target: Rows,
    *,
    columns: NamedColumns | None,
    nearest_known: NDArray[Any],
    called: NDArray[np.bool_],
    groups: NDArray[np.integer],
) -> list[Check]:
    """Every check that the rows allow, failed ones first. ``columns`` are those of a table, None without one.

    ``groups`` has the group of every target row among those called new, -1 for none.
    """
    found = check_labels(y)
    if X.ndim == 2:
        moved = check_moved(model, X, X_target)
        odd = [] if columns is None else check_columns(columns, moved=moved.state != "passed")
        # a batch that moved explains its columns, else a column may explain the move
        is_move = moved.state == "failed" and odd and odd[-1].state == "caution"
        found = [moved, *odd, *found] if is_move else [*odd, *found, moved]
        found.append(check_copies(X, X_target))
        if called.sum() >= _FEWEST_ROWS and called.mean() <= MOST_NOVEL:  # else there is no rest to compare with
            found += check_displaced(X, y, X_target, nearest_known, called, groups)
    found.append(check_half(called))
    order = ("failed", "caution", "passed")
    return sorted(found, key=lambda check: order.index(check.state))


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
    alike = _share_with_a_twin(source)
    words = f"{100 * share:.1f} % of the target rows are copies of source rows."
    if alike >= COPIED:  # few columns, or few values
        words += f" But so are {100 * alike:.1f} % of the source rows: equal rows are usual here."
    share = (share - alike) / (1 - alike) if alike < 1 else 0.0
    if share >= ALL_COPIED:
        return Check("copies", "failed", f"{words} Was one file given twice? Pass the batch as target.")
    if share >= COPIED:
        return Check(
            "copies", "caution", f"{words} They count as evidence for known rows; remove them if they leaked."
        )
    return Check("copies", "passed", words)


def _share_with_a_twin(rows: NDArray[np.void]) -> float:
    """The share of rows that are equal to another of them."""
    _, counts = np.unique(rows, return_counts=True)
    return float(counts[counts > 1].sum() / len(rows))


def check_moved(model: Any, X: Rows, X_target: Rows) -> Check:
    """Did the whole batch move?"""
    chosen = getattr(model, "alignment_", None)
    if chosen is not None:
        before, after = chosen.before, chosen.after
    else:
        before, after = find_move(*_scaled(X, X_target)), None
    words = _surrounded(before.overlap)
    if not before.is_moved:
        return Check("moved batch", "passed", f"{words}: the batch did not move as a whole.")
    if chosen is not None and after is not None and not after.is_moved:
        done = f"the whole batch moved. It was aligned with source ({chosen.name}), which undid the move."
        return Check("moved batch", "caution", f"{words}: {done}")
    can_align = "align" in getattr(model, "get_params", dict)()
    if chosen is not None and after is not None:
        other = "clusters" if chosen.name == "classes" else "classes"
        advice = f"aligning it by {chosen.name!r} did not undo that, so try another, such as --align {other}"
    else:
        advice = "try --align classes" if can_align else "method color can align it"
    return Check(
        "moved batch",
        "failed",
        f"{words}: the whole batch moved, as from another laboratory, instrument or time; {advice}. "
        "Or label some rows of the new origin, or correct the measurement.",
    )


def _surrounded(overlap: float) -> str:
    """How much source lies around half of the target rows.

    >>> _surrounded(0.001), _surrounded(0.36)
    ('Half of the target rows have almost no source row near them', \
'Around half of the target rows, 36 % or more of the nearest rows are source rows')
    """
    if overlap < 0.01:
        return "Half of the target rows have almost no source row near them"
    return f"Around half of the target rows, {100 * overlap:.0f} % or more of the nearest rows are source rows"


def check_displaced(
    X: Rows,
    y: NDArray[Any],
    X_target: Rows,
    nearest_known: NDArray[Any],
    called: NDArray[np.bool_],
    groups: NDArray[np.integer],
) -> list[Check]:
    """Are the rows called new, or a group of them, a known class that is elsewhere as a whole?

    They are if that class is gone from the target rows not called new, and if they mix with it after one shift,
    or one shift and one factor for all columns.
    """
    source, target = _scaled(X, X_target)
    gone = _gone_classes(y, nearest_known[~called])
    classes = {label: _some(source[y == label]) for label in gone}

    def displaced(is_part: NDArray[np.bool_]) -> list[str]:
        part, share = _some(target[is_part]), float(is_part.mean())
        if is_part.sum() < _FEWEST_ROWS:
            return []
        alike = [label for label, rows in classes.items() if _is_displaced(part, rows)]
        # classes of one shape are all alike after a shift: the one with the share of these rows comes first
        alike.sort(key=lambda label: abs(np.log(share / (y == label).mean())))
        return [str(label) for label in alike]

    if alike := displaced(called):  # a class with several kinds is several groups
        return [_displaced(f"The {int(called.sum())} rows called new look", alike)]
    found = []
    for number in range(int(groups.max(initial=-1)) + 1):
        is_group = called & (groups == number)
        if alike := displaced(is_group):
            found.append(_displaced(f"Group {number + 1} ({int(is_group.sum())} rows called new) looks", alike))
    return found or [
        Check("displaced class", "passed", "The rows called new are no known class that moved as a whole.")
    ]


def _some(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """All rows or, if they are many, evenly spaced ones: a file may be sorted."""
    return rows[evenly_spaced(len(rows), _MOST_ROWS)]


def _gone_classes(y: NDArray[Any], rest: NDArray[Any]) -> list[Any]:
    """The known classes that hardly any of the other target rows has."""
    rest = rest.astype(str)
    found = []
    for label in np.unique(y):
        own = y == label
        left = float((rest == str(label)).mean()) if len(rest) else 0.0
        if left <= VANISHED * own.mean() and own.sum() >= _FEWEST_ROWS:
            found.append(label)
    return found


def _is_displaced(group: NDArray[np.float64], rows: NDArray[np.float64]) -> bool:
    """Whether a group mixes with the rows of a class after one shift, or one shift and one factor."""
    return any(
        mixing(rows, moved) >= DISPLACED and _share_of_other(rows, moved) >= SURROUNDED
        for moved in (_shifted(group, rows), _rescaled(group, rows))
    )


def _share_of_other(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The share of rows of the other part around a row, in the part that has fewer; about one half if alike."""
    n = min(len(one), len(other))
    rows = np.concatenate([part[evenly_spaced(len(part), n)] for part in (one, other)])
    is_other = (other_rows(rows, FARTHER.stop) >= n) != (np.arange(len(rows)) >= n)[:, None]
    return float(min(is_other[:n].mean(), is_other[n:].mean()))


def _displaced(who: str, classes: list[str]) -> Check:
    names = " or ".join(repr(name) for name in classes[:3])
    gone = "that class is" if len(classes) == 1 else "those classes are"
    it = "it" if len(classes) == 1 else "one of them"
    words = (
        f"{who} like known class {names} after one shift or scale, and {gone} gone from the rest of the target: "
        f"{it} may have moved. Look at these rows."
    )
    return Check("displaced class", "failed", words)


def _scaled(X: Rows, X_target: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    scaling = fit_scaling(moments(X), moments(X_target), "auto")
    return scale_in_double(scaling, X), scale_in_double(scaling, X_target)


def _shifted(group: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(group - group.mean(axis=0) + rows.mean(axis=0))


def _rescaled(group: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    spread = float(group.var(axis=0).sum())
    factor = np.sqrt(rows.var(axis=0).sum() / spread) if spread > 0 else 1.0
    return np.asarray((group - group.mean(axis=0)) * factor + rows.mean(axis=0))
