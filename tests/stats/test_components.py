from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from openset.stats.components import draw_rows, find_components

RNG = np.random.default_rng(0)


def test_components_are_the_principal_components_of_both_domains():
    X = RNG.normal(size=(80, 6)) * [9, 7, 5, 1, 1, 1]
    X_target = RNG.normal(size=(80, 6)) * [9, 7, 5, 1, 1, 1] + 2
    found = find_components(X, X_target, 3, seed=0)
    expected = PCA(3, svd_solver="full").fit(np.concatenate([X, X_target]))
    np.testing.assert_allclose(np.abs(found.of(X)), np.abs(expected.transform(X)), atol=1e-6)


@given(st.integers(2, 8), st.integers(2, 8), st.integers(1, 6), st.integers(1, 9))
def test_axes_are_orthonormal_for_any_shape(n, n_target, columns, limit):
    rng = np.random.default_rng(n)
    found = find_components(rng.normal(size=(n, columns)), rng.normal(size=(n_target, columns)), limit, seed=0)
    size = min(limit, columns, 2 * min(n, n_target))
    assert found.axes.shape == (columns, size)
    np.testing.assert_allclose(found.axes.T @ found.axes, np.eye(size), atol=1e-9)


def test_both_domains_count_the_same():
    X, X_target = np.zeros((10, 2)), np.ones((1000, 2))
    np.testing.assert_allclose(find_components(X, X_target, 1, seed=0).centre, [0.5, 0.5])


def test_rows_are_drawn_once_and_in_order():
    rows = np.arange(20.0)[:, None]
    drawn = draw_rows(rows, 8, np.random.default_rng(0)).ravel()
    assert len(set(drawn)) == 8 and (np.diff(drawn) > 0).all()
    assert draw_rows(rows, 20, np.random.default_rng(0)) is rows


def test_many_rows_are_drawn_and_find_nearly_the_same_axes():
    X = RNG.normal(size=(3000, 5)) * [9, 4, 1, 1, 1]
    whole, drawn = (find_components(X, X + 1, 2, seed=0, max_rows=n) for n in (3000, 600))
    cosines = np.abs(np.einsum("ij,ij->j", whole.axes, drawn.axes))
    assert (cosines > 0.99).all() and not np.array_equal(whole.axes, drawn.axes)


def test_a_seed_decides_everything():
    X, X_target = RNG.normal(size=(500, 40)), RNG.normal(size=(300, 40))
    one, same, other = (find_components(X, X_target, 5, seed=seed, max_rows=100) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.axes, same.axes)
    assert not np.array_equal(one.centre, other.centre)
