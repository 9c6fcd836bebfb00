from __future__ import annotations

import numpy as np
import pytest

from openset.align import Coral


def rows_with_covariance(n, columns, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)) @ rng.normal(size=(columns, columns)) + rng.normal(size=columns)


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_target_gets_mean_and_covariance_of_source(columns):
    X, X_target = rows_with_covariance(300, columns, 0), rows_with_covariance(200, columns, 1)
    moved = Coral(ridge=1e-9).fit(X, X_target).transform_target(X_target)
    np.testing.assert_allclose(moved.mean(axis=0), X.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(np.cov(moved.T), np.cov(X.T), rtol=1e-4, atol=1e-4)


def test_with_more_columns_than_rows_nothing_grows_without_limit():
    X, X_target = rows_with_covariance(20, 50, 0), rows_with_covariance(15, 50, 1)
    later = rows_with_covariance(30, 50, 1)
    moved = Coral().fit(X, X_target).transform_target(later)
    assert np.isfinite(moved).all() and np.abs(moved).max() < 20 * np.abs(X).max()


def test_equal_rows_are_shifted():
    X = np.random.default_rng(0).normal(size=(30, 3))
    moved = Coral().fit(X, np.full((9, 3), 2.0)).transform_target(np.full((4, 3), 2.0))
    np.testing.assert_allclose(moved, np.tile(X.mean(axis=0), (4, 1)))
