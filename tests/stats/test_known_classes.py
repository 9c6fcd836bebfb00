from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from openset import make_background_shift
from openset.stats.known_classes import estimate_target_accuracy, target_class_shares


def fitted(seed, *, shift=True, label_shift=None, novel=0.1):
    """Validation probabilities and labels, target probabilities and labels; new rows have the label −1."""
    data = make_background_shift(
        n_source=1500,
        n_target=1500,
        n_test=1,
        n_features=15,
        n_classes=4,
        n_subtypes=3,
        class_distance=3,
        subtype_distance=3,
        novel_distance=6,
        novel_fraction=novel,
        shift=shift,
        random_state=seed,
    )
    X_target, y_target = data.X_target, data.y_target
    if label_shift is not None:
        keep = np.random.default_rng(seed).random(len(y_target)) < np.append(label_shift, 1.0)[y_target]
        X_target, y_target = X_target[keep], y_target[keep]
    model = LogisticRegression(max_iter=500).fit(data.X[:1000], data.y[:1000])
    return model.predict_proba(data.X[1000:]), data.y[1000:], model.predict_proba(X_target), y_target


def test_a_label_shift_is_undone():
    better = []
    for seed in range(5):
        source, y, target, y_target = fitted(seed, shift=False, label_shift=[1, 0.3, 0.1, 0.6])
        known = y_target >= 0
        truth = np.bincount(y_target[known], minlength=4) / known.sum()
        found = target_class_shares(source, y, target, novel_weight=~known)
        counted = np.bincount(target[known].argmax(axis=1), minlength=4) / known.sum()
        assert found.sum() == pytest.approx(1) and np.abs(found - truth).sum() / 2 < 0.05
        better.append(np.abs(found - truth).sum() < np.abs(counted - truth).sum())
    assert sum(better) >= 4


def test_a_known_solution_of_the_mixture():
    """Two classes with a classifier right at a rate of .8: the mix that explains the predictions is unique."""
    probabilities = np.array([[0.8, 0.2], [0.2, 0.8]])
    source = np.repeat(probabilities, [500, 500], axis=0)
    y = np.concatenate([np.repeat([0, 1], [400, 100]), np.repeat([0, 1], [100, 400])])
    target = np.repeat(probabilities, [620, 380], axis=0)  # .62 = .8π + .2(1 − π)
    assert target_class_shares(source, y, target) == pytest.approx([0.7, 0.3], abs=1e-4)


def test_accuracy_without_labels_is_nearer_than_the_sources():
    errors, covered = [], []
    for seed in range(8):
        source, y, target, y_target = fitted(seed)
        known = y_target >= 0
        truth = (target[known].argmax(axis=1) == y_target[known]).mean()
        found = estimate_target_accuracy(source, y, target, novel_weight=~known)
        errors.append((abs(found.value - truth), abs(found.source_accuracy - truth)))
        covered.append(found.low <= truth <= found.high)
        assert found.low <= found.value <= found.high
    estimate, sources = np.mean(errors, axis=0)
    assert estimate < 0.05 < sources and sum(covered) >= 6


def test_novel_rows_do_not_count():
    source, y, target, y_target = fitted(0, novel=0.3)
    novel = y_target < 0
    without = target_class_shares(source, y, target[~novel])
    assert target_class_shares(source, y, target, novel) == pytest.approx(without)
    assert estimate_target_accuracy(source, y, target, novel).value == pytest.approx(
        estimate_target_accuracy(source, y, target[~novel]).value
    )


def test_extreme_classifiers():
    sure = np.eye(3)[[0, 1, 2, 0]]
    assert estimate_target_accuracy(sure, [0, 1, 2, 0], sure).value == 1
    assert estimate_target_accuracy(sure, [1, 2, 0, 1], sure).value == 0
    # a class without a source row keeps no share
    assert target_class_shares(sure, [0, 1, 1, 0], sure[:2]).tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize(
    ("target", "weight", "message"),
    [
        (np.eye(3), None, "the same classes"),
        (np.eye(2), [0.5], "novel_weight"),
        (np.eye(2), [2.0, 0.0], "novel_weight"),
        (np.eye(2), [1.0, 1.0], "every target row is novel"),
    ],
)
def test_bad_input_is_named(target, weight, message):
    with pytest.raises(ValueError, match=message):
        target_class_shares(np.eye(2), [0, 1], target, weight)
