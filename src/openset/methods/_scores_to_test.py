"""The scores that CoLOR's test of a new class looks at: each row's by what did not learn from its fold.

The score of a row comes from a head and from distances, smoothed over target rows around it. For the test, the
head of a row in fold k is that of member k, which did not train on the fold, and the target rows around it are
those of other folds, scored by the same member. Source and target rows of the fold are then scored by one
function that was fixed without them, so their order can be tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openset.methods._heads import FitHeads
from openset.methods._voices import FittedVoices
from openset.problem import Floats, Rows, Split
from openset.stats.tail_ranks import fit_tail_rank


@dataclass(frozen=True, eq=False)
class ScoresToTest:
    """Scores of source and of target rows for the test, and whether heads are heard in them.

    ``growth`` is how many times as common known kinds became, as far as it was looked for.
    """

    source: Floats
    target: Floats
    by_heads: bool
    growth: float | None = None


@dataclass(frozen=True, eq=False)
class Near:
    """The nearest target rows of rows of the fit, as indices into those that voices smooth over.

    ``source`` is of the validation rows of all folds, one fold after the other, ``target`` of all target rows.
    """

    source: Rows
    target: Rows
    smoothed_over: Rows
    """The target rows that voices smooth over."""


def scores_to_test(fitted: FittedVoices, heads: FitHeads, head: int, split: Split, near: Near) -> ScoresToTest:
    """Return the scores to test: of the chosen head and distances, or of distances where heads prove nothing."""
    trust, seen = fitted.voices.trust, near.smoothed_over
    by_heads = trust.heads_prove
    weights = (trust.heads, trust.distances) if by_heads else (0.0, 1.0)
    starts = np.cumsum([0, *(len(fold.validation) for fold in split.folds)])
    source, target = [], []
    for member, (fold, target_fold) in enumerate(zip(split.folds, split.target_folds, strict=True)):
        rows, target_rows = fold.validation, target_fold.validation
        places = near.source[starts[member] : starts[member + 1]], near.target[target_rows]
        is_other = ~np.isin(seen, target_rows)
        of_head = heads.target["novelty"][member, :, head].astype(np.float64)
        of_source = heads.source.of(rows)["novelty"][member, :, head].astype(np.float64)
        distance, distances = fitted.tested
        total = [np.zeros(len(rows)), np.zeros(len(target_rows))]
        for weight, own, others in zip(weights, (of_source, distance[rows]), (of_head, distances), strict=True):
            if weight > 0:
                smooth = _Smooth(others[seen], is_other, near.target[seen])
                total[0] += weight * smooth.apply(own, places[0])
                total[1] += weight * smooth.apply(others[target_rows], places[1])
        source.append(total[0])
        target.append(total[1])
    return ScoresToTest(np.concatenate(source), np.concatenate(target), by_heads, fitted.growth)


class _Smooth:
    """Ranks of scores among target rows of other folds, each with the mean rank of those around it, ranked again.

    ``scores`` and ``nearest`` are of the target rows that are smoothed over; ``is_other``: of other folds.
    """

    def __init__(self, scores: Floats, is_other: NDArray[np.bool_], nearest: Rows) -> None:
        self._rank, self._is_other = fit_tail_rank(scores[is_other]), is_other
        self._around = self._rank.apply(scores)
        self._last = fit_tail_rank(self._with_neighbours(scores, nearest)[is_other])

    def apply(self, scores: Floats, nearest: Rows) -> Floats:
        """Return the smoothed ranks of rows with these scores and neighbours."""
        return self._last.apply(self._with_neighbours(scores, nearest))

    def _with_neighbours(self, scores: Floats, nearest: Rows) -> Floats:
        counted = self._is_other[nearest]
        around = (self._around[nearest] * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
        return np.asarray(self._rank.apply(scores) + around)
