from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from openset.stats.metrics import (
    auprc,
    auroc,
    evaluate,
    fpr_at_tpr,
    open_set_rates,
    oscr,
    top1,
)


@st.composite
def cases(draw):
    """Rows with tied scores, at least one known and one novel."""
    n = draw(st.integers(2, 30))
    novel = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda v: any(v) and not all(v)))
    score = draw(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 0.5, 2.0, np.inf]), min_size=n, max_size=n))
    correct = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(novel), np.array(score), np.array(correct)


def brute_force_oscr(novel, score, correct):
    pairs = [
        float(correct[i]) * ((score[i] < score[j]) + 0.5 * (score[i] == score[j]))
        for i in np.flatnonzero(~novel)
        for j in np.flatnonzero(novel)
    ]
    return float(np.mean(pairs))


def test_oscr_equals_brute_force_on_1000_random_cases_with_ties():
    random = np.random.default_rng(0)
    for _ in range(1000):
        n = int(random.integers(2, 40))
        novel = random.random(n) < 0.4
        novel[:2] = [True, False]
        score = random.integers(0, random.integers(1, 12), n) / 3
        correct = random.random(n) < 0.7
        assert oscr(novel, score, correct) == pytest.approx(brute_force_oscr(novel, score, correct), abs=1e-12)


@given(cases())
def test_ranking_metrics_agree_with_brute_force_and_scikit_learn(case):
    novel, score, correct = case
    finite = np.where(np.isinf(score), 1e6, score)
    assert auroc(novel, score) == pytest.approx(roc_auc_score(novel, finite), abs=1e-12)
    assert auprc(novel, score) == pytest.approx(average_precision_score(novel, finite), abs=1e-12)
    assert oscr(novel, score, correct) == pytest.approx(brute_force_oscr(novel, score, correct), abs=1e-12)
    fpr, tpr, _ = roc_curve(novel, finite, drop_intermediate=False)
    assert fpr_at_tpr(novel, score) == pytest.approx(fpr[tpr >= 0.95].min(), abs=1e-12)


@given(cases(), st.integers(0, 2**31))
def test_metrics_depend_on_nothing_but_ranks(case, seed):
    novel, score, correct = case
    order = np.random.default_rng(seed).permutation(len(score))
    monotone = np.arctan(score) * 3 + 1
    for again in ((novel[order], score[order], correct[order]), (novel, monotone, correct)):
        assert auroc(*again[:2]) == pytest.approx(auroc(novel, score), abs=1e-12)
        assert auprc(*again[:2]) == pytest.approx(auprc(novel, score), abs=1e-12)
        assert oscr(*again) == pytest.approx(oscr(novel, score, correct), abs=1e-12)
    assert auroc(novel, -score) == pytest.approx(1 - auroc(novel, score), abs=1e-12)


@given(cases())
def test_oscr_is_bounded_by_auroc_and_by_accuracy(case):
    novel, score, correct = case
    value = oscr(novel, score, correct)
    assert 0 <= value <= min(auroc(novel, score), top1(novel, correct)) + 1e-12
    assert oscr(novel, score, np.ones_like(correct)) == pytest.approx(auroc(novel, score), abs=1e-12)


def test_constant_score_gives_half_the_accuracy_and_the_legacy_routine_nothing():
    novel = np.arange(100) >= 80
    correct = np.arange(100) % 5 > 0
    assert oscr(novel, np.zeros(100), correct) == pytest.approx(0.8 / 2)
    assert oscr(novel, np.zeros(100), correct, legacy=True) == pytest.approx(0, abs=1e-2)
    assert auroc(novel, np.zeros(100)) == 0.5
    assert auprc(novel, np.zeros(100)) == pytest.approx(0.2)


