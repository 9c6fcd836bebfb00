from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.row_sample import draw_sample, row_keys


def test_keys_are_those_of_splitmix64():
    """The generator's first three numbers for the seed 0, as published with it."""
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert row_keys(np.array([1, 2, 3]), 0).tolist() == expected
    assert len(np.unique(row_keys(np.arange(100_000), 5))) == 100_000
    assert row_keys(np.arange(9), 1).tolist() != row_keys(np.arange(9), 2).tolist()


@given(st.integers(1, 30), st.lists(st.integers(0, 80), max_size=4), st.integers(0, 9))
def test_the_sample_does_not_depend_on_how_the_rows_are_cut(size, cuts, seed):
    rows = np.arange(80.0)[:, None] * [1, 10]
    numbers = np.arange(80)
    whole = draw_sample(rows, numbers, size, seed=seed)
    joined, last_key = None, {}
    for part in np.split(numbers, sorted(cuts)):
        sample = draw_sample(rows[part], part, size, seed=seed, **last_key)
        joined = sample if joined is None else joined.joined(sample)
        last_key = {"last_key": joined.last_key}
    np.testing.assert_array_equal(joined.rows, whole.rows)
    np.testing.assert_array_equal(joined.keys, whole.keys)
    assert len(whole.rows) == min(size, 80) and len(np.unique(whole.rows[:, 0])) == len(whole.rows)


def test_later_rows_are_only_taken_below_the_last_key():
    numbers = np.arange(10_000)
    first = draw_sample(numbers[:, None], numbers[:5000], 50)
    later = draw_sample(numbers[5000:, None], numbers[5000:], 50, last_key=first.last_key)
    assert 20 < len(later.rows) <= 50  # as many as remain of the first half, on average
    assert len(draw_sample(numbers[:, None], numbers + 10**9, 50, last_key=first.last_key // 1000).rows) < 5


def test_every_row_is_as_likely_as_any_other():
    drawn = np.zeros(40)
    pairs = np.zeros((40, 40))
    for seed in range(2000):
        index = draw_sample(np.arange(40)[:, None], np.arange(40), 10, seed=seed).rows.ravel()
        drawn[index] += 1
        pairs[np.ix_(index, index)] += 1
    assert np.abs(drawn / 2000 - 0.25).max() < 0.04  # four standard errors
    both = pairs[np.triu_indices(40, 1)] / 2000
    assert np.abs(both - 10 * 9 / (40 * 39)).max() < 0.027  # five standard errors, of 780 pairs


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8])
def test_rows_stay_as_they_are(dtype):
    rows = np.arange(24).reshape(4, 3, 2).astype(dtype)
    sample = draw_sample(rows, np.arange(4), 9)
    assert sample.rows.dtype == dtype and sorted(map(str, sample.rows.tolist())) == sorted(
        map(str, rows.tolist())
    )
    assert not np.shares_memory(sample.rows, rows)  # a batch is not kept for a few of its rows
