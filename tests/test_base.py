"""The contract of a fit: what it stores, scores, warns of and forgets, for every registered method."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import openset
from openset import (
    KNN,
    MCM,
    PULSE,
    ZOC,
    CoLOR,
    DomainDiscriminator,
    Mahalanobis,
    OpenSetClassifier,
    PaperCoLOR,
    SourceOnly,
)
from openset._utils.params import fitted_attributes
from openset.errors import FitWarning
from openset.methods import _network
from openset.problem import Decision, FitScores
from openset.registry import get_method, methods
from openset.stats.thresholds import conformal_threshold
from openset.testing import Subject

HERE = Path(__file__).name
QUICK = {"max_steps": 12, "evaluate_every": 6, "hidden": 8, "random_state": 0, "fpr": 0.1}
ALL = [method.name for method in methods()]


def subject_of(name, **changes):
    """A method with few steps, and a problem of the shape that it takes."""
    method = get_method(name)
    accepted = method.load()._get_param_names()
    return Subject(method.make(**{key: value for key, value in {**QUICK, **changes}.items() if key in accepted}))


class Nearest(OpenSetClassifier):
    """The smallest method that keeps the contract: distance to the nearest class mean."""

    def _fit(self, problem):
        train = problem.split.folds[0].train
        rows, y = problem.X[train], problem.y[train]
        return {"means_": np.stack([rows[y == c].mean(axis=0) for c in range(problem.n_classes)])}

    def _outputs(self, rows):
        distances = np.linalg.norm(rows[:, None] - self.means_, axis=2)
        return -distances, distances.min(axis=1)


@pytest.fixture(scope="module")
def nearest(small):
    return Nearest(random_state=0, fpr=0.1).fit(small.X, small.y, small.X_target)


# ---------------------------------------------------------------------- what two functions are enough for


def test_two_functions_make_a_method(nearest, small):
    logits, score = nearest._outputs(small.X_test)
    np.testing.assert_array_equal(nearest.novelty_score(small.X_test), score)
    np.testing.assert_array_equal(nearest.predict_known(small.X_test), logits.argmax(axis=1))
    novel = score > nearest.threshold_
    np.testing.assert_array_equal(nearest.predict(small.X_test), np.where(novel, -1, logits.argmax(axis=1)))
    probabilities = nearest.predict_proba(small.X_test)
    np.testing.assert_allclose(probabilities[:, -1], expit(score - nearest.threshold_))
    np.testing.assert_allclose(probabilities[:, :-1], softmax(logits, axis=1) * (1 - probabilities[:, -1:]))
    assert (probabilities[:, -1] > 0.5).tolist() == novel.tolist()
    assert nearest.n_source_ == 300 and nearest.n_target_ == 240 and nearest.resolved_parameters_ == {}


def test_the_threshold_is_the_conformal_one_of_the_calibration_rows(nearest, small):
    split = nearest.fit_scores_.split
    own = nearest.novelty_score(small.X[split.calibration])
    assert len(own) == 60 and nearest.threshold_ == conformal_threshold(own, 0.1).value
    np.testing.assert_array_equal(nearest.calibration_scores_, np.sort(own))
    np.testing.assert_array_equal(nearest.target_novelty_score_, nearest.novelty_score(small.X_target))


def test_a_method_may_decide_otherwise_and_add_attributes(small):
    class Own(Nearest):
        def _decide(self, problem, scores):
            return Decision(3.0, super()._decide(problem, scores).fraction, warnings=("mine",))

        def _finish(self, problem, scores):
            return {"called_": scores.target_score > self.threshold_}, scores

    with pytest.warns(FitWarning, match="^mine$"):
        model = Own(random_state=0).fit(small.X, small.y, small.X_target)
    assert model.threshold_ == 3.0 and model.called_.tolist() == (model.predict(small.X_target) == -1).tolist()
    assert not hasattr(model, "novelty_test_") and not hasattr(model, "diagnostics_")


def test_a_score_a_hair_above_the_threshold_has_a_probability_above_one_half(nearest):
    above, at = np.nextafter(nearest.threshold_, np.inf), nearest.threshold_
    probabilities = nearest._probabilities(np.zeros((2, 3)), np.array([above, at]))
    assert probabilities[0, -1] > 0.5 >= probabilities[1, -1]


# ---------------------------------------------------------------------- warnings


def test_every_warning_of_a_fit_points_at_the_callers_line(small):
    X, y, target = small.X, small.y, small.X_target
    shifted = target.copy()
    shifted[:, 2] += 500
    kinds = {
        "cannot be promised from": lambda: KNN(fpr=0.001, random_state=0).fit(X, y, target),
        r"fpr=0\.002 cannot be promised": lambda: CoLOR(**{**QUICK, "fpr": 0.002}).fit(X, y, target),
        "incompatible scales": lambda: Nearest(fpr=0.1, random_state=0).fit(X, y, shifted),
        "incompatible scales in X and X_target": lambda: DomainDiscriminator(**QUICK).fit(X, y, shifted),
        "no head kept": lambda: PaperCoLOR(**{**QUICK, "fpr": 1e-9}, grid=(0.9,)).fit(X, y, target),
    }
    for message, fit in kinds.items():
        with pytest.warns(FitWarning, match=message) as told:
            fit()
        line = fit.__code__.co_firstlineno
        assert [(Path(w.filename).name, w.lineno) for w in told] == [(HERE, line)] * len(told)


def test_two_things_to_say_are_two_warnings(small):
    with pytest.warns(FitWarning) as told:
        Nearest(fpr=0.001, random_state=0).fit(small.X, small.y, small.X_target + 500)
    assert len(told) == 2
    assert "8 features are on incompatible scales" in str(told[0].message)
    assert "threshold_ is their largest score, which keeps" in str(told[1].message)


# ---------------------------------------------------------------------- rows of the fit, scored once


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
@pytest.mark.parametrize("name", ALL)
def test_target_predictions_are_predictions_of_the_target_bit_for_bit(name):
    subject = subject_of(name, members=2)
    data, model = subject.data, subject.fitted
    stored, again = model.target_predictions(), model.predictions(data.X_target)
    for field in ("labels", "predicted_index", "known_index", "novelty_score", "probabilities"):
        np.testing.assert_array_equal(getattr(stored, field), getattr(again, field), err_msg=field)
    np.testing.assert_array_equal(again.predicted, model.predict(data.X_target))
    np.testing.assert_array_equal(again.known, model.predict_known(data.X_target))
    np.testing.assert_array_equal(again.probabilities, model.predict_proba(data.X_target))


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
def test_target_predictions_are_those_of_the_users_classifier(small):
    model = PaperCoLOR(**QUICK, classifier=LogisticRegression()).fit(small.X, small.y, small.X_target)
    stored, again = model.target_predictions(), model.predictions(small.X_target)
    np.testing.assert_array_equal(stored.probabilities, again.probabilities)
    np.testing.assert_array_equal(stored.known, model.classifier_.classes_[stored.known_index])


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("method", [CoLOR, PaperCoLOR, DomainDiscriminator])
def test_every_row_is_scored_once_after_training(method, members, small, monkeypatch):
    """Validation passes within training do not count: they go through another module's name."""
    passed = []
    score = _network.head_outputs

    def counting(network, rows, chosen=None, **options):
        passed.append(rows.array if chosen is None else rows.array[chosen])
        return score(network, rows, chosen, **options)

    monkeypatch.setattr(_network, "head_outputs", counting)
    model = method(**{**QUICK, "fpr": 0.3}, members=members).fit(small.X, small.y, small.X_target)
    source, target = passed
    np.testing.assert_array_equal(target, small.X_target)
    split = model.fit_scores_.split
    kept = np.unique(np.concatenate([split.calibration, *(fold.validation for fold in split.folds)]))
    np.testing.assert_array_equal(source, small.X[kept])
    model.target_predictions()
    assert len(passed) == 2, "and it is stored"


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
@pytest.mark.parametrize("random_state", [None, 3, np.random.RandomState(5)], ids=["none", "seed", "stream"])
@pytest.mark.parametrize("method", [CoLOR, PaperCoLOR, DomainDiscriminator, KNN])
def test_the_stored_folds_are_those_of_the_fit(method, random_state, small, monkeypatch):
    seen, fit = [], method._fit
    monkeypatch.setattr(method, "_fit", lambda self, problem: seen.append(problem) or fit(self, problem))
    given = {key: value for key, value in QUICK.items() if key in method._get_param_names()}
    model = method(**{**given, "random_state": random_state}).fit(small.X, small.y, small.X_target)
    (problem,) = seen
    assert model.fit_scores_.split is problem.split
    if hasattr(model, "representation"):  # target rows with a score of their own are those of the folds
        of_target = np.unique(np.concatenate([fold.validation for fold in problem.split.target_folds]))
        np.testing.assert_array_equal(np.flatnonzero(~np.isnan(model.target_novelty_score_)), of_target)


