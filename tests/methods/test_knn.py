from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from openset import KNN
from openset.errors import FitWarning
from openset.methods.knn import mean_log_distance, vote_logits
from openset.shift.synthetic import make_background_shift
from openset.stats.metrics import auroc


def fit(X, y, X_target=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return KNN(random_state=0, **parameters).fit(X, y, X_target)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("distance", ["kth", "mean_log"])
def test_the_score_is_the_formula_over_all_pairs(distance, normalize, small):
    model = fit(small.X, small.y, small.X_target, n_neighbors=7, distance=distance, normalize=normalize)
    x = model.scaling_.apply(small.X_test)
    if normalize:
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    nearest = np.sort(cdist(x, model.rows_), axis=1)[:, :7]
    expected = nearest[:, -1] if distance == "kth" else np.log(nearest).mean(axis=1)
    np.testing.assert_allclose(model.novelty_score(small.X_test), expected, rtol=1e-12, atol=1e-12)


def test_known_classes_are_the_neighbours_vote(small):
    model = fit(small.X, small.y, n_neighbors=5)
    near = np.argsort(cdist(model.scaling_.apply(small.X_test), model.rows_), axis=1)[:, :5]
    counts = np.array([np.bincount(small.y[rows], minlength=3) for rows in near])
    np.testing.assert_array_equal(model.predict_known(small.X_test), counts.argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(small.X_test), (counts + 1 / 3) / 6, rtol=1e-12)


def test_votes_and_log_distances_by_hand():
    np.testing.assert_allclose(np.exp(vote_logits(np.array([[2, 2, 0]]), 3)), [[4 / 12, 1 / 12, 7 / 12]])
    np.testing.assert_allclose(mean_log_distance(np.array([[1, np.e, np.e**2]])), [1])
    assert np.isfinite(mean_log_distance(np.zeros((1, 3)))).all()


def test_target_rows_do_not_enter(small):
    one, two = fit(small.X, small.y, small.X_target), fit(small.X, small.y, small.X_target[:50] + 1)
    np.testing.assert_array_equal(one.novelty_score(small.X_test), two.novelty_score(small.X_test))
    assert one.threshold_ == two.threshold_


def test_rows_of_the_threshold_are_not_searched(small):
    model = fit(small.X, small.y, small.X_target, n_neighbors=1, fpr=0.1)
    assert len(model.rows_) == 240
    own = model.novelty_score(small.X)
    assert (own < 1e-12).sum() == 240  # every other source row is kept for the threshold
    assert (own[own > 1e-12] > model.threshold_).mean() <= 0.1


@pytest.mark.parametrize("parameters", [{}, {"distance": "mean_log"}, {"normalize": True}])
def test_batch_and_order_do_not_matter_even_where_rows_tie(parameters):
    random = np.random.default_rng(0)
    X, y = random.integers(0, 3, (200, 4)).astype(float), random.integers(0, 3, 200)
    rows = random.integers(0, 3, (60, 4)).astype(float)
    model = fit(X, y, rows, n_neighbors=4, **parameters)
    p, order = model.predict_proba(rows), random.permutation(60)
    np.testing.assert_array_equal(model.predict_proba(rows[order]), p[order])
    np.testing.assert_array_equal(np.vstack([model.predict_proba(r[None]) for r in rows]), p)


def test_more_neighbours_than_rows_means_all_rows():
    X = np.arange(6.0)[:, None]
    model = fit(X, [0, 0, 0, 1, 1, 1], n_neighbors=50, standardize=None)
    np.testing.assert_allclose(model.novelty_score([[0.0], [5.0], [7.0]]), [5, 5, 7])


def test_rows_too_far_to_square_are_named(small):
    model = fit(small.X, small.y)
    rows = small.X_test[:3].copy()
    rows[1, 0] = 1e200
    with pytest.raises(ValueError, match="row 1 has values too large"):
        model.novelty_score(rows)


def test_mean_log_survives_duplicates():
    X = np.repeat([[0.0, 1.0], [3.0, 1.0]], 20, axis=0)
    model = fit(X, np.repeat([0, 1], 20), distance="mean_log")
    scores = model.novelty_score([[0, 1], [1, 1], [9, 9]])
    assert np.isfinite(scores).all() and (np.diff(scores) > 0).all()


@pytest.mark.parametrize("parameters", [{}, {"distance": "mean_log"}, {"normalize": True}])
def test_strength_without_shift(parameters):
    for seed in range(3):
        data = make_background_shift(n_features=20, shift=False, random_state=seed)
        model = fit(data.X, data.y, data.X_target, **parameters)
        assert auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9


@pytest.mark.parametrize(
    "parameters",
    [{"n_neighbors": 0}, {"n_neighbors": 2.5}, {"distance": "median"}, {"normalize": 1}, {"standardize": "row"}],
)
def test_bad_parameters_are_named(parameters, small):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"{name}=.*expected"):
        KNN(**parameters).fit(small.X, small.y)
