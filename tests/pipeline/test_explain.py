"""Groups and known classes: rows that were held out are those judged, and what cannot be said is said so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import softmax

from openset import KNN, CoLOR, DomainDiscriminator, Mahalanobis, PaperCoLOR
from openset.pipeline.explain import (
    _accuracy,
    describe_accuracy,
    describe_groups,
    find_groups,
    judge_known_classes,
)
from openset.problem import ValidationClasses
from product_files import make_rows

QUICK = {"max_steps": 20, "evaluate_every": 10, "hidden": 8, "random_state": 3}


def fitted(model, X, y, target):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, target)


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    return *make_rows(random, {"cat": 150, "dog": 90}), make_rows(random, {"cat": 60, "dog": 120, "new": 40})[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: KNN(random_state=3),
        lambda: DomainDiscriminator(members=2, **QUICK),
        lambda: CoLOR(grid=[0.1], groups=[(0.3, 0.0, 0.6)], **QUICK),
        lambda: PaperCoLOR(grid=[0.1], **QUICK),
    ],
    ids=["knn", "dd", "color", "paper"],
)
def test_rows_are_judged_by_members_that_did_not_train_on_them(make, rows):
    X, y, target = rows
    model = fitted(make(), X, y, target)
    split, found = model.fit_scores_.split, model.fit_scores_.validation_classes
    np.testing.assert_allclose(found.source.sum(axis=1), 1)
    if type(model) is CoLOR:  # every row once, by the member that kept it for validation
        assert len(split.folds) == 5 and len(found.y) == len(y)
        assert sorted(found.target_rows) == list(range(len(target)))
        for member, fold in enumerate(split.folds):
            logits = model._head_outputs(X)["classes"][member]
            start = sum(len(earlier.validation) for earlier in split.folds[:member])
            own = found.source[start : start + len(fold.validation)]
            np.testing.assert_allclose(own, softmax(logits[fold.validation], axis=1), rtol=1e-5)
            assert (model.classes_[found.y[start : start + len(fold.validation)]] == y[fold.validation]).all()
    else:
        assert all(not np.isin(split.calibration, fold.train).any() for fold in split.folds)
        assert (model.classes_[found.y] == y[split.calibration]).all() and len(found.target) == len(target)
        assert (model.classes_[found.target.argmax(axis=1)] == model.predict_known(target)).all()


def test_a_representation_has_every_member_and_body(rows):
    X, y, target = rows
    for joint, width in ((True, 5 * 8), (False, 2 * 5 * 8)):
        model = fitted(CoLOR(joint=joint, grid=[0.1], groups=[(0.3, 0.0, 0.6)], **QUICK), X, y, target)
        made = model.representation(target)
        assert made.shape == (len(target), width) and np.isfinite(made).all() and made.std() > 0
        np.testing.assert_array_equal(model.representation(target[7:9]), made[7:9])
    first = made[:, :8]  # of the first member's first body
    assert not any(np.allclose(first, made[:, start : start + 8]) for start in range(8, width, 8))
    closed = fitted(CoLOR(**QUICK), X, y, None)
    assert closed.representation(X).shape == (len(X), 5 * 8)


def test_groups_point_at_target_rows(rows):
    X, y, target = rows
    other = np.random.default_rng(1).normal((0, -9, 9), 0.5, size=(30, 3))
    both = np.concatenate([target, other])
    kinds = np.where(np.arange(len(both)) >= len(target), 2, both[:, 1] > 5)
    for model in (Mahalanobis(random_state=0), CoLOR(grid=[0.2], groups=[(0.3, 0.0, 0.6)], **QUICK)):
        fitted(model, X, y, both)
        called = kinds > 0
        found = find_groups(model, X, both, model.novelty_score(both), called)
        assert [group.size for group in found.groups] == [40, 30]
        for place, kind in enumerate((1, 2)):
            assert (kinds[found.labels == place] == kind).all()
            assert (kinds[list(found.groups[place].examples)] == kind).all()
            assert kinds[found.groups[place].medoid] == kind
            assert found.groups[place].share.value == (kinds == kind).mean()
        assert (found.labels[~called] == -1).all()
        assert describe_groups(found, 70).startswith("The 70 rows called novel fall into 2 groups")
        assert describe_groups(found, 73).endswith("; 3 are in none of them.")
    none = find_groups(model, X, both, model.novelty_score(both), np.zeros(len(both), bool))
    assert len(none) == 0 and (none.labels == -1).all() and "nothing to group" in describe_groups(none, 0)
    few = find_groups(model, X, both, model.novelty_score(both), np.arange(len(both)) < 3)
    assert len(few) == 1 and "there would have to be 20" in describe_groups(few, 3)


@pytest.mark.parametrize(
    ("n", "called", "reason"),
    [
        (20, [False] * 9 + [True], "fewer than 30 source rows were held out"),
        (240, [True] * 10, "every target row is called novel"),
        (None, [False] * 10, "class 'eel' has no held-out row"),
    ],
)
def test_where_shares_cannot_be_corrected_predictions_are_counted(rows, n, called, reason):
    X, y, _ = rows
    target = X[:10]
    if n is None:
        n = 240
        y = y.copy().astype(object)
        y[0] = "eel"  # one row, which must be trained on
        y = y.astype(str)
    model = fitted(Mahalanobis(random_state=0), X[:n], y[:n], target)
    known = model.predict_known(target)
    mix, found = judge_known_classes(model, X[:n], y[:n], target, known, np.array(called))
    assert not found.corrected and found.accuracy is None and reason in found.sentence
    kept = known[~np.array(called)]
    expected = [(kept == label).mean() if len(kept) else 0.0 for label in model.classes_]
    assert [shares.counted for shares in mix.values()] == expected
    assert [shares.target for shares in mix.values()] == expected
    assert [shares.source for shares in mix.values()] == [(y[:n] == label).mean() for label in model.classes_]


def test_a_confidence_that_says_nothing_gives_no_accuracy():
    y = np.array([0] * 70 + [1] * 30)
    tied = ValidationClasses(np.tile([1.0, 0.0], (100, 1)), y, np.tile([1.0, 0.0], (50, 1)), np.arange(50))
    assert _accuracy(tied, np.zeros(50)) is None and describe_accuracy(None) == ""
    telling = np.where(y == 0, np.linspace(0.7, 0.99, 100), np.linspace(0.5, 0.6, 100))
    graded = ValidationClasses(np.column_stack([telling, 1 - telling]), y, tied.target, tied.target_rows)
    found = _accuracy(graded, np.zeros(50))
    assert found.value == 1.0 and found.source_accuracy == 0.7 and "1.00 [" in describe_accuracy(found)