def test_outputs_of_all_heads_are_dropped_after_the_decision(small):
    model = CoLOR(**{**QUICK, "fpr": 0.3}).fit(small.X, small.y, small.X_target)
    assert model.fit_scores_.heads is None and model.fit_scores_.state == {}


def test_without_a_target_nothing_but_the_split_is_stored(small):
    model = DomainDiscriminator(**QUICK).fit(small.X, small.y)
    scores = model.fit_scores_
    assert isinstance(scores, FitScores) and scores.split.target_folds == []
    assert scores.target_score.shape == scores.calibration_score.shape == (0,)
    assert scores.validation_classes is None and model.novel_fraction_ is None and model.threshold_ == np.inf


# ---------------------------------------------------------------------- a saved model, and a second fit


@pytest.mark.parametrize("make", [lambda: CoLOR(**{**QUICK, "fpr": 0.3}), lambda: KNN(random_state=0, fpr=0.1)])
def test_a_saved_model_does_not_hold_the_rows_of_the_fit(make, small, tmp_path):
    model = make().fit(small.X, small.y, small.X_target)
    model.save(tmp_path)
    fitted = json.loads((tmp_path / "model.json").read_text())["fitted"]
    assert "fit_scores_" not in fitted
    assert set(fitted) == set(fitted_attributes(model)) - {"fit_scores_"}
    again = openset.load(tmp_path)
    assert not hasattr(again, "fit_scores_") and again.resolved_parameters_ == model.resolved_parameters_
    with pytest.raises(NotFittedError):
        again.target_predictions()
    assert again.predictions(small.X_test).predicted.tolist() == model.predict(small.X_test).tolist()


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
@pytest.mark.parametrize("name", ALL)
def test_a_second_fit_leaves_nothing_of_the_first(name):
    subject = subject_of(name)
    data = subject.data
    fresh = subject.fit(data.X, data.y)
    model = subject.fit(data.X, data.y, data.X_target)
    model.fit(data.X, data.y)
    assert sorted(vars(model)) == sorted(vars(fresh))
    np.testing.assert_array_equal(model.predict_proba(data.X_test), fresh.predict_proba(data.X_test))
    assert model.n_target_ == 0 and model.novel_fraction_ is None
    with pytest.raises(NotFittedError):
        subject_of(name).estimator.target_predictions()


