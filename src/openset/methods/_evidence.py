"""What a cross-fitted ensemble says of the new class: scores of held-out rows, and what limits the answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openset.base import Problem
from openset.stats.diagnostics import (
    Diagnostic,
    agreement_of_members,
    constraint_kept,
    diagnose_scores,
    support_of_known,
)
from openset.stats.held_out import HeldOutScores
from openset.stats.neighbours import distance_score
from openset.stats.novelty import NoveltyEvidence

_MOST_ROWS = 2000
"""Source rows that distances are measured to, at most."""

Logits = NDArray[np.floating]


def held_out_scores(source: Logits, target: Logits, problem: Problem) -> HeldOutScores:
    """From logits (members, rows, heads) those of the rows that each member held out.

    A last column holds the distance to the source rows that the member trained on: small new classes that
    stand apart show there first. Rows that are no vectors have none.
    """
    return HeldOutScores(
        tuple(
            _with_distance(source[member][fold.held], problem.X, fold.held, problem.X, fold.train)
            for member, fold in enumerate(problem.folds)
        ),
        tuple(
            _with_distance(target[member][fold.held], _target(problem), fold.held, problem.X, own.train)
            for member, (fold, own) in enumerate(zip(problem.target_folds, problem.folds, strict=True))
        ),
    )


def diagnose(
    held_out: HeldOutScores,
    evidence: NoveltyEvidence,
    problem: Problem,
    *,
    member_scores: Logits,
    called_novel: NDArray[np.bool_],
    recall: float,
    candidate_recall: float,
    fpr: float,
) -> list[Diagnostic]:
    """All checks of an answer; ``member_scores`` and ``called_novel`` are of the target rows."""
    found = [*diagnose_scores(held_out, evidence, fpr=fpr), constraint_kept(recall, candidate_recall)]
    if len(member_scores) > 1:
        found.append(agreement_of_members(member_scores, max(evidence.fraction.value, 0.01)))
    if problem.X.ndim == 2:
        known = _target(problem)[~called_novel]
        found.append(support_of_known(_some(problem.X), _some(known)))
    return found


def _with_distance(
    logits: Logits,
    rows: NDArray[np.floating],
    held: NDArray[np.intp],
    source: NDArray[np.floating],
    train: NDArray[np.intp],
) -> NDArray[np.float64]:
    if rows.ndim != 2 or len(train) < 5:
        return logits.astype(np.float64)
    near = _some(source[train])
    return np.column_stack([logits, distance_score(near, rows[held].astype(np.float64))])


def _some(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """All rows or, if they are many, some spread evenly over them."""
    if len(rows) > _MOST_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(np.intp)]
    return rows.astype(np.float64)


def _target(problem: Problem) -> NDArray[np.floating]:
    assert problem.X_target is not None
    return problem.X_target