def legacy_loop(novel, score, correct):
    """The published routine, spelled out: correct known rows from k + 1, novel rows from k."""
    known_first = np.concatenate([np.flatnonzero(~novel), np.flatnonzero(novel)])
    order = known_first[np.argsort(-score[known_first], kind="stable")]
    good, new = (correct & ~novel)[order], novel[order]
    n = len(order)
    curve = [(new[k:].sum() / novel.sum(), good[k + 1 :].sum() / (~novel).sum()) for k in range(n - 1)]
    curve = sorted([*curve, (0.0, 0.0), (0.0, 0.0), (1.0, 1.0)], reverse=True)
    return sum((a[0] - b[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(curve))


@given(cases())
def test_legacy_oscr_is_the_published_routine(case):
    novel, score, correct = case
    assert oscr(novel, score, correct, legacy=True) == pytest.approx(
        legacy_loop(novel, score, correct), abs=1e-12
    )


def test_legacy_and_exact_oscr_nearly_agree_on_many_distinct_scores():
    random = np.random.default_rng(0)
    novel = np.arange(2500) >= 2000
    score = random.normal(novel * 1.0)
    correct = random.random(2500) < 0.8
    assert oscr(novel, score, correct, legacy=True) == pytest.approx(oscr(novel, score, correct), abs=1e-3)


def test_open_set_rates_by_hand():
    rates = open_set_rates(["a", "a", "b", "n", "n"], ["a", "b", "b", "n", "a"], "n")
    assert rates.os_star == pytest.approx(0.75)
    assert rates.unk == pytest.approx(0.5)
    assert rates.os == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert rates.hos == pytest.approx(2 * 0.75 * 0.5 / 1.25)
    assert open_set_rates(["a", "n"], ["n", "a"], "n").hos == 0


@pytest.mark.parametrize("metric", [auroc, auprc, fpr_at_tpr])
@pytest.mark.parametrize(
    ("novel", "score", "message"),
    [
        ([1, 0], [0.0, np.nan], "1 NaN"),
        ([1, 1], [0.0, 1.0], "all 2 rows are novel"),
        ([0, 0], [0.0, 1.0], "all 2 rows are known"),
        ([], [], "all 0 rows"),
        ([1, 0], [0.0], "shape"),
        ([2, 0], [0.0, 1.0], "booleans"),
        ([[1, 0]], [[0.0, 1.0]], "one-dimensional"),
    ],
)
def test_scores_that_cannot_be_ranked_are_refused(metric, novel, score, message):
    with pytest.raises(ValueError, match=message):
        metric(np.array(novel), np.array(score))


def test_labels_that_cannot_be_rated_are_refused():
    with pytest.raises(ValueError, match="0 novel rows"):
        open_set_rates(["a"], ["a"], "n")
    with pytest.raises(ValueError, match="one label per row"):
        open_set_rates(["a", "n"], ["a"], "n")
    with pytest.raises(ValueError, match="no known target rows"):
        top1([1, 1], [1, 1])
    with pytest.raises(ValueError, match="tpr=0"):
        fpr_at_tpr([1, 0], [1.0, 0.0], tpr=0)


class Oracle:
    """A model that reads the answer off its input: label in column 0, score in column 1."""

    classes_ = np.array([0, 1])
    novel_label_ = -1

    def novelty_score(self, X):
        return X[:, 1]

    def predict_known(self, X):
        return X[:, 0].astype(int)

    def predict(self, X):
        return np.where(X[:, 1] > 0, -1, self.predict_known(X))


def test_evaluate_counts_every_unknown_label_as_novel():
    X = np.array([[0, -2.0], [1, -1.0], [1, 1.0], [0, 2.0]])
    metrics = evaluate(Oracle(), X, [0, 0, 7, 9])
    assert metrics.auroc == 1 and metrics.auprc == 1 and metrics.unk == 1
    assert metrics.top1 == 0.5 and metrics.oscr == 0.5
    assert (metrics.n_known, metrics.n_novel) == (2, 2)
    assert metrics.to_dict()["fpr_at_95_tpr"] == 0