def test_what_a_second_fit_forgets_by_name(small):
    pulse = PULSE(**QUICK).fit(small.X, small.y, small.X_target)
    assert pulse.novel_fraction_ == pulse.estimated_fraction_
    assert not hasattr(pulse.fit(small.X, small.y), "estimated_fraction_")
    for model in (PaperCoLOR(**{**QUICK, "fpr": 0.5}), CoLOR(**{**QUICK, "fpr": 0.5})):
        model.fit(small.X, small.y, small.X_target)
        assert hasattr(model, "selected_") and hasattr(model, "heads_")
        model.fit(small.X, small.y)
        for name in ("selected_", "heads_", "novelty_test_", "diagnostics_"):
            assert not hasattr(model, name)
    frame = pd.DataFrame(small.X, columns=list("abcdefgh"))
    named = Mahalanobis().fit(frame, small.y)
    assert named.feature_names_in_.tolist() == list("abcdefgh")
    assert not hasattr(named.fit(small.X, small.y), "feature_names_in_")


def test_a_fit_that_fails_leaves_no_fitted_model(small):
    model = KNN(random_state=0).fit(small.X, small.y)
    with pytest.raises(ValueError, match="0 sample"):
        model.fit(small.X[:0], small.y[:0])
    with pytest.raises(NotFittedError):
        model.predict(small.X)


# ---------------------------------------------------------------------- resolved parameters


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
@pytest.mark.parametrize("name", ALL)
def test_resolved_parameters_are_those_given_as_auto_and_no_others(name):
    model = subject_of(name).fitted
    given = {key for key, value in model.get_params().items() if isinstance(value, str) and value == "auto"}
    assert set(model.resolved_parameters_) == given
    assert "auto" not in map(str, model.resolved_parameters_.values())


def test_what_scaling_was_chosen_can_be_read(small):
    units = np.logspace(0, 4, 8)
    resolved = [SourceOnly(**QUICK).fit(X, small.y).resolved_parameters_ for X in (small.X, small.X * units)]
    assert resolved == [
        {"dropout": 0.0, "standardize": "global"},
        {"dropout": 0.0, "standardize": "feature"},
    ]
    assert KNN(standardize=None).fit(small.X, small.y).resolved_parameters_ == {}


# ---------------------------------------------------------------------- labels and presets


def test_labels_come_back_as_they_were_given(small):
    for labels, expected in ((["a", "b", "c"], "novel"), ([10, 20, 30], -1), ([1.0, 2.0, 3.0], -1)):
        y = np.array(labels)[small.y]
        model = Nearest(random_state=0, fpr=0.1).fit(small.X, y, small.X_target)
        assert model.novel_label_ == expected and model.classes_.tolist() == labels
        assert set(model.predict(small.X_target + 50).tolist()) == {expected}
    own = Nearest(novel_label="new", random_state=0, fpr=0.1)
    assert own.fit(small.X, np.array(["a", "b", "c"])[small.y], small.X_target).novel_label_ == "new"


def test_a_preset_takes_changes_and_names_what_there_is():
    assert MCM.preset("cifar100", temperature=2.0).temperature == 2.0
    assert ZOC.preset("cifar100", candidate_embeddings=[[1.0]]).fpr == 0.01
    with pytest.raises(ValueError, match="preset='imagenet' is not valid: expected one of .*'cifar100'"):
        MCM.preset("imagenet")


def test_an_unfitted_model_says_so(small):
    with pytest.raises(NotFittedError):
        Nearest().predictions(small.X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Nearest().__sklearn_is_fitted__()
