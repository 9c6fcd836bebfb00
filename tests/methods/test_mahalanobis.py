from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf

from openset import KNN, Mahalanobis
from openset.errors import FitWarning
from openset.methods.mahalanobis import within_covariance
from openset.shift.synthetic import make_background_shift
from openset.stats.metrics import auroc


def fit(X, y, X_target=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return Mahalanobis(random_state=0, **parameters).fit(X, y, X_target)


def test_the_score_is_the_formula(small):
    model = fit(small.X, small.y)
    x, s = model.scaling_.apply(small.X_test), model.scaling_.apply(small.X)
    means = np.stack([s[small.y == c].mean(axis=0) for c in range(3)])
    precision = np.linalg.inv(LedoitWolf(assume_centered=True).fit(s - means[small.y]).covariance_)
    squared = np.stack([np.einsum("ni,ij,nj->n", x - m, precision, x - m) for m in means], axis=1)
    logits, score = model._outputs(small.X_test)
    np.testing.assert_allclose(score, squared.min(axis=1), rtol=1e-6)
    np.testing.assert_allclose(logits, -squared / 2, rtol=1e-6)
    np.testing.assert_array_equal(model.predict_known(small.X_test), squared.argmin(axis=1))
    assert 0 < model.shrinkage_ < 1


def test_by_hand_in_one_dimension():
    # means 1 and 11, pooled variance 2/3
    model = fit([[0], [1], [2], [10], [11], [12]], [0, 0, 0, 1, 1, 1], standardize=None)
    np.testing.assert_allclose(model.novelty_score([[1.0], [3.0], [9.0], [13.0]]), [0, 6, 6, 6], rtol=1e-7)
    assert model.predict([[5.9], [6.1]]).tolist() == [0, 1]


def test_target_rows_do_not_enter(small):
    one, two = fit(small.X, small.y, small.X_target), fit(small.X, small.y, small.X_target[:50] + 1)
    np.testing.assert_array_equal(one.novelty_score(small.X_test), two.novelty_score(small.X_test))


def test_batch_and_order_do_not_matter(small):
    model = fit(small.X, small.y, small.X_target)
    rows = small.X_test
    score, order = model.novelty_score(rows), np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_array_equal(model.novelty_score(rows[order]), score[order])
    np.testing.assert_array_equal(np.concatenate([model.novelty_score(r[None]) for r in rows]), score)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0, 0.0], [1.0, 3.0]], [0, 1]),  # one row a class
        ([[0.0, 0.0], [2.0, 2.0], [5.0, 0.0], [7.0, 2.0]], [0, 0, 1, 1]),  # all residuals ±v: no shrinkage
        ([[0.0, 7.0], [1.0, 7.0], [5.0, 7.0], [6.5, 7.0]], [0, 0, 1, 1]),  # a constant feature
    ],
)
@pytest.mark.parametrize("shrinkage", [None, 0])
def test_degenerate_spreads_still_give_the_nearest_class(X, y, shrinkage):
    model = fit(np.array(X), y, shrinkage=shrinkage)
    assert model.predict(np.array(X)).tolist() == y
    assert np.isfinite(model.novelty_score([[100.0, -100.0]])).all()


def test_more_features_than_rows():
    residuals = np.random.default_rng(0).normal(size=(20, 60))
    covariance, shrinkage = within_covariance(residuals)
    np.testing.assert_allclose(covariance, LedoitWolf(assume_centered=True).fit(residuals).covariance_, atol=1e-7)
    assert np.linalg.eigvalsh(covariance).min() > 0 and 0 < shrinkage <= 1


def test_a_given_shrinkage_is_taken(small):
    residuals = np.random.default_rng(0).normal(size=(50, 3)) * [1, 2, 3]
    plain = residuals.T @ residuals / 50
    expected = 0.7 * plain + 0.3 * np.trace(plain) / 3 * np.eye(3)
    np.testing.assert_allclose(within_covariance(residuals, 0.3)[0], expected, atol=1e-7 * 9)
    assert fit(small.X, small.y, shrinkage=0.3).shrinkage_ == 0.3


def test_it_sees_the_direction_in_which_source_hardly_varies():
    # among ten wide directions an offset of six narrow standard deviations is lost to Euclidean distances
    random = np.random.default_rng(0)
    rotation = np.linalg.qr(random.normal(size=(11, 11)))[0]
    sd = np.r_[np.ones(10), 0.1]
    X, y = random.normal(size=(400, 11)) * sd, np.arange(400) % 2
    test, novel = random.normal(size=(200, 11)) * sd, np.arange(200) < 100
    test[novel, -1] += 0.6
    X[y == 1, 0] += 6
    X, test = X @ rotation, test @ rotation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        euclidean = KNN(random_state=0).fit(X, y, test)
    assert auroc(novel, fit(X, y, test, shrinkage=0).novelty_score(test)) > 0.95
    assert auroc(novel, euclidean.novelty_score(test)) < 0.7


def test_strength_without_shift():
    for seed in range(3):
        data = make_background_shift(n_features=20, shift=False, random_state=seed)
        model = fit(data.X, data.y, data.X_target)
        assert auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9


def test_its_known_failure_is_a_new_class_between_the_subtypes_of_a_known_one():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 2)), np.arange(300) % 3 == 2
    X += np.array([[-6, 0], [6, 0], [0, 12]])[np.arange(300) % 3]
    test, novel = X + random.normal(size=X.shape), np.arange(300) < 60
    test[novel] = random.normal(size=(60, 2))
    assert auroc(novel, fit(X, y, test).novelty_score(test)) < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        neighbours = KNN(random_state=0).fit(X, y, test)
    assert auroc(novel, neighbours.novelty_score(test)) > 0.9


def test_bad_parameters_are_named(small):
    with pytest.raises(ValueError, match="standardize=.*expected"):
        Mahalanobis(standardize="row").fit(small.X, small.y)
    for shrinkage in (-0.1, 1.5, "auto", np.nan):
        with pytest.raises(ValueError, match="shrinkage=.*expected"):
            Mahalanobis(shrinkage=shrinkage).fit(small.X, small.y)
