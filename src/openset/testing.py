"""Checks that every open-set method must pass; use them for your own method too.

>>> from openset import KNN
>>> from openset.testing import check_open_set_estimator
>>> check_open_set_estimator(KNN())  # silent, or an AssertionError with the reason
"""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from openset._utils.params import check_choice
from openset.errors import FitWarning
from openset.registry import method_of
from openset.shift.synthetic import BackgroundShift, make_background_shift, make_feature_maps
from openset.stats.metrics import auroc

Check = Callable[["Subject"], None]
DEFAULT_FLOOR = 0.9


class Subject:
    """An estimator to check, an easy problem without background shift, and one fit that the checks share."""

    def __init__(self, estimator: Any, auroc_floor: float | None = None, input: str | None = None) -> None:
        self.estimator = clone(estimator)
        if "random_state" in self.estimator.get_params():
            self.estimator.set_params(random_state=0)
        method = method_of(estimator)
        self.is_registered = method is not None
        self.auroc_floor = auroc_floor or (method.auroc_floor if method else DEFAULT_FLOOR)
        self.input = input or (method.input if method else _tagged_input(estimator))
        check_choice("input", self.input, PROBLEMS)
        if self.input == "names":
            self.estimator.set_params(candidate_embeddings=_candidate_names(self.data))

    @cached_property
    def data(self) -> BackgroundShift:
        """Three well separated classes and a new one of 20 %, in the shape that the method takes."""
        return PROBLEMS[self.input]()

    @cached_property
    def fitted(self) -> Any:
        """The fit that checks share; they must not change it."""
        return self.fit(self.data.X, self.data.y, self.data.X_target)

    def fit(self, X: Any, y: Any, X_target: Any = None) -> Any:
        """A fresh fit."""
        return _fit_quietly(clone(self.estimator), X, y, X_target)


