from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestNeighbors

from openset.shift import separability, support_overlap
from openset.shift.problem_checks import Separability


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_the_oracle_reaches_the_best_possible_auroc(random):
    known, novel = random.normal(size=(4000, 4)), random.normal(size=(1000, 4)) + np.array([1.5, 0, 0, 0])
    found = separability(known, novel)
    assert found.auroc == pytest.approx(norm.cdf(1.5 / np.sqrt(2)), abs=0.015)
    assert not found.is_ideal and "not both above 0.98" in str(found)
    assert (found.n_known, found.n_novel) == (4000, 1000)
    by_lda = separability(known, novel, classifier=LinearDiscriminantAnalysis())
    assert by_lda.auroc == pytest.approx(found.auroc, abs=0.005)


def test_the_oracle_does_not_find_what_is_not_there(random):
    rows = random.normal(size=(300, 200))  # more than enough features to learn 60 rows by heart
    found = separability(rows[:240], rows[240:])
    assert 0.35 < found.auroc < 0.65 and found.auprc < 0.4


def test_what_can_be_told_apart_is_called_so(random):
    found = separability(random.normal(size=(300, 4)), random.normal(size=(50, 4)) + 5)
    assert found.is_ideal and found.auprc > 0.98 and "the features separate the new class" in str(found)


def test_the_papers_criterion_asks_for_both_areas():
    assert Separability(0.99, 0.985, 100, 10).is_ideal
    assert not Separability(0.99, 0.9, 100, 10).is_ideal and not Separability(0.9, 0.99, 100, 10).is_ideal
    assert not Separability(0.98, 0.98, 100, 10).is_ideal  # above, not at


def test_source_rows_train_the_oracle_and_are_not_scored(random):
    known, novel = random.normal(size=(100, 3)), random.normal(size=(50, 3)) + 2
    alone = separability(known, novel)
    helped = separability(known, novel, X_source=random.normal(size=(2000, 3)))
    assert (helped.n_known, helped.n_novel) == (100, 50)
    assert helped.auroc == pytest.approx(alone.auroc, abs=0.02)
    assert helped.auprc == pytest.approx(alone.auprc, abs=0.04)  # 50 of 150, not of 2150
    with pytest.raises(ValueError, match="X_source 4"):
        separability(known, novel, X_source=np.zeros((5, 4)))


def test_same_rows_overlap_and_distant_ones_do_not(random):
    X, far = random.normal(size=(1000, 5)), random.normal(size=(500, 5))
    inside = support_overlap(X, random.normal(size=(500, 5)))
    assert inside.outside < 0.03 and inside.effective_size > 900
    far[:100, 0] += 30
    gap = support_overlap(X, far)
    assert gap.outside == pytest.approx(0.2 + 0.8 * inside.outside, abs=0.03)
    assert "lie farther from source" in str(gap)


@pytest.mark.slow
def test_effective_size_follows_the_shift_of_the_mean(random):
    # weights exp(d·x − d²/2) under a standard normal have ESS share exp(−d²)
    X, target = random.normal(size=(6000, 1)), random.normal(size=(6000, 1)) + 0.8
    found = support_overlap(X, target)
    assert found.effective_size / 6000 == pytest.approx(np.exp(-0.64), abs=0.06)


def test_many_features_do_not_make_weights_uneven_where_nothing_shifted(random):
    rows = random.normal(size=(900, 300))
    assert support_overlap(rows[:500], rows[500:]).effective_size > 450


def test_distances_are_those_of_brute_force(random):
    X, target = random.normal(size=(200, 3)), random.normal(size=(100, 3)) * 2
    scaled, moved = X / X.std(axis=0), target / X.std(axis=0)
    finder = NearestNeighbors(n_neighbors=3).fit(scaled)
    limit = np.quantile(finder.kneighbors(n_neighbors=3)[0][:, -1], 0.9)
    expected = (finder.kneighbors(moved)[0][:, -1] > limit).mean()
    assert support_overlap(X, target, n_neighbours=3, level=0.9).outside == expected


def test_a_constant_feature_does_no_harm(random):
    X, target = random.normal(size=(100, 3)), random.normal(size=(100, 3))
    X[:, 1] = target[:, 1] = 4.0
    assert np.isfinite(support_overlap(X, target).outside)


def test_disjoint_supports_are_outside_and_do_not_overflow(random):
    found = support_overlap(random.normal(size=(300, 2)), random.normal(size=(300, 2)) + 1e4)
    assert found.outside == 1 and 1 <= found.effective_size <= 300


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: separability(X, X[:3]), "30 known and 3 novel rows are too few for 5 folds"),
        (lambda X: separability(X, X[:, :1]), "X_known has 2 features and X_novel 1"),
        (lambda X: separability(X, X, folds=1), "folds=1"),
        (lambda X: separability(X * np.nan, X), "X_known contains NaN"),
        (lambda X: support_overlap(X, X[:2]), "too few"),
        (lambda X: support_overlap(X, X, n_neighbours=30), "too few for 30 neighbours"),
        (lambda X: support_overlap(X, X, level=1), "level=1"),
        (lambda X: support_overlap(X, X[:, :1]), "X has 2 features and X_target 1"),
    ],
)
def test_bad_input_is_refused(random, call, message):
    with pytest.raises(ValueError, match=message):
        call(random.normal(size=(30, 2)))
