from __future__ import annotations

import numpy as np
import pytest

from openset.theory import LinearGaussianProblem, logistic_descent
from openset.theory.margin import SOLVERS


@pytest.fixture(scope="module")
def sample():
    problem = LinearGaussianProblem(d=300, r_mu=0.5, r_eta=0.7, alpha=0.2, n_source=20, n_target=20)
    return problem.sample(0)


@pytest.mark.parametrize("rule", ["dd", "color"])
def test_gradient_descent_turns_towards_the_max_margin_weights(rule, sample):
    descent = logistic_descent(sample.source, sample.target, rule, steps=4096)
    cosines = descent.cosines(SOLVERS[rule](sample.source, sample.target).weights)
    assert descent.steps[0] == 1
    assert descent.steps[-1] == 4096
    assert (np.diff(cosines) > 0).all()
    assert 1 - cosines[-1] < 1e-3 < 1 - cosines[0]
    # the angle closes at a rate, not by a lucky stop: eight times the steps, a fraction of the distance
    assert 1 - cosines[-1] < 0.3 * (1 - cosines[-4])


def test_each_rule_goes_its_own_way(sample):
    dd = logistic_descent(sample.source, sample.target, "dd", steps=2048).directions[-1]
    color = logistic_descent(sample.source, sample.target, "color", steps=2048).directions[-1]
    w_dd, w_color = (s(sample.source, sample.target).weights for s in SOLVERS.values())
    assert dd @ w_dd / np.linalg.norm(w_dd) > dd @ w_color / np.linalg.norm(w_color)
    assert color @ w_color / np.linalg.norm(w_color) > color @ w_dd / np.linalg.norm(w_dd)


def test_the_constrained_path_stays_feasible(sample):
    descent = logistic_descent(sample.source, sample.target, "color", steps=100)
    assert (descent.directions @ sample.source.T).max() <= 1e-9


def test_the_first_step_is_the_gradient(sample):
    descent = logistic_descent(sample.source, sample.target, "dd", steps=1)
    gradient = sample.target.sum(axis=0) - sample.source.sum(axis=0)
    np.testing.assert_allclose(descent.directions[0], gradient / np.linalg.norm(gradient), atol=1e-12)


def test_bad_arguments(sample):
    with pytest.raises(ValueError, match="rule='svm'"):
        logistic_descent(sample.source, sample.target, "svm")
    with pytest.raises(ValueError, match="steps=0"):
        logistic_descent(sample.source, sample.target, "dd", steps=0)
