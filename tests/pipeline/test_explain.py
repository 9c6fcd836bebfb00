"""Groups and known classes: what is measured on validation rows, and what cannot be said is said so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from openset import CoLOR, Mahalanobis
from openset.data.readers.records import Records
from openset.pipeline.explain import (
    _accuracy,
    describe_accuracy,
    describe_groups,
    explain,
    find_groups,
    judge_known_classes,
)
from openset.pipeline.scored_table import scored_table
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
        for index, kind in enumerate((1, 2)):
            assert (kinds[found.labels == index] == kind).all()
            assert (kinds[list(found.groups[index].examples)] == kind).all()
            assert kinds[found.groups[index].medoid] == kind
            assert found.groups[index].share.value == (kinds == kind).mean()
        assert (found.labels[~called] == -1).all()
        assert describe_groups(found, 70).startswith("The 70 rows called new form 2 stable groups")
        assert describe_groups(found, 73).endswith("; 3 rows are in none of them.")
    none = find_groups(model, X, both, model.novelty_score(both), np.zeros(len(both), bool))
    assert len(none) == 0 and (none.labels == -1).all() and "nothing to group" in describe_groups(none, 0)
    few = find_groups(model, X, both, model.novelty_score(both), np.arange(len(both)) < 3)
    assert len(few) == 1 and "form one group: two groups need at least 20 rows." in describe_groups(few, 3)


@pytest.mark.parametrize(
    ("n", "called", "reason"),
    [
        (20, [False] * 9 + [True], "the source has fewer than 30 validation rows"),
        (240, [True] * 10, "every target row is called new"),
        (None, [False] * 10, "class 'eel' has no validation row"),
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
    mix, found = judge_known_classes(model, y[:n], known, np.array(called))
    assert not found.corrected and found.accuracy is None and reason in found.sentence
    kept = known[~np.array(called)]
    expected = [(kept == label).mean() if len(kept) else 0.0 for label in model.classes_]
    assert [shares.counted for shares in mix.values()] == expected
    assert [shares.target for shares in mix.values()] == expected
    assert [shares.source for shares in mix.values()] == [(y[:n] == label).mean() for label in model.classes_]


def test_an_explanation_has_groups_with_ids_and_corrected_shares(rows):
    X, y, target = rows
    model = fitted(Mahalanobis(random_state=0, fpr=0.05, validation_fraction=0.4), X, y, target)
    ids = np.array([f"t{row}" for row in range(len(target))])
    records = Records(np.arange(len(target)), ids=ids)
    scored = scored_table(model, model.target_predictions(), records, "rid")
    found, groups = explain(model, scored, X, y, target)
    assert found.called_novel == (scored.predicted == "novel").sum() >= 40
    for group in found.groups.groups:
        assert group.examples == ids[group.rows].tolist() and group.medoid == group.examples[0]
        assert (scored.predicted[group.rows] == "novel").all()
    is_called = scored.predicted == "novel"
    assert groups.shape == (len(target),) and (groups[~is_called] == -1).all()
    assert [int((groups == i).sum()) for i in range(groups.max() + 1)] == [g.size for g in found.groups.groups]
    largest = found.groups.groups[0]
    assert (groups[largest.rows] == 0).all()
    assert (target[largest.rows][:, 1] > 5).all() and largest.share.low < 40 / 220 < largest.share.high
    assert found.groups.sentence == describe_groups(
        find_groups(model, X, target, scored.novelty_score, scored.predicted == "novel"), found.called_novel
    )
    assert found.known_classes.corrected and found.known_classes.accuracy.value > 0.9
    assert list(found.class_mix) == ["cat", "dog"] and found.class_mix["cat"].source == (y == "cat").mean()
    assert found.class_mix["dog"].target == pytest.approx(2 / 3, abs=0.03)
    assert sum(shares.target for shares in found.class_mix.values()) == pytest.approx(1)


def test_a_confidence_that_says_nothing_gives_no_accuracy():
    y = np.array([0] * 70 + [1] * 30)
    tied = ValidationClasses(np.tile([1.0, 0.0], (100, 1)), y, np.tile([1.0, 0.0], (50, 1)), np.arange(50))
    assert _accuracy(tied, np.zeros(50)) is None and describe_accuracy(None) == ""
    telling = np.where(y == 0, np.linspace(0.7, 0.99, 100), np.linspace(0.5, 0.6, 100))
    graded = ValidationClasses(np.column_stack([telling, 1 - telling]), y, tied.target, tied.target_rows)
    found = _accuracy(graded, np.zeros(50))
    assert found.value == 1.0 and found.source_accuracy == 0.7 and "1.00 [" in describe_accuracy(found)
