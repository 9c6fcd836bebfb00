from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openset.theory import LinearGaussianProblem, corrected_window, group_limit
from openset.theory.margin import SOLVERS

sizes = st.integers(2, 400)
lengths = st.floats(-3, 3).map(lambda x: 10**x)
problems = st.builds(
    LinearGaussianProblem,
    d=st.integers(1000, 10**9),
    r_mu=lengths,
    r_eta=lengths,
    alpha=st.floats(0.01, 0.99),
    n_source=sizes,
    n_target=sizes,
)


def rows_with_exactly_orthogonal_noise(problem):
    """What the limit assumes: noise of length √ν along a coordinate of its own for every row."""
    n, nu = problem.n_total, problem.sigma**2 * (problem.d - 1)
    means = np.zeros((n, 2))
    means[: problem.n_source] = problem.mean_source[:2]
    means[problem.n_source : -problem.n_novel] = problem.mean_known[:2]
    means[-problem.n_novel :] = problem.mean_novel[:2]
    return np.hstack([means, math.sqrt(nu) * np.eye(n)])


@pytest.mark.parametrize("rule", ["dd", "color"])
@pytest.mark.parametrize("theta", [math.pi / 2, 0.3, 2.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_exact_where_its_assumption_holds(rule, theta, sign):
    problem = LinearGaussianProblem(
        d=1000, r_mu=0.6, r_eta=0.9, theta=theta, alpha=0.3, n_source=12, n_target=10, novel_sign=sign
    )
    rows = rows_with_exactly_orthogonal_noise(problem)
    solved, limit = SOLVERS[rule](rows[:12], rows[12:]), group_limit(problem, rule)
    expected = [limit.source] * 12 + [limit.known] * 7 + [limit.novel] * 3
    np.testing.assert_allclose(solved.multipliers, expected, atol=1e-9)
    assert solved.norm == pytest.approx(limit.norm, rel=1e-9)
    assert solved.weights[:2] @ (problem.mean_novel - problem.mean_known)[:2] == pytest.approx(limit.gap)


@pytest.mark.parametrize(
    ("r_mu", "r_eta", "alpha"), [(1.0, 3.0, 0.2), (0.5, 1.5, 0.3), (0.3, 0.4, 0.1), (2.0, 0.1, 0.05)]
)
@pytest.mark.parametrize("rule", ["dd", "color"])
def test_solver_is_near_the_limit_at_fifty_features_a_row(r_mu, r_eta, alpha, rule):
    problem = LinearGaussianProblem(d=100 * 60, r_mu=r_mu, r_eta=r_eta, alpha=alpha, n_source=40, n_target=20)
    limit = group_limit(problem, rule)
    gaps, norms = [], []
    for seed in range(3):
        sample = problem.sample(seed)
        weights = SOLVERS[rule](sample.source, sample.target).weights
        gaps.append(weights @ (problem.mean_novel - problem.mean_known))
        norms.append(np.linalg.norm(weights))
    assert np.mean(norms) == pytest.approx(limit.norm, rel=0.03)
    assert np.mean(gaps) == pytest.approx(limit.gap, abs=0.02 + 0.1 * abs(limit.gap))


@settings(max_examples=200, deadline=None)
@given(problems)
def test_closed_form_and_sign_of_the_gap(problem):
    nu = 1 - 1 / problem.d
    window = corrected_window(problem)
    dd, color = group_limit(problem, "dd"), group_limit(problem, "color")
    assert dd.source == pytest.approx(1 / (nu + window.background))
    assert dd.known == pytest.approx(1 / (nu + window.background))
    assert color.source == 0
    assert color.known == pytest.approx(1 / (nu + window.known))
    assert dd.novel == pytest.approx(1 / (nu + window.novel))
    assert color.novel == pytest.approx(1 / (nu + window.novel))
    for limit, right, edge in (
        (dd, window.dd_right, window.background),
        (color, window.color_right, window.known),
    ):
        assert limit.gap == pytest.approx(nu * (limit.known - limit.novel), abs=1e-9)
        if not math.isclose(window.novel, edge, rel_tol=1e-3) and max(window.novel, edge) > 1e-3:
            assert (limit.gap > 0) == right
            assert (limit.auroc >= 0.5) == right


def test_inside_the_window_color_is_right_and_dd_wrong():
    problem = LinearGaussianProblem(d=20_000, r_mu=1.0, r_eta=3.5, alpha=0.2, n_source=160, n_target=40)
    window = corrected_window(problem)
    assert window.known < window.novel < window.background
    assert window.inside
    for seed in range(3):
        sample = problem.sample(seed)
        dd, color = (problem.auroc(s(sample.source, sample.target).weights) for s in SOLVERS.values())
        assert dd < 0.5
        assert color > 0.9
        assert dd == pytest.approx(group_limit(problem, "dd").auroc, abs=0.1)
        assert color == pytest.approx(group_limit(problem, "color").auroc, abs=0.02)


def test_unknown_rule():
    with pytest.raises(ValueError, match="rule='svm'"):
        group_limit(LinearGaussianProblem(d=10, r_mu=1, r_eta=1), "svm")
