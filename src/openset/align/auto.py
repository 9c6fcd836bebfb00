"""The choice of an alignment: none where the batch did not move, else offsets of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openset._utils.text import did_you_mean
from openset.align.base import Aligner, Alignment
from openset.align.classes import ClassOffsets
from openset.align.clusters import ClusterOffsets
from openset.align.coral import Coral
from openset.align.moved import MAX_ROWS, Move, find_move
from openset.align.none import NoAlignment
from openset.align.standardize import Standardize
from openset.align.transport import Transport
from openset.errors import Parameter, ParameterError

ALIGNERS = ("none", "standardize", "coral", "clusters", "classes", "transport")
"""The names that ``align=`` takes beside "auto"."""


@dataclass(frozen=True)
class Chosen:
    """An alignment, and whether the batch was moved before and after it.

    Attributes
    ----------
    name : of the alignment.
    before : the move of the batch as it came.
    after : the move that is left after the alignment; None without an alignment. If it is still moved, the move
        could not be undone.
    alignment : the fitted alignment.
    """

    name: str
    before: Move
    after: Move | None
    alignment: Alignment


def choose_alignment(
    X: Any, y: Any, X_target: Any, align: Any = "auto", seed: int = 0, most_rows: int = MAX_ROWS
) -> Chosen:
    """Fit the alignment that was asked for. Target labels are never used.

    Parameters
    ----------
    X, y, X_target : scaled source rows, their known classes, and scaled target rows.
    align : "auto" is resolved to "none" where :func:`find_move` finds no move, else to "classes". A name of
        ``ALIGNERS`` or an aligner is fitted whether the batch moved or not. A fitted alignment is taken as it is.
    seed : of the drawn rows, of the principal components and of k-means.
    most_rows : rows of each domain in which a move is looked for.
    """
    check_align(align)
    before = find_move(X, X_target, seed=seed, most_rows=most_rows)
    if isinstance(align, str) and align == "auto":
        align = "classes" if before.is_moved else "none"
    if hasattr(align, "transform_target"):
        alignment: Alignment = align
    else:
        aligner = get_aligner(align, seed=seed) if isinstance(align, str) else align
        alignment = aligner.fit(X, X_target, y)
    after = None
    if alignment.name != "none":
        after = find_move(X, alignment.transform_target(X_target), seed=seed, most_rows=most_rows)
    return Chosen(alignment.name, before, after, alignment)


def get_aligner(name: str, *, seed: int = 0) -> Aligner:
    """Return the aligner of a name in ``ALIGNERS``."""
    known: tuple[Aligner, ...] = (
        NoAlignment(),
        Standardize(),
        Coral(),
        ClusterOffsets(seed=seed),
        ClassOffsets(seed=seed),
        Transport(),
    )
    return next(aligner for aligner in known if aligner.name == name)


def check_align(align: Any) -> None:
    """Raise unless ``align`` is "auto", a name, an aligner or a fitted alignment."""
    names = ("auto", *ALIGNERS)
    if isinstance(align, str):
        is_valid, hint = align in names, did_you_mean(align, names)
    else:
        works = hasattr(align, "fit") or hasattr(align, "transform_target")
        is_valid, hint = works and hasattr(align, "name") and not isinstance(align, type), ""
    if not is_valid:
        expected = f"one of {', '.join(map(repr, names))}, or an aligner"
        raise ParameterError(Parameter("align", align), f" is not valid: expected {expected}.{hint}")
