from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.coherence import TOP_SHARES, coherence, containment, excess_coherence, top_overlap

PAIRS = np.array([1, 0, 3, 2, 5, 4, 7, 6, 9, 8])[:, None]
"""Ten rows; the neighbour of each is its partner."""


def ring(n, k=4):
    """Each row's k nearest rows on a circle."""
    steps = [step for j in range(1, k // 2 + 1) for step in (-j, j)]
    return (np.arange(n)[:, None] + steps) % n


@pytest.mark.parametrize(
    ("highest", "expected"),
    [
        ([8, 9], 1.0),  # both neighbours are highest rows
        ([7, 9], -0.25),  # none is, less than the share .2 by chance: (0 − .2) / .8
        ([5, 8, 9], (2 / 3 - 0.3) / 0.7),
    ],
)
def test_coherence_by_hand(highest, expected):
    scores = np.zeros(10)
    scores[highest] = 1 + np.arange(len(highest))
    assert coherence(scores, PAIRS, share=len(highest) / 10) == pytest.approx(expected)


def test_at_least_two_rows_are_looked_at_and_equal_scores_count_together():
    scores = np.array([0.0, 0, 0, 0, 0, 0, 0, 0, 5, 6])
    assert coherence(scores, PAIRS, share=0.01) == 1.0
    scores[:8] = 5  # all but one score as high as the second
    assert coherence(scores, PAIRS, share=0.2) == 0.0, "all rows are highest rows"


@given(st.integers(0, 2**32 - 1), st.integers(10, 60), st.floats(0.01, 0.5))
def test_coherence_is_at_most_1_and_at_least_what_no_neighbour_gives(seed, n, share):
    random = np.random.default_rng(seed)
    scores = random.integers(0, 5, n).astype(float) if seed % 2 else random.normal(size=n)
    number = max(2, round(share * n))
    expected = (scores >= np.sort(scores)[-number]).mean()
    found = coherence(scores, ring(n), share)
    assert found <= 1
    assert found >= (-expected / (1 - expected) if expected < 1 else 0) - 1e-12


def test_rows_that_stand_out_by_chance_have_no_coherence():
    random = np.random.default_rng(0)
    found = [coherence(random.normal(size=1000), ring(1000, 10), 0.05) for _ in range(50)]
    assert np.mean(found) == pytest.approx(0, abs=0.01)


def test_excess_is_the_mean_difference_over_the_shares():
    random = np.random.default_rng(1)
    source, target = random.normal(size=200), random.normal(size=300)
    target[:15] += 10  # side by side on the circle
    around, around_target = ring(200), ring(300)
    parts = [coherence(target, around_target, s) - coherence(source, around, s) for s in TOP_SHARES]
    found = excess_coherence(source, around, target, around_target)
    assert found == pytest.approx(np.mean(parts)) and found > 0.5
    assert excess_coherence(target, around_target, target, around_target) == 0
    assert excess_coherence(target, around_target, source, around) == pytest.approx(-found)


def test_overlap_by_hand():
    first, second = np.arange(100.0), np.arange(100.0)
    second[[99, 98, 90]] = -1  # of the highest 3, 6 and 10 rows of the first, 1, 4 and 7 are left
    assert top_overlap(first, second) == pytest.approx((1 / 3 + 4 / 6 + 7 / 10) / 3)
    assert top_overlap(first, second, shares=(0.03,)) == pytest.approx(1 / 3)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=80), st.integers(0, 2**32 - 1))
def test_overlap_is_between_0_and_1_symmetric_and_1_with_itself(scores, seed):
    first = np.array(scores)
    second = np.random.default_rng(seed).normal(size=len(first))
    assert top_overlap(first, first) == 1
    assert 0 <= top_overlap(first, second) <= 1
    assert top_overlap(first, second) == pytest.approx(top_overlap(second, first))
    assert top_overlap(second, 3 * second + 1) == 1, "a monotone change is no change"


def test_rows_of_a_large_class_are_contained_though_they_overlap_little():
    random = np.random.default_rng(0)
    is_new = np.arange(1000) < 200
    first, second = (10.0 * is_new + random.normal(size=1000) for _ in range(2))
    assert containment(first, second) == 1 and top_overlap(first, second) < 0.7
    assert containment(first, random.normal(size=1000)) == pytest.approx(0.3, abs=0.15), "by chance"
