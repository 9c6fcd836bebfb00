from __future__ import annotations

import numpy as np
import pytest

from align_problems import make_classes
from openset.align.moved_since_fit import find_move_since_fit, most_moved_features

NEW = 8 * np.eye(12)[9]


def rows_of(n=500, *, seed, shares=None):
    return make_classes(n, shares=shares, seed=seed)[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_drawn_like_the_fit_did_not_move(seed):
    move = find_move_since_fit(rows_of(seed=seed), rows_of(seed=seed + 50), rows_of(300, seed=seed + 90))
    assert not move.is_moved and not move.target_had_moved and move.can_tell
    assert 0.4 < move.from_target.overlap < 0.6 and 0.4 < move.from_source.overlap < 0.6


@pytest.mark.parametrize("n", [65, 200, 500])
def test_a_batch_that_moved_is_found(n):
    move = find_move_since_fit(rows_of(seed=0), rows_of(seed=1), rows_of(n, seed=2) + 9)
    assert move.is_moved and move.can_tell and move.from_target.overlap == move.from_source.overlap == 0


def test_another_mix_of_the_sources_kinds_is_no_move():
    """A kind that was rare in the target is common now: source rows are there."""
    target = rows_of(seed=1, shares=[0.005, 0.9, 0.095])
    move = find_move_since_fit(rows_of(seed=0), target, rows_of(seed=2, shares=[0.96, 0.02, 0.02]))
    assert move.from_target.is_moved and not move.from_source.is_moved and not move.is_moved


def test_after_a_target_that_had_moved_the_batch_is_compared_with_the_target():
    source, target = rows_of(seed=0), rows_of(seed=1) + 9
    like_target = find_move_since_fit(source, target, rows_of(seed=2) + 9)
    assert like_target.target_had_moved and like_target.from_source.is_moved and not like_target.is_moved
    like_source = find_move_since_fit(source, target, rows_of(seed=3))
    assert like_source.is_moved and not like_source.from_source.is_moved
    elsewhere = find_move_since_fit(source, target, rows_of(seed=4) - 9)
    assert elsewhere.is_moved and elsewhere.from_source.is_moved


@pytest.mark.parametrize(("share", "is_moved"), [(0.1, False), (0.4, False), (0.7, True)])
def test_a_new_class_is_a_move_only_if_most_rows_are_of_it(share, is_moved):
    rows = rows_of(seed=2)
    is_new = np.random.default_rng(3).random(len(rows)) < share
    rows[is_new] = NEW + np.random.default_rng(4).normal(size=(is_new.sum(), 12))
    assert find_move_since_fit(rows_of(seed=0), rows_of(seed=1), rows).is_moved == is_moved


def test_few_rows_cannot_tell():
    fit = rows_of(100, seed=0), rows_of(100, seed=1)
    assert not find_move_since_fit(*fit, rows_of(64, seed=2) + 9).can_tell
    assert find_move_since_fit(*fit, rows_of(65, seed=2) + 9).can_tell


def test_features_that_moved_are_named_the_farthest_first():
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(200, 5)) * [1, 10, 1, 1, 0], rng.normal(size=(150, 5)) * [1, 10, 1, 1, 0]
    assert most_moved_features(before, after, 5).tolist() == []
    moved = after + np.array([0.5, 8, -2, 3, 0])  # 8 is less than a standard deviation of its feature
    assert most_moved_features(before, moved, 5).tolist() == [3, 2]
    assert most_moved_features(before, moved + 0.1 * np.eye(5)[4], 2).tolist() == [4, 3]  # it never varied
