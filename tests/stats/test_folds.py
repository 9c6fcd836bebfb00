from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.folds import keep_one_of_each, make_folds, spread_positions, window

groups_of_rows = st.lists(st.integers(0, 4), min_size=1, max_size=80)


@given(groups_of_rows, st.integers(1, 6), st.floats(0.05, 0.6), st.integers(0, 99))
def test_folds_partition_the_rows_and_leave_every_group_something_to_train_on(rows, members, share, seed):
    groups = np.unique(rows, return_inverse=True)[1]
    for fold in make_folds(groups, members=members, share=share, random=np.random.default_rng(seed)):
        assert sorted([*fold.train, *fold.validation]) == list(range(len(groups)))
        assert set(groups[fold.train]) == set(groups)


def test_members_times_a_share_of_one_validate_every_row_once():
    groups = np.arange(100) % 3
    folds = make_folds(groups, members=5, share=0.2, random=np.random.default_rng(0))
    assert sorted(np.concatenate([fold.validation for fold in folds])) == list(range(100))


def test_folds_are_stratified():
    groups = np.repeat([0, 1, 2], [100, 300, 50])
    (fold,) = make_folds(groups, members=1, share=0.2, random=np.random.default_rng(1))
    assert np.abs(np.bincount(groups[fold.validation]) - [20, 60, 10]).max() <= 1


def test_a_share_of_zero_has_no_validation_rows():
    (fold,) = make_folds(np.zeros(7, int), members=1, share=0.0, random=np.random.default_rng(0))
    assert len(fold.validation) == 0


def test_every_window_holds_its_share_of_every_group():
    groups = np.repeat([0, 1], [40, 200])
    positions = spread_positions(groups, np.random.default_rng(2))
    assert ((positions >= 0) & (positions < 1)).all()
    for start in (0.0, 0.35, 0.9):  # the last one wraps from 1 to 0
        counts = np.bincount(groups[window(positions, start, 0.25)], minlength=2)
        assert np.abs(counts - [10, 50]).max() <= 1


def test_a_group_of_validation_rows_only_goes_back_to_training():
    groups = np.array([0, 0, 1, 2, 2])
    validation = np.array([True, False, True, True, True])
    assert keep_one_of_each(validation, groups).tolist() == [True, False, False, False, False]
    assert keep_one_of_each(np.zeros(0, bool), np.zeros(0, np.intp)).tolist() == []
