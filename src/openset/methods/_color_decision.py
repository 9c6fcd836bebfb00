"""CoLOR's decision: scores of validation rows by all heads and by distance, and diagnostics of the verdict."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from openset.align.auto import Chosen
from openset.methods._heads import FitHeads
from openset.methods._voices import COHERENT, Trust
from openset.problem import Problem
from openset.stats.diagnostics import Diagnostic, score_diagnostics, support_of_known
from openset.stats.neighbours import distance_score, evenly_spaced
from openset.stats.novelty import NoveltyVerdict
from openset.stats.validation_scores import ValidationScores

MOST_NOVEL = 0.5
"""A larger share is no new class but a batch that moved."""
_MOST_ROWS = 2000
"""Distances are computed to at most this many source rows."""

_FEWEST_ROWS = 5
"""A distance needs at least this many source rows."""


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
    called_novel: NDArray[np.bool_],
    fpr: float,
) -> list[Diagnostic]:
    """Return the diagnostics of a verdict that need no heads; ``called_novel`` is of the target rows."""
    found = score_diagnostics(validation, verdict, fpr=fpr)
    if problem.X.ndim == 2:
        known = problem.target[~called_novel]
        found.append(support_of_known(_some(problem.X), _some(known)))
    return found


def voice_diagnostics(alignment: Chosen, trust: Trust, proved_by_heads: bool) -> list[Diagnostic]:
    """Return whether the batch moved as a whole, and whether the score follows heads or distances."""
    before, after, limit = alignment.before, alignment.after, alignment.before.limit
    left = before if after is None else after
    words = (
        f"Among the rows around half of the target rows, at most {100 * before.overlap:.0f} % are source rows; "
        f"below {100 * limit:.0f} % the whole batch moved."
    )
    if before.is_moved:
        undone = "Aligning it did not undo this" if left.is_moved else "It was aligned with source"
        words += f" {undone}: shares and tests that assume an unmoved batch cannot tell. Look at the rows."
    moved = Diagnostic("batch that moved", before.overlap, limit, not before.is_moved, words)
    lead = "distances to source" if trust.distances_lead else "the novelty heads"
    test = "the heads" if proved_by_heads else "distances, because a group far from source contradicts the heads"
    words = (
        f"The score follows {lead}: the rows far from source form a group by {trust.coherence:.2f} (distances "
        f"lead from {COHERENT[1]:g} on), and {100 * trust.agreement:.0f} % of the highest rows of both agree. "
        f"The test is by {test}."
    )
    return [moved, Diagnostic("voices", trust.coherence, None, True, words)]


def _some(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return all rows or, if they are many, evenly spaced ones."""
    return rows[evenly_spaced(len(rows), _MOST_ROWS)].astype(np.float64)
