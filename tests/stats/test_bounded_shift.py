from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openset.stats.bounded_shift import (
    RUNGS,
    Counts,
    Ladder,
    novelty_p_value,
    share_lower_bound,
    smallest_noticed,
    tolerated_ratio,
)

SCORES = st.lists(st.floats(-5, 5), min_size=8, max_size=120)


def worst_case(seed, n, m, ratio, share=0.0):
    """The most extreme rows that a bounded shift allows: all target rows where source has 1/ratio of its rows."""
    random = np.random.default_rng(seed)
    new = random.random(m) < share
    return -random.random(n), np.where(new, 9.0, -random.random(m) / ratio)


def test_rungs_count_target_rows_above_the_highest_source_rows():
    random = np.random.default_rng(0)
    source, target = random.normal(size=200), random.normal(0.5, 1, size=90)
    ladder = Ladder.of(source, target)
    assert ladder.rungs.tolist() == [rung for rung in RUNGS if 4 * rung <= 200]
    for rung, threshold, above in zip(ladder.rungs, ladder.thresholds, ladder.above, strict=True):
        assert (source > threshold).sum() == rung - 1 and (target > threshold).sum() == above
    counts = ladder.counts
    assert (counts.n_source, counts.n_target) == (200, 90)
    assert (
        counts.target_above == ladder.above[ladder.best] and counts.source_above == ladder.rungs[ladder.best] - 1
    )


def test_ties_count_for_the_hypothesis():
    assert Ladder.of(np.zeros(50), np.zeros(50)).above.tolist() == [0] * 5
    assert novelty_p_value(Ladder.of(np.zeros(50), np.zeros(50)), 1) == 1


@pytest.mark.parametrize(("n", "m", "ratio", "share"), [(300, 200, 12, 0), (60, 150, 3, 0), (400, 100, 1, 0.1)])
def test_the_level_holds_in_the_worst_case(n, m, ratio, share):
    p = np.array(
        [novelty_p_value(Ladder.of(*worst_case(s, n, m, ratio, share)), ratio, share) for s in range(400)]
    )
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / 400)
    if not share:
        assert (p <= 0.2).mean() > 0.1, "it is exact, not only valid"


def test_the_p_value_is_the_chance_of_as_strong_evidence():
    """Brute force: the order of rows drawn one by one, each of source with the chance of the bound."""
    n = m = 60
    ladder = Ladder.of(np.arange(60.0), np.r_[np.arange(30.0), np.full(30, 99.0)])
    ratio, limits = 6.0, ladder.limits()
    random = np.random.default_rng(0)
    steps = random.geometric(n / (n + ratio * m), size=(20_000, ladder.rungs[-1])) - 1
    counts = np.minimum(steps.cumsum(axis=1)[:, ladder.rungs - 1], m)
    brute = (counts >= limits).any(axis=1).mean()
    assert novelty_p_value(ladder, ratio) == pytest.approx(brute, abs=4 * np.sqrt(brute / 20_000))


@settings(max_examples=40, deadline=None)
@given(SCORES, SCORES, st.sampled_from([1.0, 3.0, 12.0]))
def test_a_larger_shift_never_proves_more(source, target, ratio):
    ladder = Ladder.of(source, target)
    p, more = novelty_p_value(ladder, ratio), novelty_p_value(ladder, 2 * ratio)
    assert 0 < p <= more + 1e-9 <= 1 + 1e-9
    low = share_lower_bound(ladder, ratio)
    assert 0 <= share_lower_bound(ladder, 2 * ratio) <= low + 1e-4 <= 1
    assert (low > 0) == (p <= 0.05)
    if low > 0:
        assert novelty_p_value(ladder, ratio, 0.98 * low) <= 0.051


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.03, 0.3), st.floats(1, 5))
def test_every_share_below_the_bound_is_rejected(seed, share, apart):
    """p rises with the share, but falls a little where one more new row is expected."""
    random = np.random.default_rng(seed)
    n, m = random.integers(300, 2000, size=2)
    ladder = Ladder.of(random.normal(size=n), random.normal(size=m) + apart * (random.random(m) < share))
    low = share_lower_bound(ladder, 4)
    below = [other for other in (np.arange(low * m) + 0.49) / m if other < low - 1e-5]
    assert all(novelty_p_value(ladder, 4, other) <= 0.05 for other in below)


def test_the_order_alone_matters():
    source, target = worst_case(1, 300, 200, 4, 0.1)
    one, other = Ladder.of(source, target), Ladder.of(np.exp(3 * source), np.exp(3 * target))
    assert one.above.tolist() == other.above.tolist() and one.counts == other.counts


def test_the_lower_bound_is_valid_and_near_a_separate_class():
    lows = [share_lower_bound(Ladder.of(*worst_case(seed, 2000, 1000, 5, 0.1)), 5) for seed in range(60)]
    assert np.mean(np.array(lows) > 0.1) <= 0.1 and 0.06 < np.median(lows) < 0.1


def test_the_tolerated_ratio_is_where_the_p_value_crosses():
    ladder = Ladder.of(np.arange(2000.0), np.r_[np.arange(1940.0), np.full(60, 9999.0)])
    ratio = tolerated_ratio(ladder)
    assert novelty_p_value(ladder, ratio - 0.05) < 0.05 < novelty_p_value(ladder, ratio + 0.05)
    assert tolerated_ratio(Ladder.of(np.arange(100.0), np.arange(100.0))) == 0
    all_new = Ladder.of(np.arange(20000.0), np.full(20000, 1e9))
    assert tolerated_ratio(all_new) > 150


@pytest.mark.parametrize(("source", "target"), [([], []), ([1.0], [2.0]), ([], [1.0]), ([1.0, 2, 3, 4], [])])
def test_few_rows_prove_nothing(source, target):
    ladder = Ladder.of(source, target)
    assert novelty_p_value(ladder, 1) == 1 and share_lower_bound(ladder, 1) == 0
    assert ladder.counts == Counts(0, len(source), 0, len(target))


def test_counts_that_are_no_evidence_at_all():
    """Only the last rung has a target row above it, as it has in nearly every draw."""
    source = np.arange(4000.0)
    ladder = Ladder.of(source, np.r_[np.zeros(3999), 3980.5])
    assert ladder.above.tolist() == [0, 0, 0, 0, 0, 0, 1, 1] and novelty_p_value(ladder, 12) == 1


def test_many_target_rows_take_no_longer():
    ladder = Ladder.of(np.arange(100.0), np.r_[np.zeros(99_000), np.full(1000, 500.0)])
    assert ladder.n_target == 1000 and ladder.above[0] == pytest.approx(10, abs=1)


def test_the_smallest_share_that_is_noticed_is_the_first_that_is():
    n, m, ratio = 500, 400, 6.0
    least = smallest_noticed(n, m, ratio)
    for above, proved in ((round(least * m), True), (round(least * m) - 1, False)):
        target = np.r_[np.full(m - above, -1.0), np.full(above, 999.0)]
        assert (novelty_p_value(Ladder.of(np.arange(500.0), target), ratio) <= 0.05) is proved
    assert smallest_noticed(0, 10, 3) == smallest_noticed(8, 4, 12) == 1
