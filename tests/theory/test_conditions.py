from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openset.theory import (
    LinearGaussianProblem,
    corrected_window,
    gap_upper_bound,
    group_limit,
    max_margin_color,
    max_margin_dd,
    theorem_conditions,
)

CONSTANTS = {"c1": 1.0, "c2": 2.0, "C_d": 0.5, "c_d": 2.0}
IN_THEOREM = LinearGaussianProblem(
    d=10**8, r_mu=132.0, r_eta=0.0615, alpha=1 / 70_000, n_source=70_000, n_target=70_000
)


def test_by_hand():
    report = theorem_conditions(LinearGaussianProblem(d=3000, r_mu=0.1, r_eta=1.0))
    texts = {c.text: c for c in report.of("theorem 1")}
    ratio = texts["r_eta/r_mu <= 1/(8 (1 + sqrt(N_T N_T1)))"]
    assert ratio.left == pytest.approx(10)
    assert ratio.right == pytest.approx(1 / (8 * (1 + math.sqrt(400 * 60))))
    assert ratio.holds is False
    unknown = texts["c1 log(c2/delta) <= min(sqrt N, sqrt(d/N))"]
    assert unknown.holds is None
    assert (unknown.left, unknown.right) == (None, pytest.approx(math.sqrt(3000 / 2000)))
    assert texts["r_mu <= sqrt(N_T0)/2"].holds is True


def test_constants_decide_what_was_not_checkable():
    assert theorem_conditions(IN_THEOREM).applies("theorem 1") is None
    assert theorem_conditions(IN_THEOREM, **CONSTANTS).applies("theorem 1") is True
    assert theorem_conditions(IN_THEOREM, **{**CONSTANTS, "c1": 100.0}).applies("theorem 1") is False


def test_in_the_region_of_the_theorem_both_rules_fail():
    """The theorem says CoLOR > .9 here; the limit says 0."""
    report = theorem_conditions(IN_THEOREM, **CONSTANTS)
    assert all(
        report.applies(s)
        for s in (
            "theorem 1",
            "restatement 2",
            "restatement 3",
            "proposition 1 (DD)",
            "proposition 2 (CoLOR)",
        )
    )
    assert group_limit(IN_THEOREM, "dd").auroc < 1e-6
    assert group_limit(IN_THEOREM, "color").auroc < 1e-6


def test_in_the_region_of_the_theorem_no_small_enough_weights_can_be_right():
    """docs/theory.md: ‖w‖ ≤ 2√N_T1·1.01 with high probability, and then the gap is negative whatever w is."""
    norm = 2.02 * math.sqrt(IN_THEOREM.n_novel)
    noise = 1.01 / math.sqrt(IN_THEOREM.n_known)
    assert gap_upper_bound(IN_THEOREM, norm, noise) < -0.8


LEAST_RATIO = {"theorem 1": 70_000, "restatement 2": 1_900, "restatement 3": 1_100}


@st.composite
def problems_in_a_region(draw):
    """Sizes and lengths drawn between the bounds of one of the three statements."""
    statement = draw(st.sampled_from(sorted(LEAST_RATIO)))
    n_novel = draw(st.integers(1, 50))
    n_target = n_novel * draw(st.integers(LEAST_RATIO[statement], 10**6))
    n_known, floor = n_target - n_novel, 16 / math.sqrt(n_target)
    part = st.floats(0.001, 0.999)
    # the largest r_eta is ``slope``·r_mu, or ``top`` whatever r_mu is
    slope, top, low_mu, high_mu = {
        "theorem 1": (
            1 / (8 * (1 + math.sqrt(n_target * n_novel))),
            math.inf,
            floor,
            0.5 * math.sqrt(n_known),
        ),
        "restatement 2": (
            math.inf,
            3 / (8 * math.sqrt(n_novel)),
            1 / math.sqrt(n_novel),
            0.5 * math.sqrt(n_known),
        ),
        "restatement 3": (math.sqrt(n_novel / n_known), math.inf, floor, 0.5 * math.sqrt(n_known) / n_novel),
    }[statement]
    low_mu = max(low_mu, floor / slope)
    r_mu = low_mu * (high_mu / low_mu) ** draw(part)
    high_eta = min(top, slope * r_mu)
    r_eta = floor * (high_eta / floor) ** draw(part)
    n_source = n_target * draw(st.integers(1, 2000))
    problem = LinearGaussianProblem(
        d=1000 * (n_source + n_target),
        r_mu=r_mu,
        r_eta=r_eta,
        alpha=n_novel / n_target,
        n_source=n_source,
        n_target=n_target,
    )
    return statement, problem