def _fit_quietly(model: Any, X: Any, y: Any, X_target: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # so few rows cannot guarantee every rate
        returned = model.fit(X, y, X_target)
    assert returned is model, "fit must return self"
    return model


def _easy_table() -> BackgroundShift:
    return make_background_shift(
        n_source=600, n_target=600, n_test=300, n_features=10, n_classes=3, n_subtypes=1, shift=False,
        class_distance=8, subtype_distance=0, novel_distance=8, novel_fraction=0.2, random_state=3,
    )  # fmt: skip


def _easy_maps() -> BackgroundShift:
    return make_feature_maps(_easy_table(), n_cells=3, n_background=1, random_state=3)


def _candidate_names(data: BackgroundShift) -> NDArray[np.float64]:
    """Candidate names besides the known ones: that of the new class, and the opposites of the known classes."""
    return np.concatenate([data.novel_centre[None], -data.centres.mean(axis=1)])


PROBLEMS: dict[str, Callable[[], BackgroundShift]] = {
    "table": _easy_table,
    "cells": _easy_maps,
    "names": _easy_table,
}
"""An easy problem without background shift for each kind of input in ``openset.registry.INPUTS``."""


def _tagged_input(estimator: Any) -> str:
    """The kind of input of an estimator that is not registered, from its scikit-learn tags."""
    accepts = get_tags(estimator).input_tags
    return "cells" if accepts.three_d_array and not accepts.two_d_array else "table"


def check_open_set_estimator(
    estimator: Any, *, auroc_floor: float | None = None, input: str | None = None
) -> None:
    """Raise an AssertionError that says what is wrong if the estimator breaks the contract.

    ``auroc_floor`` is the least AUROC on an easy problem; default: the registry's, or 0.9. ``input`` is the kind
    of data that the estimator takes, a name in ``PROBLEMS``; default: the registry's, or by scikit-learn's tags.
    """
    subject = Subject(estimator, auroc_floor, input)
    for check in open_set_checks():
        check(subject)


def open_set_checks() -> Iterator[Check]:
    """The checks one by one, for test suites that report each by name."""
    yield check_score_direction
    yield check_predictions_follow_scores
    yield check_probabilities
    yield check_seed_determinism
    yield check_refit
    yield check_row_order_invariance
    yield check_batch_size_invariance
    yield check_label_kinds
    yield check_float_precisions
    yield check_one_known_class
    yield check_without_target
    yield check_inputs_untouched
    yield check_global_state_untouched
    yield check_joblib_round_trip
    yield check_save_and_load


def check_score_direction(subject: Subject) -> None:
    """Higher scores are more novel, with a high AUROC on an easy problem."""
    data = subject.data
    score = subject.fitted.novelty_score(data.X_test)
    assert score.shape == (len(data.X_test),), f"novelty_score must be one number per row, got {score.shape}"
    assert np.isfinite(score).all(), "novelty_score must be finite"
    reached = auroc(data.is_novel_test, score)
    assert reached >= subject.auroc_floor, (
        f"AUROC {reached:.3f} on an easy problem, below the floor {subject.auroc_floor}"
        + (": is the sign of the score flipped? Higher must be more novel." if reached < 0.5 else "")
    )


def check_predictions_follow_scores(subject: Subject) -> None:
    """A row is called novel exactly where its score is above ``threshold_``; others get their known class."""
    model, X = subject.fitted, subject.data.X_test
    labels, known = model.predict(X), model.predict_known(X)
    above = model.novelty_score(X) > model.threshold_
    assert np.array_equal(labels == model.novel_label_, above), (
        "predict is novel exactly where score > threshold_"
    )
    assert np.array_equal(labels[~above], known[~above]), (
        "predict must agree with predict_known for the other rows"
    )
    assert set(known.tolist()) <= set(model.classes_.tolist()), "predict_known must return known classes"
    shape = model.target_novelty_score_.shape
    assert shape == (len(subject.data.X_target),), (
        f"target_novelty_score_ needs a score per target row, got {shape}"
    )
    fraction = model.novel_fraction_
    assert 0 <= fraction.low <= fraction.value <= fraction.high <= 1, f"novel_fraction_ is not valid: {fraction}"


def check_probabilities(subject: Subject) -> None:
    """Probabilities have k + 1 columns and sum to one; novel is above one half exactly where it is predicted."""
    model, X = subject.fitted, subject.data.X_test
    p = model.predict_proba(X)
    assert p.shape == (len(X), len(model.classes_) + 1), f"expected k + 1 columns, got shape {p.shape}"
    assert (p >= 0).all(), "probabilities must not be negative"
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert np.array_equal(p[:, -1] > 0.5, model.predict(X) == model.novel_label_), (
        "the last column must be above one half exactly where predict is novel"
    )


def check_seed_determinism(subject: Subject) -> None:
    """The same seed gives the same scores, bit for bit."""
    data = subject.data
    again = subject.fit(data.X, data.y, data.X_target)
    _assert_same(again, subject.fitted, data.X_test, "two fits with one seed differ")


def check_refit(subject: Subject) -> None:
    """Nothing of an earlier fit remains: a refit equals a fresh fit, with a target and without."""
    data = subject.data
    rows = data.y < 2
    names = np.array(["ant", "bee"])[data.y[rows]]
    model = _fit_quietly(clone(subject.estimator), -data.X[rows], names, -data.X_target[::2])
    _fit_quietly(model, data.X, data.y, data.X_target)
    _assert_same(model, subject.fitted, data.X_test, "a refit on other data differs from a fresh fit")
    assert model.novel_fraction_ == subject.fitted.novel_fraction_, "novel_fraction_ depends on an earlier fit"
    _fit_quietly(model, data.X, data.y)
    fresh = subject.fit(data.X, data.y)
    left = sorted(vars(model).keys() - vars(fresh).keys())
    assert not left, f"a refit without a target keeps attributes of the earlier fit: {', '.join(left)}"
    _assert_same(model, fresh, data.X_test, "a refit without a target differs from a fresh fit")


def check_row_order_invariance(subject: Subject) -> None:
    """A row's score does not depend on its index."""
    X = subject.data.X_test
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(
        subject.fitted.novelty_score(X[order]), subject.fitted.novelty_score(X)[order], rtol=0, atol=1e-9
    )


def check_batch_size_invariance(subject: Subject) -> None:
    """A row's score does not depend on the rows scored with it."""
    X = subject.data.X_test[:40]
    whole = subject.fitted.novelty_score(X)
    for size in (1, 7):
        parts = [subject.fitted.novelty_score(X[i : i + size]) for i in range(0, len(X), size)]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=0, atol=1e-6)


def check_label_kinds(subject: Subject) -> None:
    """Labels may be strings, integers or booleans, and are returned unchanged."""
    data = subject.data
    two = data.y < 2
    for y, rows in (
        (np.array(["ant", "bee", "cat"])[data.y], slice(None)),
        (data.y.astype(np.int32) + 10, slice(None)),
        (data.y.astype(bool)[two], two),
    ):
        model = subject.fit(data.X[rows], y, data.X_target)
        assert model.classes_.tolist() == sorted(set(y.tolist())), f"classes_ is {model.classes_}"
        seen = set(model.predict(data.X_test).tolist())
        assert seen <= {*model.classes_.tolist(), model.novel_label_}, f"predict returned other labels: {seen}"
        expected = -1 if y.dtype.kind == "i" else "novel"
        assert model.novel_label_ == expected, f"novel_label_ is {model.novel_label_!r} for {y.dtype} labels"


