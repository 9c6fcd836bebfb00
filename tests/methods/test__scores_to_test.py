from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from openset.methods._heads import FitHeads, RowOutputs
from openset.methods._scores_to_test import Near, scores_to_test
from openset.methods._voices import FittedVoices, weigh
from openset.problem import Split
from openset.stats.folds import Fold
from openset.stats.neighbours import nearest_rows
from openset.stats.tail_ranks import fit_tail_rank

N, M, MEMBERS, HEAD = 60, 40, 2, 1
RANDOM = np.random.default_rng(0)
X, TARGET = RANDOM.normal(size=(N, 2)), RANDOM.normal(size=(M, 2))
FOLDS = [Fold(np.arange(30, 60), np.arange(30)), Fold(np.arange(30), np.arange(30, 60))]
TARGET_FOLDS = [Fold(np.arange(20, 40), np.arange(20)), Fold(np.arange(20), np.arange(20, 40))]
SPLIT = Split(FOLDS, TARGET_FOLDS, FOLDS[0].validation)
NOVELTY, TARGET_NOVELTY = RANDOM.normal(size=(MEMBERS, N, 3)), RANDOM.normal(size=(MEMBERS, M, 3))
HEADS = FitHeads(RowOutputs(np.arange(N), {"novelty": NOVELTY}), {"novelty": TARGET_NOVELTY})
DISTANCES = RANDOM.random(N), RANDOM.random(M)
NEAR = Near(nearest_rows(TARGET, X, 5)[1], nearest_rows(TARGET, TARGET, 5)[1], np.arange(M))


def voices(trust, tested=DISTANCES):
    return FittedVoices(SimpleNamespace(trust=trust), *DISTANCES, tested)


def expected(member, scores, target_scores, rows, nearest):
    """One part of the score, row by row: rank, mean rank of neighbours of other folds, and the rank of both."""
    other = np.setdiff1d(np.arange(M), TARGET_FOLDS[member].validation)
    rank = fit_tail_rank(target_scores[other])

    def smooth(score, around):
        near = [j for j in around if j in other]
        return rank.apply(score) + (np.mean([rank.apply(target_scores[j]) for j in near]) if near else 0)

    last = fit_tail_rank([smooth(target_scores[j], NEAR.target[j]) for j in other])
    return np.array([last.apply(smooth(scores[row], nearest[row])) for row in rows])


@pytest.mark.parametrize("trust", [weigh(0.0, 0.3), weigh(0.9, 0.58), weigh(0.9, 1.0)])
def test_each_row_is_scored_by_a_member_and_neighbours_of_other_folds(trust):
    found = scores_to_test(voices(trust), HEADS, HEAD, SPLIT, NEAR)
    assert found.by_heads and (len(found.source), len(found.target)) == (N, M)
    for member, (fold, target_fold) in enumerate(zip(FOLDS, TARGET_FOLDS, strict=True)):
        head, target_head = NOVELTY[member, :, HEAD], TARGET_NOVELTY[member, :, HEAD]
        for scores, target_scores, given, rows, nearest in (
            (head, DISTANCES[0], found.source, fold.validation, NEAR.source),
            (target_head, DISTANCES[1], found.target, target_fold.validation, NEAR.target),
        ):
            wanted = trust.heads * expected(member, scores, target_head, rows, nearest)
            if trust.distances:
                wanted += trust.distances * expected(member, target_scores, DISTANCES[1], rows, nearest)
            np.testing.assert_allclose(given[rows], wanted, rtol=1e-9)


def test_only_distances_are_heard_where_heads_may_prove_nothing():
    found = scores_to_test(voices(weigh(0.9, 0.0)), HEADS, HEAD, SPLIT, NEAR)
    other = FitHeads(RowOutputs(np.arange(N), {"novelty": -NOVELTY}), {"novelty": -TARGET_NOVELTY})
    again = scores_to_test(voices(weigh(0.9, 0.0)), other, HEAD, SPLIT, NEAR)
    assert not found.by_heads
    np.testing.assert_array_equal(found.source, again.source)
    np.testing.assert_array_equal(found.target, again.target)


def test_the_rows_of_a_fold_do_not_change_the_function_that_scores_it():
    """A target row moves up in its own fold: no other row of the fold is scored differently."""
    higher = TARGET_NOVELTY.copy()
    higher[0, 3, HEAD] += 50
    before = scores_to_test(voices(weigh(0.0, 0.3)), HEADS, HEAD, SPLIT, NEAR)
    after = scores_to_test(voices(weigh(0.0, 0.3)), replace(HEADS, target={"novelty": higher}), HEAD, SPLIT, NEAR)
    np.testing.assert_array_equal(before.source, after.source)
    np.testing.assert_array_equal(np.delete(before.target, 3), np.delete(after.target, 3))
    assert after.target[3] > before.target[3]
