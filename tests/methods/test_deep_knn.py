from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.preprocessing import normalize

import openset
from openset import DeepKNN, SourceOnly
from openset.errors import FitWarning
from openset.shift.synthetic import make_background_shift
from openset.stats.metrics import auroc
from openset.stats.neighbours import kth_distance
from openset.stats.scores import rank_log_odds

QUICK = {"max_steps": 40, "evaluate_every": 20, "fpr": 0.1}


def fit(data, *, target=True, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return DeepKNN(random_state=0, **parameters).fit(data.X, data.y, data.X_target if target else None)


@pytest.fixture(scope="module")
def fitted(small):
    return fit(small, **QUICK)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_distances_by_hand():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    layer = np.array([[3.0, 0.0], [0.0, 0.5], [0.0, 0.0]], np.float32)
    np.testing.assert_allclose(kth_distance(rows, normalize(layer), 1), [0, 0, 1])  # a row of zeros stays one
    np.testing.assert_allclose(kth_distance(rows, normalize(layer), 2), [np.sqrt(0.8), np.sqrt(0.4), 1])
    np.testing.assert_allclose(kth_distance(rows, normalize(layer), 50), [np.sqrt(2), np.sqrt(2), 1])


def test_golden_numbers():
    """Worked out apart: rows at angles 0, 10, ..., 90 degrees, chords 2·sin(angle / 2)."""
    angles = np.deg2rad(np.arange(0, 100, 10))
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    query = 7 * np.array([[np.cos(np.deg2rad(-25)), np.sin(np.deg2rad(-25))]])
    found = [kth_distance(rows, normalize(query), k)[0] for k in (1, 3, 5)]
    np.testing.assert_allclose(found, [0.43287923, 0.76536686, 1.07459922], atol=1e-8)


def test_each_member_scores_by_brute_force_over_the_rows_it_trained_on(fitted, small):
    layers = fitted.representation(small.X_test).reshape(len(small.X_test), 3, 128).astype(float)
    folds = fitted.fit_scores_.split.folds
    pooled = []
    for member, fold in enumerate(folds):
        searched = fitted.representation(small.X[fold.train]).reshape(len(fold.train), 3, 128)[:, member]
        np.testing.assert_allclose(fitted.rows_[member], unit(searched.astype(float)), atol=1e-6)
        nearest = np.sort(cdist(unit(layers[:, member]), fitted.rows_[member]), axis=1)[:, 4]
        pooled.append(rank_log_odds(fitted.pool_references_[member], nearest))
    np.testing.assert_allclose(fitted.novelty_score(small.X_test), np.mean(pooled, axis=0), rtol=1e-6)


def test_rows_for_choosing_and_for_the_threshold_are_not_searched(fitted):
    split = fitted.fit_scores_.split
    for rows, fold in zip(fitted.rows_, split.folds, strict=True):
        assert len(rows) == len(fold.train) < 300 - len(split.calibration)
        assert not np.isin(fold.train, split.calibration).any()


def test_known_classes_are_those_of_a_source_only_classifier(small):
    ours = fit(small, members=1, **QUICK)
    plain = SourceOnly(random_state=0, **QUICK).fit(small.X, small.y, small.X_target)
    np.testing.assert_array_equal(ours.predict_known(small.X_test), plain.predict_known(small.X_test))
    np.testing.assert_array_equal(ours._outputs(small.X_test)[0], plain._outputs(small.X_test)[0])


def test_target_rows_do_not_enter(fitted, small):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        other = DeepKNN(random_state=0, **QUICK).fit(small.X, small.y, small.X_target[:50] + 1)
    np.testing.assert_array_equal(fitted.novelty_score(small.X_test), other.novelty_score(small.X_test))
    assert fitted.threshold_ == other.threshold_


def test_epochs_are_passes_over_the_source_rows_and_steps_come_before_them(small):
    steps = {"evaluate_every": 1000, "tol": 0.0, "members": 1}
    assert fit(small, epochs=3, batch_size=100, **steps).n_steps_ == 9
    assert fit(small, epochs=3, batch_size=1000, **steps).n_steps_ == 3
    assert fit(small, epochs=3, max_steps=5, **steps).n_steps_ == 5
    assert (DeepKNN().members, DeepKNN().hidden, DeepKNN().epochs, DeepKNN().n_neighbors) == (3, 128, 40, 5)


@pytest.mark.parametrize("target", [True, False])
def test_a_saved_model_scores_alike(small, tmp_path, target):
    model = fit(small, target=target, **QUICK)
    model.save(tmp_path / "m")
    loaded = openset.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.novelty_score(small.X_test), model.novelty_score(small.X_test))
    assert [rows.dtype for rows in loaded.rows_] == [np.float32] * 3


def test_one_known_class_and_few_rows():
    data = make_background_shift(n_source=12, n_target=20, n_test=10, n_features=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        model = DeepKNN(random_state=0, n_neighbors=50, **QUICK).fit(data.X, np.zeros(12, int), data.X_target)
    assert np.isfinite(model.novelty_score(data.X_test)).all()


@pytest.mark.slow
def test_a_shift_along_directions_that_labels_ignore_looks_less_new_than_to_plain_knn():
    random = np.random.default_rng(0)
    centres = 4 * np.eye(4)[:, :3]  # the fourth class, at the origin, is new

    def rows(n, label, nuisance):
        return np.column_stack(
            [centres[label] + random.normal(size=(n, 3)), nuisance + random.normal(size=(n, 30))]
        )

    y = np.repeat([0, 1, 2], 200)
    X = np.concatenate([rows(200, label, 0) for label in range(3)])
    target = np.concatenate([rows(150, label, random.normal(size=30)) for label in range(4)])
    novel = np.repeat([False, False, False, True], 150)
    deep, plain = (
        auroc(novel, get(fpr=0.1, random_state=0).fit(X, y, target).novelty_score(target))
        for get in (DeepKNN, openset.KNN)
    )
    assert deep > 0.8 and deep > plain + 0.2


@pytest.mark.parametrize(
    "parameters", [{"n_neighbors": 0}, {"n_neighbors": 2.5}, {"epochs": 0}, {"epochs": None}]
)
def test_bad_parameters_are_named(parameters, small):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"{name}=.*expected"):
        DeepKNN(**parameters).fit(small.X, small.y)


def test_presets_train_as_long_as_the_papers():
    assert DeepKNN.preset("cifar100").epochs == 200 and DeepKNN.preset("cifar100").max_steps is None
    assert DeepKNN.preset("amazon_minilm").max_steps == 1000
