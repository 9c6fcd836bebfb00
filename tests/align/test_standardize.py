from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openset.align import Standardize


@given(st.integers(0, 99), st.integers(1, 6), st.floats(0.01, 100))
def test_columns_get_the_moments_of_source(seed, columns, size):
    rng = np.random.default_rng(seed)
    X, X_target = rng.normal(2, 3, size=(40, columns)), rng.normal(-1, size, size=(30, columns))
    moved = Standardize().fit(X, X_target).transform_target(X_target)
    np.testing.assert_allclose(moved.mean(axis=0), X.mean(axis=0), atol=1e-8)
    np.testing.assert_allclose(moved.std(axis=0), X.std(axis=0), rtol=1e-8)


def test_a_constant_column_is_only_shifted():
    X = np.random.default_rng(0).normal(size=(40, 2))
    X_target = np.column_stack([X[:, 0], np.full(40, 7.0)])
    fitted = Standardize().fit(X, X_target)
    assert fitted.factor[1] == 1
    np.testing.assert_allclose(fitted.transform_target(X_target)[:, 1], X[:, 1].mean())
    np.testing.assert_allclose(fitted.transform_target(X_target)[:, 0], X[:, 0])