def check_float_precisions(subject: Subject) -> None:
    """float32 and float64 rows both work, in fitting and in scoring."""
    data = subject.data
    half = subject.fit(data.X.astype(np.float32), data.y, data.X_target.astype(np.float32))
    reached = auroc(data.is_novel_test, half.novelty_score(data.X_test.astype(np.float32)))
    assert reached >= subject.auroc_floor, f"fitted on float32, AUROC is {reached:.3f}"
    double, single = (subject.fitted.novelty_score(data.X_test.astype(t)) for t in (np.float64, np.float32))
    np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-3)


def check_one_known_class(subject: Subject) -> None:
    """One known class and a target, which is PU learning, works."""
    data = subject.data
    model = subject.fit(data.X, np.zeros(len(data.X), int), data.X_target)
    shape = model.predict_proba(data.X_test).shape
    assert shape == (len(data.X_test), 2), f"expected probabilities of one class and of novel, got shape {shape}"
    labels = set(model.predict(data.X_test).tolist())
    assert labels <= {0, -1}, f"predict must return 0 or -1, got {labels}"
    assert (model.predict_known(data.X_test) == 0).all(), "predict_known must return the one known class"


def check_without_target(subject: Subject) -> None:
    """Without a target the estimator is a closed-set classifier that still has a novelty score."""
    data = subject.data
    model = subject.fit(data.X, data.y)
    assert set(model.predict(data.X_test).tolist()) <= set(data.y.tolist()), (
        "predict must return known classes only without a target"
    )
    shape = model.predict_proba(data.X_test).shape
    assert shape == (len(data.X_test), 3), f"expected k columns without a target, got shape {shape}"
    known = ~data.is_novel_test
    accuracy = (model.predict(data.X_test) == data.y_test)[known].mean()
    assert accuracy > 0.9, f"accuracy {accuracy:.2f} on an easy problem without a target"
    assert np.isfinite(model.novelty_score(data.X_test)).all(), (
        "novelty_score must be finite without a target too"
    )


def check_inputs_untouched(subject: Subject) -> None:
    """Fitting and scoring do not change the caller's arrays, and accept read-only ones."""
    data = subject.data
    arrays = [data.X.copy(), data.y.copy(), data.X_target.copy()]
    for array in arrays:
        array.flags.writeable = False
    model = subject.fit(*arrays)
    model.novelty_score(arrays[2])


def check_global_state_untouched(subject: Subject) -> None:
    """The global random states of NumPy and torch and the number of threads do not change."""
    before = _global_state()
    data = subject.data
    subject.fit(data.X, data.y, data.X_target).novelty_score(data.X_test)
    assert _global_state() == before, "fitting changed a global random state or the number of threads"


def _global_state() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002  the global state is what is checked
    state: tuple[Any, ...] = (kind, np.asarray(keys).tobytes(), *rest)
    if find_spec("torch"):
        import torch

        state += (torch.get_rng_state().numpy().tobytes(), torch.get_num_threads(), torch.is_grad_enabled())
    return state


def check_joblib_round_trip(subject: Subject) -> None:
    """joblib restores the same model."""
    import joblib

    buffer = io.BytesIO()
    joblib.dump(subject.fitted, buffer)
    buffer.seek(0)
    _assert_same(joblib.load(buffer), subject.fitted, subject.data.X_test, "joblib changed the model")


def check_save_and_load(subject: Subject) -> None:
    """A saved model loads with the same scores; checked for registered methods only, as only those load."""
    if not subject.is_registered:
        return
    from openset.persistence.model import load

    with tempfile.TemporaryDirectory() as folder:
        subject.fitted.save(folder)
        loaded = load(folder)
    _assert_same(loaded, subject.fitted, subject.data.X_test, "saving and loading changed the model")
    assert loaded.novel_fraction_ == subject.fitted.novel_fraction_, "novel_fraction_ was not saved exactly"
    assert loaded.threshold_ == subject.fitted.threshold_, "threshold_ was not saved exactly"


def _assert_same(model: Any, other: Any, X: NDArray[np.float64], message: str) -> None:
    assert np.array_equal(model.novelty_score(X), other.novelty_score(X)), message
    assert np.array_equal(model.predict_proba(X), other.predict_proba(X)), message
    assert np.array_equal(model.predict(X), other.predict(X)), message
