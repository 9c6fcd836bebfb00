from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.group_matching import SAME, like_labelled, match_groups, mixed_share

RANDOM = np.random.default_rng(0)


def blob(size, centre=0.0, dimensions=6):
    return RANDOM.normal(size=(size, dimensions)) + centre


def test_parts_of_one_group_mix_and_groups_apart_do_not():
    assert mixed_share(blob(60), blob(30)) == pytest.approx(1, abs=0.25)
    assert mixed_share(blob(60), blob(30, 5.0)) == 0.0


def test_groups_are_told_apart_in_many_dimensions():
    """Where rows are far from each other and centres differ by less than the spread of rows."""
    first, second = blob(120, dimensions=384), blob(120, dimensions=384) + np.eye(384)[0] * 12
    assert mixed_share(first[:60], first[60:]) > SAME > mixed_share(first[:60], second[:60])


@given(st.integers(1, 40), st.integers(1, 40))
def test_the_share_is_the_same_both_ways(n, m):
    random = np.random.default_rng([n, m])
    one, other = random.normal(size=(n, 3)), random.normal(size=(m, 3))
    assert mixed_share(one, other) == pytest.approx(mixed_share(other, one))
    assert mixed_share(one, other) >= 0


def test_every_group_gets_its_own_earlier_one():
    a, b, c = blob(80, 0.0), blob(80, 8.0), blob(40, -8.0)
    assert match_groups([b[40:], c, a[40:]], [a[:40], b[:40]]) == [1, None, 0]


def test_an_earlier_group_is_taken_once_by_the_one_that_mixes_most():
    a = blob(90)
    matched = match_groups([a[30:60], a[60:]], [a[:30]])
    assert sorted(matched, key=str) == [0, None]


def test_nothing_to_match():
    assert match_groups([], [blob(20)]) == [] and match_groups([blob(20)], []) == [None]
    assert mixed_share(blob(0), blob(5)) == 0.0


def test_rows_get_the_label_of_rows_like_them():
    known, new = blob(60), blob(60, 6.0)
    labelled, labels = np.concatenate([known[:30], new[:30]]), np.repeat([0, 1], 30)
    fresh = np.concatenate([known[30:], new[30:], blob(20, -40.0)])
    found = like_labelled(fresh, labelled, labels)
    assert (found[:30] == 0).mean() > 0.6 and (found[30:60] == 1).mean() > 0.6
    assert (found[60:] == -1).all() and not (found[:30] == 1).any()


def test_without_labels_no_row_has_one():
    assert like_labelled(blob(3), np.empty((0, 6)), np.empty(0, np.intp)).tolist() == [-1, -1, -1]
    assert like_labelled(blob(3), blob(1), np.array([0])).tolist() == [-1, -1, -1]
