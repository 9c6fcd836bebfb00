from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from openset.stats import groups
from openset.stats.groups import discover_groups, two_means


def blobs(sizes, dimensions=5, distance=9.0, seed=0):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(len(sizes), dimensions))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    kind = np.repeat(np.arange(len(sizes)), sizes)
    return centres[kind] + random.normal(size=(len(kind), dimensions)), kind


@pytest.mark.parametrize("dimensions", [5, 64])
def test_groups_are_the_blobs(dimensions):
    rows, kind = blobs([80, 50, 120], dimensions)
    found = discover_groups(rows, np.ones(250), n_target=2500)
    assert len(found) == 3 and all(group.stability >= groups.STABLE for group in found.groups)
    for label, true in enumerate([2, 0, 1]):  # largest first
        members = found.labels == label
        group = found.groups[label]
        assert (kind[members] == true).all() and members.sum() == group.size >= 0.8 * (kind == true).sum()
        assert group.share.value == group.size / 2500 and group.share.low < group.share.value < group.share.high
        assert found.labels[group.medoid] == label and group.examples[0] == group.medoid
        assert len(group.examples) == 5 and set(found.labels[list(group.examples)]) == {label}


@pytest.mark.parametrize("seed", range(4))
def test_one_class_is_not_split(seed):
    rows, _ = blobs([150], seed=seed)
    found = discover_groups(rows, np.ones(150), n_target=1000)
    assert len(found) == 1 and not found.labels.any() and found.groups[0].size == 150


def test_few_rows_are_one_group_and_no_rows_are_none():
    rows, _ = blobs([6, 6])
    assert len(discover_groups(rows, np.ones(12), n_target=100)) == 1
    assert len(discover_groups(rows[:1], [1.0], n_target=100)) == 1
    assert len(discover_groups(rows[:0], [], n_target=100)) == 0


def test_of_many_rows_the_highest_are_clustered_and_the_rest_joins(monkeypatch):
    monkeypatch.setattr(groups, "_MOST_ROWS", 120)
    rows, kind = blobs([150, 100])
    scores = np.random.default_rng(1).random(250)
    found = discover_groups(rows, scores, n_target=1000)
    assert len(found) == 2 and (found.labels >= 0).mean() > 0.9
    assert np.mean(found.labels[found.labels >= 0] == kind[found.labels >= 0]) == 1


def test_the_seed_decides():
    rows, _ = blobs([60, 60], distance=4.0)
    first, again = (discover_groups(rows, np.ones(120), n_target=500, seed=3) for _ in range(2))
    assert first.groups == again.groups and np.array_equal(first.labels, again.labels)


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match="a score for every row"):
        discover_groups(np.zeros((3, 2)), [1.0], n_target=10)
    with pytest.raises(ValueError, match="no more rows than the target"):
        discover_groups(np.zeros((3, 2)), np.ones(3), n_target=2)


def test_rows_that_are_all_alike_are_one_group():
    alike = np.ones((40, 60))
    assert len(discover_groups(alike, np.arange(40.0), n_target=100).groups) == 1


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