@settings(max_examples=300, deadline=None)
@given(problems_in_a_region())
def test_no_statement_allows_color_to_be_right_in_the_limit(drawn):
    statement, problem = drawn
    assert theorem_conditions(problem).failures(statement) == ()
    assert not corrected_window(problem).color_right
    assert group_limit(problem, "color").auroc < 0.5


def test_sizes_below_65536_target_rows_a_novel_row_leave_the_theorem_empty():
    """16/√N_T ≤ r_η ≤ √N_T0 / (16(1 + √(N_T N_T1))) < 1/(16√N_T1)."""
    for n_novel in (1, 3, 10):
        n_target = 65_536 * n_novel
        lowest = 16 / math.sqrt(n_target)
        highest = 0.5 * math.sqrt(n_target - n_novel) / (8 * (1 + math.sqrt(n_target * n_novel)))
        assert lowest > highest


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 20), st.integers(66, 10**5), st.floats(0, 1), st.floats(0.01, 5), st.floats(0.01, 0.99))
def test_proposition_1_agrees_with_the_limit(n_novel, ratio, split, log_excess, part):
    total = n_novel * ratio  # it holds nowhere unless N > 64·N_T1
    n_target = min(max(round(split * total), n_novel + 1), total - 1)
    # r_mu above the least that leaves room: r/(4 + 8r·√N_T1) > 1/√N
    r_mu = 4 / (math.sqrt(total) - 8 * math.sqrt(n_novel)) * 10**log_excess
    highest = r_mu / (4 + 8 * r_mu * math.sqrt(n_novel)) - 1 / math.sqrt(total)
    problem = LinearGaussianProblem(
        d=10**6,
        r_mu=r_mu,
        r_eta=part * highest,
        alpha=n_novel / n_target,
        n_source=total - n_target,
        n_target=n_target,
    )
    assert theorem_conditions(problem).failures("proposition 1 (DD)") == ()
    assert not corrected_window(problem).dd_right
    assert group_limit(problem, "dd").auroc < 0.5


def test_proposition_2_has_a_counterexample_that_can_be_solved():
    """All its conditions hold but for the unnamed constant, and w_color ranks known above novel."""
    problem = LinearGaussianProblem(d=12_800, r_mu=10.0, r_eta=10.0, alpha=0.05, n_source=64, n_target=64)
    report = theorem_conditions(problem)
    assert report.failures("proposition 2 (CoLOR)") == ()
    assert theorem_conditions(problem, **CONSTANTS).applies("proposition 2 (CoLOR)")
    for seed in range(3):
        sample = problem.sample(seed)
        assert problem.auroc(max_margin_color(sample.source, sample.target).weights) < 0.1


@pytest.mark.parametrize("solver", [max_margin_dd, max_margin_color])
@pytest.mark.parametrize(("r_mu", "r_eta"), [(0.1, 1.0), (2.0, 0.05), (5.0, 5.0)])
def test_the_gap_never_exceeds_its_bound(solver, r_mu, r_eta):
    problem = LinearGaussianProblem(d=500, r_mu=r_mu, r_eta=r_eta, alpha=0.1, n_source=60, n_target=40)
    sample = problem.sample(0)
    w = solver(sample.source, sample.target).weights
    noise = (sample.target[~sample.is_novel] - problem.mean_known).mean(axis=0)
    bound = gap_upper_bound(problem, float(np.linalg.norm(w)), float(np.linalg.norm(noise)))
    assert w @ (problem.mean_novel - problem.mean_known) <= bound + 1e-9


def test_bad_arguments():
    with pytest.raises(ValueError, match="delta=0"):
        theorem_conditions(IN_THEOREM, delta=0)
    with pytest.raises(ValueError, match="c1=-1"):
        theorem_conditions(IN_THEOREM, c1=-1)
    with pytest.raises(ValueError, match="statement='theorem 9'"):
        theorem_conditions(IN_THEOREM).of("theorem 9")
