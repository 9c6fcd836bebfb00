from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from align_problems import make_classes, random_offsets
from openset.align import find_move
from openset.align.moved import overlap_limit, source_shares
from openset.shift import make_background_shift, make_subtype_shift

NEW = 8 * np.eye(12)[9]


def test_rows_drawn_alike_overlap_by_half():
    move = find_move(make_classes(700)[0], make_classes(800, seed=1)[0])
    assert 0.44 < move.overlap < 0.56 and not move.is_moved and move.n_rows == 700


@pytest.mark.parametrize("seed", range(4))
def test_kinds_that_became_nine_times_as_common_are_no_move(seed):
    X, _ = make_classes(1500, n_classes=2, shares=[0.1, 0.9], seed=seed)
    X_target, _ = make_classes(1500, n_classes=2, shares=[0.9, 0.1], seed=seed + 50)
    move = find_move(X, X_target, seed=seed)
    assert 0.06 < move.overlap < 0.13 and not move.is_moved


@pytest.mark.parametrize("share", [0.05, 0.3, 0.45])
def test_a_new_class_is_no_move(share):
    X, _ = make_classes(800)
    rows, _ = make_classes(800, seed=1)
    is_new = np.random.default_rng(2).random(800) < share
    rows[is_new] = NEW + np.random.default_rng(3).normal(size=(is_new.sum(), 12))
    assert not find_move(X, rows).is_moved


@pytest.mark.parametrize("make", [make_background_shift, make_subtype_shift])
def test_the_librarys_shifts_are_no_move(make):
    data = make(n_source=1000, n_target=1000, random_state=0)
    assert not find_move(data.X, data.X_target).is_moved


@pytest.mark.parametrize("n", [65, 150, 600])
def test_a_moved_batch_is_found_whatever_its_size(n):
    assert find_move(make_classes(n)[0], make_classes(n, seed=1)[0] + 9).is_moved


@pytest.mark.parametrize("n", [100, 600])
def test_a_batch_whose_classes_moved_apart_is_found(n):
    X, _ = make_classes(n)
    rows, kinds = make_classes(n, seed=1)
    assert find_move(X, rows + random_offsets(size=4.0)[kinds]).is_moved


@given(st.integers(2, 40), st.integers(0, 30))
def test_small_unmoved_batches_are_not_called_moved(n, seed):
    rng = np.random.default_rng(seed)
    move = find_move(rng.normal(size=(n, 3)), rng.normal(size=(n + 5, 3)))
    assert not move.is_moved and 0 <= move.overlap <= 1 and move.n_rows == n


def test_fewer_than_65_rows_are_never_called_moved():
    rows = np.random.default_rng(0).normal(size=(65, 3))
    assert not find_move(rows[:64], rows + 99).is_moved
    assert find_move(rows, rows + 99).is_moved


@pytest.mark.parametrize("n", [100, 300])
def test_small_draws_of_a_shift_by_nine_are_seldom_called_moved(n):
    found = []
    for seed in range(20):
        data = make_background_shift(n_source=n, n_target=n, n_test=2, random_state=seed)
        found.append(find_move(data.X, data.X_target).is_moved)
    assert sum(found) <= 2


def test_the_limit_is_that_of_a_poisson_count():
    """Source rows around half of the target rows, where target is 12 times as dense: 1 draw in 20 is below it."""
    for n in (200, 600, 1500):
        counts = np.random.default_rng(0).poisson(n / 24, size=200_000)
        assert 0.02 < (counts / (n / 24) / 13 < overlap_limit(n)).mean() < 0.07
    assert overlap_limit(64) == 0 < overlap_limit(65) < overlap_limit(1500) < 1 / 13


def test_the_seed_decides_which_rows_are_compared():
    X, _ = make_classes(1800)
    rows = make_classes(1700, seed=1)[0] + 0.8
    assert find_move(X, rows).n_rows == 1500
    assert find_move(X, rows, seed=3) == find_move(X, rows, seed=3)


def test_shares_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(90, 3)), rng.normal(size=(90, 3)) + 0.7
    both, is_source = np.concatenate([source, target]), np.arange(180) < 90
    for i, share in enumerate(source_shares(source, target)):
        distances = np.linalg.norm(both - target[i], axis=1)
        distances[90 + i] = np.inf
        assert share == pytest.approx(is_source[np.argsort(distances)[:22]].mean())


def test_equal_rows_do_not_fail():
    assert not find_move(np.zeros((80, 2)), np.zeros((80, 2))).is_moved
    assert find_move(np.zeros((80, 2)), np.ones((80, 2))).is_moved
