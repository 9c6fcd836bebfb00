"""CoLOR's decision: scores of validation rows by all heads and by distance, and diagnostics of the verdict."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openset.methods._heads import FitHeads
from openset.problem import Problem
from openset.stats.diagnostics import (
    Diagnostic,
    agreement_of_members,
    constraint_kept,
    score_diagnostics,
    support_of_known,
)
from openset.stats.neighbours import distance_score
from openset.stats.novelty import NoveltyVerdict
from openset.stats.validation_scores import ValidationScores

_MOST_ROWS = 2000
"""Distances are computed to at most this many source rows."""

_FEWEST_ROWS = 5
"""A distance needs at least this many source rows."""

Logits = NDArray[np.floating]


def validation_scores(heads: FitHeads, problem: Problem) -> ValidationScores:
    """Return scores of each member's validation rows by every head, (rows, heads + 1).

    The last column is the distance to the source rows that the member trained on: small new classes far from
    source show there first. Without it, (rows, heads): rows that are not vectors, and fewer than five rows to
    train a member on.
    """
    folds, target_folds = problem.split.folds, problem.split.target_folds
    source = [heads.source.of(fold.validation)["novelty"][m] for m, fold in enumerate(folds)]
    target = [heads.target["novelty"][m, fold.validation] for m, fold in enumerate(target_folds)]
    if problem.X.ndim == 2 and min(len(fold.train) for fold in folds) >= _FEWEST_ROWS:
        trained_on = [_some(problem.X[fold.train]) for fold in folds]
        source, target = (
            [
                np.column_stack([logits, distance_score(known, rows[fold.validation].astype(np.float64))])
                for logits, fold, known in zip(by_member, members, trained_on, strict=True)
            ]
            for by_member, rows, members in ((source, problem.X, folds), (target, problem.target, target_folds))
        )
    return ValidationScores(tuple(source), tuple(target))


def verdict_diagnostics(
    validation: ValidationScores,
    verdict: NoveltyVerdict,
    problem: Problem,
    *,
    member_scores: Logits,
    called_novel: NDArray[np.bool_],
    recall: float,
    candidate_recall: float,
    fpr: float,
) -> list[Diagnostic]:
    """Return all diagnostics of a verdict; ``member_scores`` and ``called_novel`` are of the target rows."""
    found = [*score_diagnostics(validation, verdict, fpr=fpr), constraint_kept(recall, candidate_recall)]
    if len(member_scores) > 1:
        found.append(agreement_of_members(member_scores, max(verdict.fraction.value, 0.01)))
    if problem.X.ndim == 2:
        known = problem.target[~called_novel]
        found.append(support_of_known(_some(problem.X), _some(known)))
    return found


def _some(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return all rows or, if they are many, evenly spaced ones."""
    if len(rows) > _MOST_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(np.intp)]
    return rows.astype(np.float64)
