from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.folds import make_folds

groups_of_rows = st.lists(st.integers(0, 4), min_size=1, max_size=80)


@given(groups_of_rows, st.integers(1, 6), st.floats(0.05, 0.6), st.integers(0, 99))
def test_folds_partition_the_rows_and_leave_every_group_something_to_train_on(rows, members, fraction, seed):
    groups = np.unique(rows, return_inverse=True)[1]
    for fold in make_folds(groups, members=members, fraction=fraction, random=np.random.default_rng(seed)):
        assert sorted([*fold.train, *fold.held]) == list(range(len(groups)))
        assert set(groups[fold.train]) == set(groups)


def test_members_times_fraction_of_one_holds_out_every_row_once():
    groups = np.arange(100) % 3
    folds = make_folds(groups, members=5, fraction=0.2, random=np.random.default_rng(0))
    assert sorted(np.concatenate([fold.held for fold in folds])) == list(range(100))


def test_folds_are_stratified():
    groups = np.repeat([0, 1, 2], [100, 300, 50])
    (fold,) = make_folds(groups, members=1, fraction=0.2, random=np.random.default_rng(1))
    assert np.abs(np.bincount(groups[fold.held]) - [20, 60, 10]).max() <= 1


def test_no_fraction_holds_nothing_out():
    (fold,) = make_folds(np.zeros(7, int), members=1, fraction=0.0, random=np.random.default_rng(0))
    assert len(fold.held) == 0
