"""Several target domains in one fit: each is aligned, judged and scored on its own."""

from __future__ import annotations

import numpy as np
import pytest

import openset
from align_problems import make_classes
from openset import CoLOR
from openset.stats.metrics import auroc

SMALL = {"max_steps": 100, "evaluate_every": 25, "fpr": 0.1, "random_state": 0}
HALVES = {"members": 2, "validation_fraction": 0.5}  # every row is a validation row of one of two networks
MOVE = 5.0


@pytest.fixture(scope="module")
def sites():
    """Source, and three sites in mixed order: one like source, one that moved, one with a new class."""
    rows, y = make_classes(1500)
    domain = np.repeat(["like source", "moved", "new class"], 300)
    target, is_novel = rows[600:].copy(), np.zeros(900, bool)
    target[domain == "moved"] += MOVE
    is_novel[600:660] = True
    target[is_novel] = np.random.default_rng(5).normal(size=(60, rows.shape[1])) + 8 * np.eye(12)[7]
    order = np.random.default_rng(6).permutation(900)
    return rows[:600], y[:600], target[order], domain[order], is_novel[order], y[600:][order]


@pytest.fixture(scope="module")
def models(sites):
    X, y, X_target, domain, *_ = sites
    return CoLOR(**SMALL, **HALVES).fit_domains(X, y, X_target, domain)


def test_each_domain_has_a_model_of_its_own_on_shared_networks(models, sites):
    assert list(models) == ["like source", "moved", "new class"]
    first, *others = models.values()
    for model in others:
        assert model.weights_ is first.weights_ and model.selected_ == first.selected_
    assert [model.n_target_ for model in models.values()] == [300, 300, 300]
    assert len({model.threshold_ for model in models.values()}) == 3


def test_only_the_domain_that_moved_is_aligned(models):
    assert {name: model.alignment_.name for name, model in models.items()} == {
        "like source": "none",
        "moved": "classes",
        "new class": "none",
    }
    moved = models["moved"].alignment_
    assert moved.before.is_moved and not moved.after.is_moved
    assert models["moved"].resolved_parameters_["align"] == "classes"
    assert models["moved"].novelty_test_.limit == "aligned"


def test_a_new_class_is_proved_where_it_is_and_nowhere_else(models, sites):
    _, _, X_target, domain, is_novel, _ = sites
    found = {name: model.novelty_test_.p_value for name, model in models.items()}
    assert found["new class"] < 0.001 < 0.05 < found["like source"]
    model, here = models["new class"], domain == "new class"
    assert 0.1 < model.novel_fraction_.low <= 0.2
    assert auroc(is_novel[here], model.novelty_score(X_target[here])) > 0.99
    assert models["like source"].novel_fraction_.low == models["moved"].novel_fraction_.low == 0


def test_rows_of_a_domain_are_scored_as_in_the_fit(models, sites):
    _, _, X_target, domain, is_novel, y = sites
    for name, model in models.items():
        here = domain == name
        np.testing.assert_allclose(model.novelty_score(X_target[here]), model.fit_scores_.target_score, atol=1e-5)
        assert len(model.target_predictions().predicted) == len(model.target_novelty_score_) == here.sum()
        known = here & ~is_novel
        assert (model.predict_known(X_target[known]) == y[known]).mean() > 0.95


def test_the_model_of_a_domain_is_saved_like_any_other(models, sites, tmp_path):
    _, _, X_target, domain, *_ = sites
    rows = X_target[domain == "moved"][:50]
    models["moved"].save(tmp_path / "model")
    loaded = openset.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.novelty_score(rows), models["moved"].novelty_score(rows), atol=1e-6)
    assert loaded.threshold_ == models["moved"].threshold_


def test_one_domain_is_a_plain_fit(small):
    model = CoLOR(**SMALL, **HALVES)
    (alone,) = model.fit_domains(small.X, small.y, small.X_target, np.zeros(len(small.X_target))).values()
    assert not hasattr(model, "threshold_")  # the estimator itself stays unfitted
    whole = model.fit(small.X, small.y, small.X_target)
    assert alone.threshold_ == whole.threshold_
    assert alone.resolved_parameters_ == whole.resolved_parameters_
    np.testing.assert_array_equal(alone.novelty_score(small.X_test), whole.novelty_score(small.X_test))


def test_what_is_wrong_with_the_domains_is_said(small):
    def fit(domain, target=small.X_target):
        CoLOR(**SMALL).fit_domains(small.X, small.y, target, domain)

    with pytest.raises(ValueError, match="sample_domain has 3 entries but X_target has 240 rows"):
        fit([1, 2, 3])
    with pytest.raises(ValueError, match="'b' has 2 rows, but a domain needs 40"):
        fit(["a"] * 238 + ["b"] * 2)
    with pytest.raises(ValueError, match="fit_domains got no X_target"):
        fit([1], target=None)
