from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align_problems import make_classes, random_offsets
from openset.align import ClassOffsets


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(0, 50))
def test_offsets_of_classes_are_undone_to_within_noise(n_classes, seed):
    """Each class moves on its own, and becomes more or less common."""
    X, y = make_classes(150 * n_classes, n_classes=n_classes)
    shares = np.random.default_rng(seed).dirichlet(np.full(n_classes, 4))
    rows, kinds = make_classes(600, n_classes=n_classes, shares=shares, seed=seed)
    moved = rows + random_offsets(n_classes, size=1.0, seed=seed)[kinds]
    found = ClassOffsets().fit(X, moved, y).transform_target(moved)
    for c in range(n_classes):
        n = min((kinds == c).sum(), 150)
        if n >= 50:  # six standard errors of a mean
            assert np.abs((found - rows)[kinds == c].mean(axis=0)).max() < 6 / np.sqrt(n)


def test_later_rows_move_as_those_of_the_fit():
    X, y = make_classes(600)
    offsets = random_offsets(size=1.5)
    rows, kinds = make_classes(500, seed=2)
    later, later_kinds = make_classes(300, seed=3)
    fitted = ClassOffsets().fit(X, rows + offsets[kinds], y)
    left = fitted.transform_target(later + offsets[later_kinds]) - later
    assert np.sqrt((left**2).mean()) < 0.3 < 1 < np.sqrt((offsets**2).mean())


def test_a_new_class_moves_along_and_stays_apart():
    X, y = make_classes(600)
    rows = make_classes(500, seed=2)[0] + 3
    new = 8 * np.eye(12)[7] + np.random.default_rng(3).normal(size=(60, 12)) + 3
    found = ClassOffsets().fit(X, np.concatenate([rows, new]), y).transform_target(new)
    assert np.linalg.norm(found[:, None] - X, axis=2).min(axis=1).min() > 4


def test_rows_of_a_new_class_do_not_pull_the_centre_of_a_known_one():
    X, y = make_classes(400, n_classes=2)
    rows = make_classes(400, n_classes=2, seed=2)[0]
    new = np.full((40, 12), 3.0) + np.random.default_rng(3).normal(size=(40, 12))
    target = np.concatenate([rows, new])
    trimmed, plain = (ClassOffsets(kept=kept).fit(X, target, y) for kept in (0.8, 1.0))
    assert np.abs(trimmed.offsets).max() < 0.35 < np.abs(plain.offsets).max()


def test_with_one_class_all_rows_move_by_one_offset():
    rng = np.random.default_rng(0)
    X, X_target = rng.normal(size=(300, 4)), rng.normal(size=(200, 4)) + np.array([5, 0, -5, 1])
    fitted = ClassOffsets(kept=1.0).fit(X, X_target, np.zeros(300, int))
    np.testing.assert_allclose(fitted.offsets, [X.mean(axis=0) - X_target.mean(axis=0)])
    np.testing.assert_allclose(fitted.transform_target(X_target), X_target + fitted.offsets)


def test_a_class_with_few_predicted_rows_takes_the_overall_offset():
    X, y = make_classes(600)
    target = make_classes(300, shares=[0.5, 0.5, 0], seed=1)[0] + 0.5
    fitted = ClassOffsets().fit(X, target, y)
    np.testing.assert_allclose(fitted.offsets[2], X.mean(axis=0) - target.mean(axis=0))
    assert np.abs(fitted.offsets[:2] + 0.5).max() < 0.4


def test_every_row_gets_the_offset_of_the_class_that_it_counts_for():
    """The gate that is returned is the one by which the offsets were computed."""
    X, y = make_classes(300)
    target = make_classes(300, seed=1)[0] + 2
    fitted = ClassOffsets(kept=1.0).fit(X, target, y)
    chosen = fitted.gate(target).argmax(axis=1)
    for c in range(3):
        expected = X[y == c].mean(axis=0) - target[chosen == c].mean(axis=0)
        np.testing.assert_allclose(fitted.offsets[c], expected)


def test_labels_of_any_type_and_none():
    X, y = make_classes(200)
    target = make_classes(200, seed=1)[0]
    numbers = ClassOffsets().fit(X, target, y)
    names = ClassOffsets().fit(X, target, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(numbers.offsets, names.offsets)
    with pytest.raises(ValueError, match="needs y"):
        ClassOffsets().fit(X, target)
