from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from openset.stats.proportions import ProportionEstimate, anchored_fraction, binomial_interval


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_binomial_interval_is_clopper_pearson(case):
    successes, trials = case
    exact = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert binomial_interval(successes, trials) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_no_trials_say_nothing():
    assert binomial_interval(0, 0) == (0.0, 1.0)
    assert anchored_fraction([], [1.0], 0.0).method == "not identified"


def test_the_interval_covers_the_truth_where_its_assumption_holds():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        source = random.normal(size=300)
        novel = random.random(300) < 0.1
        target = np.where(novel, 10, random.normal(size=300))
        estimate = anchored_fraction(source, target, threshold=2.0)
        covered += estimate.low <= 0.1 <= estimate.high
    assert covered / 300 >= 0.95


def test_an_estimate_is_frozen_and_ordered():
    estimate = anchored_fraction(np.zeros(50), np.r_[np.zeros(45), np.ones(5)], 0.5)
    assert estimate.value == pytest.approx(0.1)
    assert str(estimate).startswith("0.100 [")
    with pytest.raises(AttributeError):
        estimate.value = 0.2
    with pytest.raises(ValueError, match="low <= value"):
        ProportionEstimate(0.1, 0.2, 0.3, 0.95, "wrong way round")
