from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.stats import ranges as module
from openset.stats.ranges import count_outside, features_outside, find_ranges, rows_outside_by_chance

TYPES = [np.float16, np.float32, np.float64, np.int32, np.uint8]


def outside_by_hand(rows, low, high):
    return np.array([sum(not low[j] <= value <= high[j] for value in rows[:, j]) for j in range(rows.shape[1])])


@given(st.sampled_from(TYPES), st.integers(1, 60), st.integers(1, 7), st.integers(1, 40), st.integers(0, 99))
def test_counts_are_those_of_a_plain_loop(dtype, n_rows, n_features, block_values, seed):
    rng = np.random.default_rng(seed)
    scale = 20 if np.issubdtype(dtype, np.integer) else 3
    fit, rows = (
        np.abs(scale * rng.normal(size=(n, n_features))).astype(dtype) * dtype(rng.integers(0, 2))
        if seed % 3
        else (scale * rng.normal(size=(n, n_features))).astype(np.int8).astype(dtype)
        for n in (9, n_rows)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_VALUES", block_values)
        ranges = find_ranges(fit)
        found = count_outside(rows, ranges)
    np.testing.assert_array_equal([ranges.low, ranges.high], [fit.min(axis=0), fit.max(axis=0)])
    np.testing.assert_array_equal(found.counts, outside_by_hand(rows, fit.min(axis=0), fit.max(axis=0)))
    np.testing.assert_array_equal([found.low, found.high], [rows.min(axis=0), rows.max(axis=0)])
    assert found.n_rows == n_rows and ranges.n_rows == 9


@pytest.mark.parametrize("dtype", TYPES[:3])
def test_zero_and_minus_zero_are_one_value(dtype):
    for fit, row in ((0.0, -0.0), (-0.0, 0.0)):
        ranges = find_ranges(np.array([[fit], [fit]], dtype))
        assert count_outside(np.array([[row]], dtype), ranges).counts.tolist() == [0]
        tiny = np.nextafter(dtype(0), dtype(1))
        assert count_outside(np.array([[tiny], [-tiny]], dtype), ranges).counts.tolist() == [2]


@pytest.mark.parametrize("of_fit", TYPES[:3])
@pytest.mark.parametrize("of_batch", TYPES[:3])
def test_the_same_rows_in_another_precision_are_not_outside(of_fit, of_batch):
    rows = np.random.default_rng(0).normal(size=(300, 4)) / 3
    found = count_outside(rows.astype(of_batch), find_ranges(rows.astype(of_fit)))
    assert found.counts.tolist() == [0] * 4
    assert features_outside(found, find_ranges(rows.astype(of_fit))).tolist() == []
    np.testing.assert_array_equal(found.high, rows.astype(of_batch).max(axis=0))


def test_a_value_too_large_for_the_precision_of_the_fit_is_outside_and_shown_as_it_is():
    ranges = find_ranges(np.array([[0.0], [1.0]], np.float16))
    for dtype in (np.float32, np.float64, np.int64):
        found = count_outside(np.array([[10**6], [1]], dtype), ranges)
        assert found.counts.tolist() == [1] and found.high.tolist() == [10**6]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 50))
def test_parts_joined_give_what_the_whole_gives(lengths, seed):
    rng = np.random.default_rng(seed)
    rows, ranges = rng.normal(size=(sum(lengths), 3)), find_ranges(rng.normal(size=(12, 3)))
    whole = count_outside(rows, ranges)
    parts = [count_outside(part, ranges) for part in np.split(rows, np.cumsum(lengths)[:-1])]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.joined(part)
    for name in ("counts", "low", "high", "n_rows"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))


def test_ranges_joined_are_those_of_both():
    one, two = find_ranges(np.array([[0.0, 5.0]])), find_ranges(np.array([[1.0, 2.0], [3.0, 3.0]], np.float32))
    both = one.joined(two)
    assert (both.low.tolist(), both.high.tolist(), both.n_rows) == ([0.0, 2.0], [3.0, 5.0], 3)
    assert both.precision == np.float32  # the coarser


def test_batches_drawn_like_the_fit_are_seldom_warned_of():
    """Whatever the features' distributions, and however many there are: at most CHANCE of the batches."""
    rng = np.random.default_rng(0)
    draws = (rng.normal, rng.uniform, rng.standard_exponential, lambda size: rng.integers(0, 9, size))
    warned = 0
    for _ in range(300):
        n_fit, n_rows = (40, 900) if rng.random() < 0.5 else (400, 100)
        rows = np.concatenate([draw(size=(n_fit + n_rows, 5)) for draw in draws], axis=1)
        ranges = find_ranges(rows[:n_fit])
        warned += len(features_outside(count_outside(rows[n_fit:], ranges), ranges)) > 0
    assert warned <= 6  # of 3 expected at most


def test_the_limit_of_chance_is_kept_and_not_far_too_large():
    rng = np.random.default_rng(1)
    for n_rows, n_fit in ((500, 100), (100, 500)):
        fit = rng.random((4000, n_fit))
        counts = rng.binomial(n_rows, 1 - (fit.max(axis=1) - fit.min(axis=1)))
        limit = rows_outside_by_chance(n_rows, n_fit, 0.05)
        assert (counts > limit).mean() <= 0.05 < (counts > limit // 3).mean()
    assert rows_outside_by_chance(50, 1, 0.01) == 50


def test_single_values_far_outside_are_warned_of():
    rng = np.random.default_rng(0)
    fit = np.column_stack(
        [rng.integers(0, 2, 300), np.full(300, 7.0), rng.normal(size=300), rng.normal(size=300)]
    )
    rows = fit[:200].copy()
    rows[3, 0] = -1  # a code for missing in a column of 0 and 1
    rows[4, 1] = 7.5  # a column that never varied
    rows[5, 2] = fit[:, 2].max() + 0.5  # a little larger than any: that is chance
    ranges = find_ranges(fit)
    found = count_outside(rows, ranges)
    assert found.counts.tolist() == [1, 1, 1, 0]
    assert features_outside(found, ranges).tolist() == [0, 1]


def test_the_features_with_the_most_rows_outside_come_first():
    fit = np.random.default_rng(0).normal(size=(400, 3))
    rows = np.random.default_rng(1).normal(size=(400, 3))
    rows[:100, 2] += 50
    rows[:300, 1] += 50
    ranges = find_ranges(fit)
    assert features_outside(count_outside(rows, ranges), ranges).tolist() == [1, 2]
