"""Groups and known classes: rows that were held out are those judged, and what cannot be said is said so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from openset import CoLOR, Mahalanobis
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


def test_groups_point_at_target_rows(rows):
    X, y, target = rows
    other = np.random.default_rng(1).normal((0, -9, 9), 0.5, size=(30, 3))
    both = np.concatenate([target, other])
    kinds = np.where(np.arange(len(both)) >= len(target), 2, both[:, 1] > 5)
    for model in (Mahalanobis(random_state=0), CoLOR(grid=[0.2], groups=[(0.3,)], **QUICK)):
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
