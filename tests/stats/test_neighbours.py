from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from openset.stats import neighbours
from openset.stats.neighbours import nearest_rows, share_outside


def by_all_pairs(rows, queries, k):
    distances = cdist(queries, rows)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), order


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 9), st.booleans())
def test_it_is_the_search_over_all_pairs_ties_included(seed, n, d, grid):
    random = np.random.default_rng(seed)
    draw = (
        (lambda m: random.integers(0, 2, (m, d)).astype(float))
        if grid
        else (lambda m: random.normal(size=(m, d)))
    )
    rows, queries, k = draw(n), draw(12), int(random.integers(1, n + 1))
    distances, indices = nearest_rows(rows, queries, k)
    expected, order = by_all_pairs(rows, queries, k)
    np.testing.assert_allclose(distances, expected, rtol=1e-12, atol=0)
    np.testing.assert_array_equal(indices, order)


@pytest.mark.parametrize("cells", [1, 50, 2**22])
def test_blocks_and_company_change_no_bit(cells, monkeypatch):
    random = np.random.default_rng(0)
    rows, queries = random.normal(size=(100, 33)), random.normal(size=(40, 33))
    whole = nearest_rows(rows, queries, 5)
    monkeypatch.setattr(neighbours, "_CELLS", cells)
    order = random.permutation(40)
    for found, expected in zip(nearest_rows(rows, queries[order], 5), whole, strict=True):
        np.testing.assert_array_equal(found, expected[order])
    alone = [nearest_rows(rows, q[None], 5) for q in queries]
    np.testing.assert_array_equal(np.vstack([a[0] for a in alone]), whole[0])


def test_small_distances_far_from_the_origin_survive():
    # |q|² is 1e16 here: by |q|² − 2q·r + |r|² all of these distances are noise
    rows = 1e8 + np.array([[0.0], [1e-3], [3e-3], [1.0]])
    distances, indices = nearest_rows(rows, rows[:1].copy(), 3)
    np.testing.assert_allclose(distances, [[0, 1e-3, 3e-3]], rtol=1e-4)
    assert indices.tolist() == [[0, 1, 2]]


def test_all_rows_alike_take_the_first():
    distances, indices = nearest_rows(np.ones((500, 3)), np.zeros((2, 3)), 2)
    np.testing.assert_allclose(distances, np.sqrt(3))
    assert indices.tolist() == [[0, 1], [0, 1]]


def test_no_queries_give_no_rows():
    distances, indices = nearest_rows(np.ones((5, 3)), np.empty((0, 3)), 2)
    assert distances.shape == indices.shape == (0, 2)


def test_the_share_outside_is_what_the_level_leaves_without_shift_and_all_beyond_it():
    random = np.random.default_rng(5)
    source = random.normal(size=(2000, 2))
    assert share_outside(source, random.normal(size=(2000, 2)), level=0.95) == pytest.approx(0.05, abs=0.02)
    assert share_outside(source, random.normal(size=(100, 2)) + 30) == 1


def test_the_share_outside_leaves_out_the_row_itself():
    rows = np.arange(10.0)[:, None] ** 2
    own = np.sort(cdist(rows, rows), axis=1)[:, 2]  # the second nearest besides itself
    target = np.array([[0.5], [90.0], [300.0]])
    away = np.sort(cdist(target, rows), axis=1)[:, 1]
    expected = (away > np.quantile(own, 0.8)).mean()
    assert share_outside(rows, target, n_neighbours=2, level=0.8) == pytest.approx(expected)


def in_double(rows, queries, k):
    """The k smallest distances, from differences: no products of large numbers."""
    return np.sort(np.sqrt(((queries[:, None] - rows[None]) ** 2).sum(axis=2)), axis=1)[:, :k]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-30, 1e-22, 1e-20, 1e-3, 1.0, 1e3, 1e11, 1e13, 1e100]),
    st.sampled_from([0.0, 1e3, 1e6, 1e9, -1e12, 1e14]),
)
def test_candidates_in_single_precision_change_nothing(seed, scale, offset):
    """Rows far from 0, huge and tiny ones, copies and ties: the result is that of all differences."""
    random = np.random.default_rng(seed)
    n, d = int(random.integers(1, 60)), int(random.integers(1, 6))
    rows = (
        scale * random.choice([random.normal(size=(n, d)), random.integers(0, 3, (n, d))][seed % 2], n) + offset
    )
    queries = np.concatenate([rows[:5], scale * random.normal(size=(5, d)) + offset])
    k = int(random.integers(1, n + 1))
    distances, indices = nearest_rows(rows, queries, k)
    np.testing.assert_allclose(distances, in_double(rows, queries, k), rtol=1e-12, atol=0)
    assert_are_those_rows(rows, queries, distances, indices)


def assert_are_those_rows(rows, queries, distances, indices):
    """Each distance is that of its row, no row comes twice, and of copies of a row the first come first."""
    own = np.sqrt(((queries[:, None] - rows[indices]) ** 2).sum(axis=2))
    np.testing.assert_allclose(own, distances, rtol=1e-12, atol=0)
    assert all(len(set(row)) == len(row) for row in indices.tolist())
    are_copies = (rows[indices[:, 1:]] == rows[indices[:, :-1]]).all(axis=2)
    assert (np.diff(indices, axis=1)[are_copies] > 0).all()


def test_copies_beyond_the_stride_are_all_candidates():
    """The k-th of every fourth row bounds the search: copies between them must not be lost."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(400, 3))
    rows[1::4] = rows[1]  # a hundred copies, none of them among every fourth row
    distances, indices = nearest_rows(rows, rows[1:2].copy(), 100)
    assert (distances == 0).all() and indices[0].tolist() == list(range(1, 400, 4))


def test_one_huge_row_does_not_spoil_the_others():
    random = np.random.default_rng(1)
    rows, queries = random.normal(size=(200, 4)), random.normal(size=(20, 4))
    for huge in (1e11, 1e30):
        rows[7] = huge
        found, expected = nearest_rows(rows, queries, 5), by_all_pairs(rows, queries, 5)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_all_rows_may_be_asked_for(n):
    random = np.random.default_rng(n)
    rows, queries = random.normal(size=(n, 3)), random.normal(size=(6, 3))
    distances, indices = nearest_rows(rows, queries, n)
    expected, order = by_all_pairs(rows, queries, n)
    np.testing.assert_allclose(distances, expected, rtol=1e-12)
    np.testing.assert_array_equal(indices, order)
    assert (np.sort(indices, axis=1) == np.arange(n)).all()
