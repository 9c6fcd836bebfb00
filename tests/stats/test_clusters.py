from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from openset.stats.clusters import two_means


def within(x, upper):
    return sum(((part - part.mean()) ** 2).sum() for part in (x[upper], x[~upper]) if len(part))


@given(st.lists(st.sampled_from(np.linspace(0, 1, 13).tolist()), min_size=2, max_size=9))
def test_no_other_split_into_two_groups_is_better(values):
    x = np.array(values)
    found = two_means(x)
    upper = x > found.split
    groups = [np.array([i >> j & 1 for j in range(len(x))], bool) for i in range(2 ** len(x))]
    assert within(x, upper) == pytest.approx(min(within(x, g) for g in groups), abs=1e-12)
    if upper.any():
        assert found.high == pytest.approx(x[upper].mean()) and found.low == pytest.approx(x[~upper].mean())
    assert upper.any() == (len(set(values)) > 1)


def test_it_is_what_kmeans_finds():
    x = np.random.default_rng(0).beta([[0.5], [4]], [[4], [2]], (2, 200)).ravel()
    fitted = KMeans(2, n_init=10, random_state=0).fit(x[:, None])
    found = two_means(x)
    np.testing.assert_allclose([found.low, found.high], np.sort(fitted.cluster_centers_.ravel()), atol=1e-6)
    assert found.split == pytest.approx(fitted.cluster_centers_.mean())


@given(st.floats(-1e300, 1e300), st.integers(1, 20))
def test_equal_numbers_are_one_group(value, n):
    found = two_means(np.full(n, value))
    assert found.low == found.high == found.split == value


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf, 0.0]])
def test_nothing_and_infinities_are_refused(values):
    with pytest.raises(ValueError, match="finite"):
        two_means(values)
