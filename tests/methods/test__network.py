"""What all networks have in common beside the contract."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.special import softmax

from openset import (
    ANNA,
    ARPL,
    BODA,
    CAC,
    KNN,
    MSP,
    NNPU,
    PULSE,
    SHOT,
    UPU,
    CoLOR,
    DomainDiscriminator,
    PaperCoLOR,
    SourceOnly,
)
from openset.errors import FitWarning
from openset.shift.synthetic import make_background_shift, make_feature_maps
from product_files import make_rows

QUICK = {"max_steps": 20, "evaluate_every": 10, "hidden": 8, "random_state": 3}

WIDE = {
    **dict.fromkeys((ARPL, BODA, CAC, MSP, PULSE, UPU, DomainDiscriminator, SourceOnly), 0.4),
    NNPU: 0.2,
    SHOT: 0.0,
}


@pytest.mark.parametrize("method", WIDE, ids=lambda m: m.__name__)
@pytest.mark.parametrize("n_features", [255, 256])
def test_wide_features_are_trained_with_dropout(method, n_features):
    data = make_background_shift(n_source=60, n_target=50, n_features=n_features, random_state=0)
    model = method(fpr=0.2, max_steps=4, evaluate_every=2, random_state=0).fit(data.X, data.y, data.X_target)
    assert model.architecture_.dropout == (WIDE[method] if n_features == 256 else 0)
    assert model.get_params()["dropout"] == "auto"


def test_anna_goes_by_the_width_of_a_cell():
    model = ANNA(fpr=0.2, max_steps=4, evaluate_every=2, random_state=0)
    for n_cells, n_features, dropout in ((4, 256, 0.3), (256, 4, 0.0)):
        table = make_background_shift(n_source=60, n_target=50, n_features=n_features, random_state=0)
        data = make_feature_maps(table, n_cells=n_cells, random_state=0)
        assert model.fit(data.X, data.y, data.X_target).architecture_.dropout == dropout


def test_a_dropout_that_was_given_is_kept():
    data = make_background_shift(n_source=60, n_target=50, n_features=256, random_state=0)
    model = DomainDiscriminator(dropout=0.1, fpr=0.2, max_steps=4, evaluate_every=2)
    assert model.fit(data.X, data.y, data.X_target).architecture_.dropout == 0.1


def test_a_backbone_brings_its_own_dropout():
    assert DomainDiscriminator(backbone=torch.nn.Identity())._resolve(300) == {"dropout": 0.0}
    assert DomainDiscriminator()._resolve(300) == {"dropout": 0.4}


def test_another_word_for_dropout_is_an_error(small):
    with pytest.raises(ValueError, match="dropout='some'"):
        DomainDiscriminator(dropout="some").fit(small.X, small.y, small.X_target)


# ---------------------------------------------------------------------- rows that a member did not train on


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    return *make_rows(random, {"cat": 150, "dog": 90}), make_rows(random, {"cat": 60, "dog": 120, "new": 40})[0]


def fitted(model, X, y, target):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return model.fit(X, y, target)


@pytest.mark.parametrize(
    "make",
    [
        lambda: KNN(random_state=3),
        lambda: DomainDiscriminator(members=2, **QUICK),
        lambda: PaperCoLOR(grid=[0.1], **QUICK),
    ],
    ids=["knn", "dd", "paper"],
)
def test_the_whole_model_judges_the_classes_of_calibration_rows(make, rows):
    X, y, target = rows
    model = fitted(make(), X, y, target)
    split, found = model.fit_scores_.split, model.fit_scores_.validation_classes
    np.testing.assert_allclose(found.source.sum(axis=1), 1)
    assert all(not np.isin(split.calibration, fold.train).any() for fold in split.folds)
    assert (model.classes_[found.y] == y[split.calibration]).all() and len(found.target) == len(target)
    assert (model.classes_[found.target.argmax(axis=1)] == model.predict_known(target)).all()
    own = model.predict_known(X[split.calibration])
    assert (model.classes_[found.source.argmax(axis=1)] == own).all()


def test_where_every_row_is_a_validation_row_each_member_judges_the_classes_of_its_own(rows):
    X, y, target = rows
    model = fitted(CoLOR(grid=[0.1], groups=[(0.3,)], **QUICK), X, y, target)
    folds, found = model.fit_scores_.split.folds, model.fit_scores_.validation_classes
    np.testing.assert_allclose(found.source.sum(axis=1), 1)
    assert len(folds) == 5 and len(found.y) == len(y) and sorted(found.target_rows) == list(range(len(target)))
    for member, fold in enumerate(folds):
        logits = model._head_outputs(X)["classes"][member]
        start = sum(len(earlier.validation) for earlier in folds[:member])
        own = found.source[start : start + len(fold.validation)]
        np.testing.assert_allclose(own, softmax(logits[fold.validation], axis=1), rtol=1e-5)
        assert (model.classes_[found.y[start : start + len(fold.validation)]] == y[fold.validation]).all()


def test_a_representation_has_every_member_and_body(rows):
    X, y, target = rows
    for joint, width in ((True, 5 * 8), (False, 2 * 5 * 8)):
        model = fitted(PaperCoLOR(grid=[0.1], members=5, joint=joint, **QUICK), X, y, target)
        made = model.representation(target)
        assert made.shape == (len(target), width) and np.isfinite(made).all() and made.std() > 0
        np.testing.assert_array_equal(model.representation(target[7:9]), made[7:9])
    first = made[:, :8]  # of the first member's first body
    assert not any(np.allclose(first, made[:, start : start + 8]) for start in range(8, width, 8))
    closed = fitted(CoLOR(**QUICK), X, y, None)
    assert closed.representation(X).shape == (len(X), 5 * 8)
