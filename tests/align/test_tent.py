"""Entropy adaptation: the gradient by differences, what moves, and the route through CoLOR."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from openset.align import Tent


def moved_classes(k, seed=0, n=300, move=5.0):
    """Rows of k classes, and target rows that all moved along the first feature, with their truth."""
    random = np.random.default_rng(seed)
    centres = 4 * np.eye(k, 5)
    y, truth = random.integers(0, k, n), random.integers(0, k, n)
    X = centres[y] + random.normal(size=(n, 5))
    X_target = centres[truth] + random.normal(size=(n, 5))
    X_target[:, 0] += move
    return X, y, X_target, truth


def fitted(X, y, X_target, **options):
    labels = np.concatenate([y, np.full(len(X_target), -1)])
    domain = np.repeat([1, -2], [len(X), len(X_target)])
    return Tent(**options).fit(np.concatenate([X, X_target]), labels, sample_domain=domain)


@pytest.mark.parametrize("k", [2, 4])
def test_the_gradient_is_that_of_the_entropy(k):
    X, y, X_target, _ = moved_classes(k)
    model = fitted(X, y, X_target, steps=0)
    Z = (X_target - model.mean_) / model.spread_
    _, gradient = model._entropy(Z)
    for row, name in enumerate(("scale_", "offset_")):
        for column in (0, 3):
            values = []
            for change in (1e-5, -1e-5):
                changed = clone(model)
                changed.__dict__.update({**model.__dict__, name: getattr(model, name).copy()})
                getattr(changed, name)[column] += change
                values.append(changed._entropy(Z)[0])
            assert gradient[row, column] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-3, abs=1e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_entropy_falls_and_a_move_of_all_classes_is_undone(k):
    X, y, X_target, truth = moved_classes(k)
    model = fitted(X, y, X_target)
    before, after = model.entropy_
    assert after < before
    plain = Tent().fit(X, y)
    assert model.score(X_target, truth) > 0.9 > plain.score(X_target, truth) + 0.1
    assert plain.entropy_ is None and (plain.scale_ == 1).all()


def test_without_target_rows_it_is_logistic_regression():
    X, y, *_ = moved_classes(3)
    model = Tent(C=0.5).fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    by_sklearn = LogisticRegression(C=0.5, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(X), by_sklearn.predict_proba(Z), atol=1e-8)


def test_it_adapts_the_known_classes_of_color(small):
    from openset.methods.color_paper import PaperCoLOR

    settings = {"max_steps": 40, "evaluate_every": 20, "fpr": 0.1, "random_state": 0, "grid": [0.1]}
    model = PaperCoLOR(**settings, classifier=Tent(steps=3), classifier_input="features")
    plain = PaperCoLOR(**settings)
    moved = small.X_target + 1.0
    model.fit(small.X, small.y, moved)
    plain.fit(small.X, small.y, moved)
    assert model.classifier_.entropy_[1] <= model.classifier_.entropy_[0]
    np.testing.assert_array_equal(model.novelty_score(moved), plain.novelty_score(moved))


def test_in_a_pipeline_it_adapts_too(small):
    from openset.methods._known_classifier import fit_classifier, takes_domains

    pipeline = make_pipeline(StandardScaler(), Tent(steps=3))
    assert takes_domains(pipeline)
    codes = np.unique(small.y, return_inverse=True)[1]
    fitted = fit_classifier(pipeline, small.X, codes, small.X_target + 1.0)
    assert fitted[-1].entropy_[1] < fitted[-1].entropy_[0]


@pytest.mark.parametrize(
    ("options", "domain", "message"),
    [
        ({"steps": -1}, None, "steps=-1"),
        ({"learning_rate": 0.0}, None, "learning_rate=0"),
        ({}, [1, 1], "sample_domain has shape"),
        ({}, [-2, -2, -2, -2], "no positive entry"),
        ({}, ["a", "a", "b", "b"], "sample_domain has 'a', 'a', 'b', 'b': expected a positive number"),
        ({}, [1, 1, -2, 0], "sample_domain has 0: expected a positive number for each source row"),
        ({}, [1, 1, -2, np.nan], "sample_domain has nan: expected a positive number"),
    ],
)
def test_bad_input_is_told(options, domain, message):
    with pytest.raises(ValueError, match=message):
        Tent(**options).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], sample_domain=domain)
