from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from openset.stats.metrics import auroc
from openset.theory import LinearGaussianProblem, max_margin_color, max_margin_dd

N_TEST = 100_000


def auroc_standard_error(is_novel, score):
    """DeLong's standard error, from the share of the other group that each row beats."""
    novel, known = np.sort(score[is_novel]), np.sort(score[~is_novel])
    novel_beats = np.searchsorted(known, novel) / len(known)
    known_loses = 1 - np.searchsorted(novel, known) / len(novel)
    return math.sqrt(novel_beats.var(ddof=1) / len(novel) + known_loses.var(ddof=1) / len(known))


def fixed_problem(i):
    rng = np.random.default_rng([5, i])
    theta = math.pi / 2 if i % 5 == 0 else float(rng.uniform(0.2, math.pi - 0.2))
    return LinearGaussianProblem(
        d=int(rng.integers(16, 40)),
        r_mu=float(rng.uniform(0.05, 0.5)),
        r_eta=float(rng.uniform(0.05, 0.5)),
        theta=theta,
        alpha=float(rng.uniform(0.1, 0.6)),
        n_source=8,
        n_target=6,
        novel_sign=1 if i % 2 else -1,
    )


@pytest.mark.parametrize("i", range(50))
def test_closed_form_auroc_is_that_of_drawn_rows(i):
    problem = fixed_problem(i)
    sample = problem.sample(i)
    if i % 3 == 0:
        weights = np.random.default_rng(i).standard_normal(problem.d)
    else:
        solver = max_margin_dd if i % 3 == 1 else max_margin_color
        weights = solver(sample.source, sample.target).weights
    rows, is_novel = problem.sample_test(N_TEST, i)
    score = rows @ weights
    error = auroc_standard_error(is_novel, score)
    assert 0 < error < 0.01
    assert abs(auroc(is_novel, score) - problem.auroc(weights)) <= 4 * error


def tail(x):
    """Q, the Gaussian tail."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def test_which_printed_formula_is_right_for_which_orientation():
    """The definition has the novel mean at −η; lemma, proof, sketch and toy example differ in sign."""
    problem = LinearGaussianProblem(d=30, r_mu=0.3, r_eta=0.5, theta=1.1, novel_sign=-1)
    w = np.random.default_rng(2).standard_normal(30)
    mu, eta = problem.mean_source, -problem.mean_novel
    along = (w @ eta / problem.r_eta) ** 2 + (w @ mu / problem.r_mu) ** 2
    spread = problem.sigma * math.sqrt(2 * w @ w - along)
    novel_high, novel_low = problem.auroc(w), problem.auroc(-w)
    other_side = problem.with_(novel_sign=1).auroc(w)
    # the lemma's statement: right for s = −1 where novel scores high, as its max-margin rules have it
    assert tail(w @ (eta - mu) / spread) == pytest.approx(novel_high, abs=1e-12)
    # the end of its proof: right for s = −1 where novel scores low, as its Lagrangians have it
    assert tail(w @ (mu - eta) / spread) == pytest.approx(novel_low, abs=1e-12)
    # the proof sketch (one ‖w‖² and no unit vectors) and the toy example (2μ, no σ): right for none
    sketch = tail(w @ (mu - eta) / (problem.sigma * math.sqrt(w @ w - (w @ (mu + eta)) ** 2)))
    toy = tail(w @ (2 * mu - eta) / np.linalg.norm(w))
    for right, wrong in itertools.product((novel_high, novel_low, other_side, 1 - other_side), (sketch, toy)):
        assert abs(right - wrong) > 0.01


@pytest.mark.parametrize("sign", [1, -1])
def test_moments_of_a_draw(sign):
    problem = LinearGaussianProblem(
        d=6, r_mu=0.7, r_eta=1.3, theta=0.8, alpha=0.5, n_source=20_000, n_target=40_000, novel_sign=sign
    )
    sample = problem.sample(3)
    known, novel = sample.target[~sample.is_novel], sample.target[sample.is_novel]
    mu, eta = problem.mean_source / 0.7, sign * problem.mean_novel / 1.3
    assert mu @ eta == pytest.approx(math.cos(0.8))
    for rows, mean, gone in (
        (sample.source, problem.mean_source, eta),
        (known, problem.mean_known, eta),
        (novel, problem.mean_novel, mu),
    ):
        np.testing.assert_allclose(rows.mean(axis=0), mean, atol=4 * problem.sigma / math.sqrt(len(rows)))
        np.testing.assert_allclose((rows - mean) @ gone, 0, atol=1e-12)
        expected = problem.sigma**2 * (np.eye(6) - np.outer(gone, gone))
        np.testing.assert_allclose(np.cov(rows.T), expected, atol=0.01)


def test_same_seed_same_noise_whatever_the_means():
    problem = LinearGaussianProblem(d=40, r_mu=1, r_eta=1, n_source=5, n_target=6, alpha=0.5)
    other = problem.with_(r_mu=2.0, r_eta=0.1, theta=0.4)
    first, second = problem.sample(1), other.sample(1)
    np.testing.assert_array_equal(first.source[:, 2:], second.source[:, 2:])
    np.testing.assert_array_equal(first.target[:, 2:], second.target[:, 2:])
    assert not np.array_equal(problem.sample_test(11, 1)[0], np.vstack([first.source, first.target]))


def test_scores_without_noise():
    problem = LinearGaussianProblem(d=5, r_mu=1.0, r_eta=2.0)
    assert problem.auroc(np.zeros(5)) == 0.5
    assert problem.auroc([0, 1, 0, 0, 0]) > 0.99


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d": 1}, "d=1"),
        ({"r_mu": 0.0}, "r_mu=0.0"),
        ({"theta": math.pi}, "theta=3.14"),
        ({"alpha": 1.0}, "alpha=1.0"),
        ({"n_target": 1}, "n_target=1"),
        ({"novel_sign": 0}, "novel_sign=0"),
    ],
)
def test_bad_parameters_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        LinearGaussianProblem(**{"d": 10, "r_mu": 1.0, "r_eta": 1.0, **change})


def test_wrong_number_of_weights():
    with pytest.raises(ValueError, match="one weight per feature"):
        LinearGaussianProblem(d=10, r_mu=1.0, r_eta=1.0).auroc(np.ones(9))
