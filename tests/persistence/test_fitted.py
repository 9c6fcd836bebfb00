from __future__ import annotations

import numpy as np
import pytest

from openset import Mahalanobis
from openset._utils.params import fitted_attributes
from openset.persistence.fitted import FITTED, check_fitted, try_out


@pytest.fixture(scope="module")
def model(small):
    return Mahalanobis(validation_fraction=0.4, fpr=0.2).fit(small.X, small.y, small.X_target)


def fitted_of(model):
    return {name: getattr(model, name) for name in fitted_attributes(model) if name != "fit_scores_"}


def test_what_a_fit_sets_may_be_set(model):
    check_fitted(model, fitted_of(model))
    try_out(model)


def test_names_of_fitted_attributes_are_listed_or_of_a_method_of_another_package(model):
    class Theirs(Mahalanobis):
        pass

    check_fitted(Theirs(), {**fitted_of(model), "width_": 3.0})
    for name in ("predict", "_outputs", "__class__", "_width_", "no name_"):
        with pytest.raises(ValueError, match=f"'{name}' is no fitted attribute of Theirs"):
            check_fitted(Theirs(), {**fitted_of(model), name: 3.0})
    with pytest.raises(ValueError, match="'width_' is no fitted attribute of Mahalanobis"):
        check_fitted(Mahalanobis(), {**fitted_of(model), "width_": 3.0})


def test_nothing_of_the_class_is_replaced(model):
    class Theirs(Mahalanobis):
        rows_ = property(lambda self: 3)

    with pytest.raises(ValueError, match="'rows_' would replace a part of Theirs"):
        check_fitted(Theirs(), {**fitted_of(model), "rows_": 3.0})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_source_", -1, "no whole number"),
        ("n_source_", 2.0, "no whole number"),
        ("calibration_scores_", np.eye(2), "not a row of values"),
        ("classes_", np.array([]), "not a list of texts or of numbers"),
        ("classes_", np.array(["a", 1], dtype=object), "not a list of texts or of numbers"),
        ("classes_", np.array([{}], dtype=object), "not a list of texts or of numbers"),
        ("classes_", np.array(["a", "a"]), "a class twice"),
        ("threshold_", float("nan"), "is no number"),
        ("threshold_", "0", "is no number"),
    ],
)
def test_values_of_another_kind_are_refused(model, name, value, message):
    with pytest.raises(ValueError, match=message):
        check_fitted(model, {**fitted_of(model), name: value})


def test_a_model_that_cannot_score_is_found(model):
    broken = Mahalanobis()
    for name, value in fitted_of(model).items():
        setattr(broken, name, value)
    broken.means_ = model.means_[:, :3]
    with pytest.raises(ValueError, match="."):
        try_out(broken)


def test_the_list_holds_fitted_names_only():
    assert all(name.endswith("_") and not name.startswith("_") for name in FITTED)
