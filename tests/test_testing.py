from __future__ import annotations

import warnings

import numpy as np
import pytest

from openset import ANNA, KNN, SourceOnly, registry
from openset.base import OpenSetClassifier
from openset.registry import INPUTS, Method, register
from openset.testing import (
    PROBLEMS,
    Subject,
    check_open_set_estimator,
    check_refit,
    check_save_and_load,
    open_set_checks,
)


class NearestCentre(OpenSetClassifier):
    """Distance to the nearest class mean: a method that keeps the contract, and fits in milliseconds."""

    def __init__(self, fpr=0.01, validation_fraction=0.2, novel_label=None, random_state=None):
        self.fpr, self.validation_fraction = fpr, validation_fraction
        self.novel_label, self.random_state = novel_label, random_state

    def _fit(self, problem):
        train = problem.split.folds[0].train
        X, y = problem.X[train], problem.y[train]
        return {"centres_": np.stack([X[y == k].mean(axis=0) for k in range(problem.n_classes)])}

    def _outputs(self, rows):
        distances = np.linalg.norm(rows[:, None].astype(np.float64) - self.centres_, axis=2)
        return -distances, distances.min(axis=1)


class Flipped(NearestCentre):
    def novelty_score(self, X):
        return -super().novelty_score(X)


class NotFinite(NearestCentre):
    def novelty_score(self, X):
        return super().novelty_score(X) * np.inf


class NeverNovel(NearestCentre):
    def predict(self, X):
        return self.predict_known(X)


class NoNovelColumn(NearestCentre):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, :-1]


class NotReturned(NearestCentre):
    def fit(self, X, y, X_target=None):
        super().fit(X, y, X_target)


class Unseeded(NearestCentre):
    def _fit(self, problem):
        state = super()._fit(problem)
        return {"centres_": state["centres_"] + np.random.default_rng().normal(size=state["centres_"].shape)}


class Remembers(NearestCentre):
    """The mean of the first rows it was ever fitted on becomes part of every score."""

    def _fit(self, problem):
        self._first = getattr(self, "_first", problem.X.mean())
        return super()._fit(problem)

    def _outputs(self, rows):
        logits, score = super()._outputs(rows)
        return logits, score + self._first


class LeavesBehind(NearestCentre):
    """An attribute of a fit with a target stays after a fit without one."""

    def _fit(self, problem):
        if problem.X_target is not None:
            self._own_share = 0.2
        return super()._fit(problem)


class ByIndex(NearestCentre):
    def _outputs(self, rows):
        logits, score = super()._outputs(rows)
        return logits, score + 1e-3 * np.arange(len(rows))


class ByBatch(NearestCentre):
    def _outputs(self, rows):
        logits, score = super()._outputs(rows)
        return logits, score - rows.mean()


class LabelsAsText(NearestCentre):
    def predict(self, X):
        return super().predict(X).astype(str)


class BySinglePrecision(NearestCentre):
    def _outputs(self, rows):
        logits, score = super()._outputs(rows)
        return logits, score + 0.1 * (rows.dtype == np.float32)


class RefusesOneClass(NearestCentre):
    def predict_known(self, X):
        return super().predict_known(X) + (len(self.classes_) == 1)


class AlwaysNovel(NearestCentre):
    def predict(self, X):
        labels = super().predict(X)
        return labels if self.n_target_ else np.full_like(labels, self.novel_label_)


class WritesToInput(NearestCentre):
    def fit(self, X, y, X_target=None):
        X -= X.mean(axis=0)
        return super().fit(X, y, X_target)


class SeedsGlobally(NearestCentre):
    def _fit(self, problem):
        np.random.seed(0)  # noqa: NPY002  what the check is there to find
        return super()._fit(problem)


class LostByPickle(NearestCentre):
    def __setstate__(self, state):
        super().__setstate__(state)
        self.centres_ = self.centres_ + 1


class LostBySaving(NearestCentre):
    """Scores with a private attribute, which a model folder does not hold."""

    def _fit(self, problem):
        self._offset = 1.0
        return super()._fit(problem)

    def _outputs(self, rows):
        logits, score = super()._outputs(rows)
        return logits, score + getattr(self, "_offset", 0.0)


