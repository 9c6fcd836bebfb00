from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from openset.stats.bounded_shift import (
    Counts,
    Cut,
    cautious_cut,
    count_above,
    cross_fitted_cuts,
    dense_cut,
    novelty_p_value,
    share_lower_bound,
)
from openset.stats.shares import binomial_interval
from openset.stats.validation_scores import ValidationScores


@pytest.mark.parametrize(("ratio", "share"), [(1, 0.0), (12, 0.0), (3, 0.05)])
def test_the_level_is_exact_over_all_pairs_of_counts(ratio, share):
    n = m = 30
    p_values = np.ones((n + 1, m + 1))
    for i in range(16):
        for j in range(m + 1):
            p_values[i, j] = novelty_p_value(Counts(i, n, j, m), ratio, share)
    for level in (0.01, 0.05, 0.2):
        for rate in np.linspace(0.001, 0.3, 60):
            allowed = min(1.0, share + (1 - share) * ratio * rate)
            chance = np.outer(binom.pmf(np.arange(n + 1), n, rate), binom.pmf(np.arange(m + 1), m, allowed))
            assert chance[p_values <= level].sum() <= level


counts = st.builds(
    lambda n, m, x, y: Counts(min(x, n), n, min(y, m), m),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(0, 300),
    st.integers(0, 300),
)


@settings(max_examples=40, deadline=None)
@given(counts, st.sampled_from([1.0, 3.0, 12.0]))
def test_the_bound_is_where_the_p_value_crosses_and_moves_the_right_way(seen, ratio):
    low = share_lower_bound(seen, ratio)
    assert 0 <= low <= seen.target_above / seen.n_target
    assert (low > 0) == (novelty_p_value(seen, ratio) <= 0.05)
    if low > 0:
        assert novelty_p_value(seen, ratio, low * 0.99) <= 0.051
        assert share_lower_bound(seen, ratio * 2) <= low + 1e-9
        assert share_lower_bound(seen, ratio, 0.99) <= low


def test_it_is_sharper_than_two_confidence_limits():
    seen, ratio = Counts(5, 2000, 200, 2000), 12
    target = binomial_interval(seen.target_above, seen.n_target)[0]
    known = ratio * binomial_interval(seen.source_above, seen.n_source)[1]
    two_limits = (target - known) / (1 - known)
    assert two_limits < 0.02 < 0.04 < share_lower_bound(seen, ratio) < 0.1


def test_no_rows_prove_nothing():
    assert novelty_p_value(Counts(0, 0, 5, 10), 12) == 1
    assert novelty_p_value(Counts(0, 10, 0, 0), 12) == 1
    assert share_lower_bound(Counts(0, 0, 5, 10), 12) == 0
    assert share_lower_bound(Counts(10, 10, 10, 10), 12) == 0


def test_cuts_find_the_head_that_separates_and_leave_a_margin():
    random = np.random.default_rng(0)
    source = random.normal(size=(1000, 3))
    target = random.normal(size=(1000, 3))
    target[:100, 1] += 9
    cut = cautious_cut(source, target, 12)
    assert cut.head == 1 and source[:, 1].max() + 1 < cut.threshold <= target[:100, 1].min()
    assert dense_cut(source, target, 12).threshold <= cut.threshold


def test_a_dense_cut_is_the_best_of_all_by_brute_force():
    random = np.random.default_rng(1)
    source, target = random.normal(size=(60, 2)), random.normal(0.5, 1.5, size=(70, 2))
    cut = dense_cut(source, target, 3)

    def gain(head, threshold):
        return (target[:, head] > threshold).mean() - 3 * (source[:, head] > threshold).mean()

    best = max(gain(h, t) for h in range(2) for t in np.concatenate([source[:, h], target[:, h]]))
    assert gain(cut.head, cut.threshold) == pytest.approx(best)


def test_a_part_does_not_choose_its_own_cut():
    random = np.random.default_rng(2)
    parts = [random.normal(size=(50, 2)) for _ in range(6)]
    before = ValidationScores(tuple(parts[:3]), tuple(parts[3:]))
    after = ValidationScores((parts[0] + 7, *parts[1:3]), (parts[3] - 5, *parts[4:]))
    cuts = cross_fitted_cuts(before, 3)
    assert cuts[0] == cross_fitted_cuts(after, 3)[0] and cuts[1:] != cross_fitted_cuts(after, 3)[1:]


def test_counts_are_pooled_over_parts():
    scores = ValidationScores(([[0.0, 5.0], [1.0, 5.0]], [[3.0, 0.0]]), ([[2.0, 0.0]], [[0.0, 1.0], [0.0, 9.0]]))
    assert count_above(scores, [Cut(0, 0.5), Cut(1, 0.5)]) == Counts(1, 3, 3, 3)
