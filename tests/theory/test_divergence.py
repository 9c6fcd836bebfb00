"""The divergence against brute force: every threshold, every subset of points, the bound by density ratios."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from openset.theory import divergence_of_all_events, rare_event_divergence

SCORES = st.lists(st.integers(0, 6).map(float), min_size=1, max_size=12)


@given(SCORES, SCORES, st.floats(0, 1))
def test_it_is_the_best_of_all_thresholds(source, target, beta):
    found = rare_event_divergence(source, target, beta)
    s, t = np.array(source), np.array(target)
    cuts = [-np.inf, *np.unique(source), *np.unique(target)]
    brute = max((t > cut).mean() for cut in cuts if (s > cut).mean() <= beta + 1e-9)
    assert found.value == brute
    assert found.source <= beta + 1e-9 and found.value == (t > found.threshold).mean()


def test_of_several_heads_the_worst_counts():
    random = np.random.default_rng(0)
    source, target = random.normal(size=(200, 3)), random.normal([0, 2, 1], size=(300, 3))
    each = [rare_event_divergence(source[:, i], target[:, i], 0.05).value for i in range(3)]
    found = rare_event_divergence(source, target, 0.05)
    assert found.value == max(each) and found.head == 1


@given(st.integers(2, 6), st.integers(0, 10**6), st.floats(0, 1))
def test_all_events_agree_with_a_linear_program_and_no_subset_is_above(n, seed, beta):
    random = np.random.default_rng(seed)
    p, q = random.dirichlet(np.ones(n)), random.dirichlet(np.ones(n))
    found = divergence_of_all_events(p, q, beta)
    solved = linprog(-q, A_ub=p[None], b_ub=[beta], bounds=(0, 1))
    assert found == pytest.approx(-solved.fun, abs=1e-9)
    subsets = [np.array(chosen) for chosen in product([0, 1], repeat=n)]
    assert all(q @ chosen <= found + 1e-9 for chosen in subsets if p @ chosen <= beta)


def test_a_bounded_density_ratio_bounds_it_and_no_shift_gives_the_budget():
    random = np.random.default_rng(1)
    p = random.dirichlet(np.ones(40))
    for beta in (0.01, 0.1, 0.5):
        assert divergence_of_all_events(p, p, beta) == pytest.approx(beta)
        q = p * random.uniform(0.5, 3, 40)
        q /= q.sum()
        assert divergence_of_all_events(p, q, beta) <= beta * (q / p).max() + 1e-12
    assert divergence_of_all_events([1.0, 0.0], [0.3, 0.7], 0.0) == pytest.approx(0.7)  # where source never is


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rare_event_divergence([], [1.0], 0.1), r"source_scores has shape \(0,\)"),
        (lambda: rare_event_divergence([[1.0, 2.0]], [[1.0]], 0.1), "2 columns and target_scores 1"),
        (lambda: rare_event_divergence([1.0], [np.nan], 0.1), "target_scores has shape"),
        (lambda: rare_event_divergence([np.inf], [1.0], 0.1), "source_scores has shape"),
        (lambda: rare_event_divergence([1.0], [1.0], 2), "beta=2"),
        (lambda: divergence_of_all_events([0.5, 0.4], [0.5, 0.5], 0.1), "source is not a distribution"),
        (lambda: divergence_of_all_events([1.0], [0.5, 0.5], 0.1), "1 points and target 2"),
    ],
)
def test_bad_input_is_told(call, message):
    with pytest.raises(ValueError, match=message):
        call()