BROKEN = [
    ("check_score_direction", Flipped, AssertionError, "is the sign of the score flipped"),
    ("check_score_direction", NotFinite, AssertionError, "must be finite"),
    ("check_predictions_follow_scores", NeverNovel, AssertionError, "novel exactly where"),
    ("check_predictions_follow_scores", NotReturned, AssertionError, "fit must return self"),
    ("check_probabilities", NoNovelColumn, AssertionError, "k \\+ 1 columns"),
    ("check_seed_determinism", Unseeded, AssertionError, "two fits with one seed differ"),
    ("check_refit", Remembers, AssertionError, "a refit on other data differs from a fresh fit"),
    ("check_refit", LeavesBehind, AssertionError, "keeps attributes of the earlier fit: _own_share"),
    ("check_row_order_invariance", ByIndex, AssertionError, "Not equal to tolerance"),
    ("check_batch_size_invariance", ByBatch, AssertionError, "Not equal to tolerance"),
    ("check_label_kinds", LabelsAsText, AssertionError, "predict returned other labels"),
    ("check_float_precisions", BySinglePrecision, AssertionError, "Not equal to tolerance"),
    ("check_one_known_class", RefusesOneClass, AssertionError, "must return the one known class"),
    ("check_without_target", AlwaysNovel, AssertionError, "known classes only without a target"),
    ("check_inputs_untouched", WritesToInput, ValueError, "read-only"),
    ("check_global_state_untouched", SeedsGlobally, AssertionError, "changed a global random state"),
    ("check_joblib_round_trip", LostByPickle, AssertionError, "joblib changed the model"),
    ("check_save_and_load", LostBySaving, AssertionError, "saving and loading changed the model"),
]


@pytest.fixture
def registered(monkeypatch):
    """Registers a class for one test, as models of registered methods only can be saved."""
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))

    def add(cls):
        path = f"{cls.__module__}:{cls.__qualname__}"
        register(Method(cls.__name__, path, cls.__name__, "this test", "nothing", "nothing"))
        return cls

    return add


def test_a_method_that_keeps_the_contract_passes_every_check(registered):
    check_open_set_estimator(registered(NearestCentre)())


@pytest.mark.parametrize(
    ("name", "broken", "error", "message"), BROKEN, ids=lambda value: getattr(value, "__name__", None)
)
def test_every_check_finds_what_it_is_there_for(name, broken, error, message, registered):
    check = {check.__name__: check for check in open_set_checks()}[name]
    with pytest.raises(error, match=message):
        check(Subject(registered(broken)()))


def test_there_is_a_broken_method_for_every_check():
    assert {name for name, *_ in BROKEN} == {check.__name__ for check in open_set_checks()}


def test_saving_is_checked_for_registered_methods_only():
    check_save_and_load(Subject(LostBySaving()))


@pytest.mark.parametrize("model", [KNN(), pytest.param(SourceOnly(max_steps=300), marks=pytest.mark.slow)])
def test_a_refit_of_the_librarys_own_equals_a_fresh_fit(model):
    check_refit(Subject(model))


def test_a_floor_can_be_given():
    with pytest.raises(AssertionError, match="below the floor 1.01"):
        check_open_set_estimator(NearestCentre(), auroc_floor=1.01)


def test_the_subject_finds_the_kind_of_input_an_estimator_takes():
    assert Subject(ANNA()).input == "cells" and Subject(SourceOnly()).input == "table"
    assert Subject(type("Mine", (ANNA,), {})()).input == "cells", "by its tags, where it is not registered"
    assert Subject(NearestCentre(), input="cells").data.X.ndim == 3
    assert PROBLEMS.keys() == INPUTS.keys()
    with pytest.raises(ValueError, match="input='images'"):
        check_open_set_estimator(SourceOnly(), input="images")


def test_the_shared_fit_is_made_once_seeded_and_without_warnings():
    subject = Subject(NearestCentre(fpr=1e-6))  # so small a rate takes more rows than there are
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert subject.fitted is subject.fitted
    assert subject.fitted.random_state == 0
