from __future__ import annotations

import numpy as np
import pytest

from openset.review.learn import DIMENSIONS, HIGHEST, LOWEST, gather_evidence, learn_ranking, prior_logit
from openset.stats.metrics import auprc


@pytest.fixture
def problem():
    """Known rows in two kinds, a new kind, and a score that finds half of it and takes a known kind for it."""
    random = np.random.default_rng(0)
    centres = np.array([[0, 0, 0, 0], [4, 0, 0, 0], [0, 4, 0, 0], [0, 0, 4, 0]], dtype=float)
    kind = np.repeat([0, 1, 2, 3], [400, 300, 60, 60])
    target = centres[kind] + random.normal(size=(len(kind), 4))
    source = centres[[0] * 300 + [1] * 300] + random.normal(size=(600, 4))
    score = np.array([0.0, 0.5, 3.0, 3.0])[kind] + random.normal(size=len(kind))
    return gather_evidence(source, target, score, 2.5), kind == 3


def test_without_answers_the_ranking_is_that_of_the_score(problem):
    evidence, _ = problem
    assert (learn_ranking(evidence, np.empty(0, int), np.empty(0, bool)) == evidence.prior).all()


def test_answers_teach_what_the_score_could_not_tell(problem):
    evidence, is_new = problem
    rows = np.argsort(-evidence.prior)[:25]
    found = learn_ranking(evidence, rows, is_new[rows])
    assert auprc(is_new, found) > auprc(is_new, evidence.prior) + 0.2


def test_a_wrong_answer_that_stands_alone_changes_little(problem):
    evidence, is_new = problem
    rows = np.concatenate([np.argsort(-evidence.prior)[:25], np.arange(10)])
    answers = is_new[rows]
    right = auprc(is_new, learn_ranking(evidence, rows, answers))
    answers[-1] = True  # a row in the middle of a known kind
    assert auprc(is_new, learn_ranking(evidence, rows, answers)) > right - 0.05


def test_far_from_every_answer_the_order_of_the_score_stays(problem):
    evidence, _ = problem
    rows = np.flatnonzero(evidence.points[:, 2] > 1)[:3]
    found = learn_ranking(evidence, rows, np.ones(len(rows), bool))
    far = np.linalg.norm(evidence.points - evidence.points[rows[0]], axis=1) > 1.5
    correlation = np.corrcoef(found[far].argsort().argsort(), evidence.prior[far].argsort().argsort())[0, 1]
    assert correlation > 0.7


def test_evidence_of_many_columns_is_made_of_few():
    random = np.random.default_rng(0)
    X, target = random.normal(size=(300, 100)), random.normal(size=(200, 100))
    X[:, 3] = target[:, 3] = 7.0  # a constant column
    evidence = gather_evidence(X, target, target[:, 0], 2.0)
    assert evidence.points.shape == (200, DIMENSIONS)
    assert (evidence.points**2).sum(axis=1).mean() == pytest.approx(1)


def test_the_prior_is_bounded_and_follows_the_score():
    score = np.linspace(-5, 30, 500)
    found = prior_logit(score, 20.0)
    assert found.min() == LOWEST and found.max() <= HIGHEST
    assert (np.diff(found) >= 0).all()
    assert np.isfinite(prior_logit(np.zeros(50), np.inf)).all()
