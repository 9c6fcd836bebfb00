from __future__ import annotations

import numpy as np

from align_problems import make_classes, random_offsets
from openset.align import ClusterOffsets, find_move


def test_offsets_of_parts_are_undone_to_within_noise():
    X, _ = make_classes(600)
    rows, kinds = make_classes(500, seed=2)
    moved = rows + random_offsets(size=1.0)[kinds]
    found = ClusterOffsets().fit(X, moved).transform_target(moved)
    left = np.stack([(found - rows)[kinds == c].mean(axis=0) for c in range(3)])
    assert np.abs(random_offsets(size=1.0)).max() > 1.5 and np.abs(left).max() < 0.5
    assert not find_move(X, found).is_moved


def test_a_cluster_of_target_alone_stays_apart():
    X, _ = make_classes(600)
    rows = make_classes(500, seed=2)[0] + 3
    new = 8 * np.eye(12)[7] + np.random.default_rng(3).normal(size=(60, 12)) + 3
    found = ClusterOffsets().fit(X, np.concatenate([rows, new])).transform_target(new)
    to_source = np.linalg.norm(found[:, None] - X, axis=2).min(axis=1)
    assert to_source.min() > 5
    assert np.abs((found - new).mean(axis=0) + 3).max() < 1.5, "it moves about as its neighbours do"


def test_without_a_shared_cluster_all_rows_move_by_the_overall_offset():
    rng = np.random.default_rng(0)
    X, X_target = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)) + 9
    found = ClusterOffsets().fit(X, X_target)
    np.testing.assert_allclose(found.offsets, [X.mean(axis=0) - X_target.mean(axis=0)])
    np.testing.assert_allclose(found.transform_target(X_target), X_target + found.offsets)


def test_equal_rows_do_not_fail():
    found = ClusterOffsets().fit(np.zeros((30, 2)), np.ones((30, 2)))
    np.testing.assert_allclose(found.transform_target(np.ones((2, 2))), 0, atol=1e-12)


def test_the_seed_decides():
    X, _ = make_classes(300)
    X_target = make_classes(300, seed=1)[0] + 2
    first, again = (ClusterOffsets(seed=4).fit(X, X_target).transform_target(X_target) for _ in range(2))
    np.testing.assert_array_equal(first, again)
