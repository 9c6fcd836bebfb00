"""Several target domains in one fit: each is aligned, judged and scored on its own."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
import torch

import openset
from align_problems import make_classes
from openset import CoLOR
from openset.methods._domains import rows_of_domains
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


MONTHS = pd.date_range("2026-01-01", periods=2, freq="MS").repeat(40)
JANUARY = datetime.datetime(2026, 1, 1)


@pytest.mark.parametrize(
    ("domain", "key"),
    [
        pytest.param([np.int64(1)] * 40 + [np.int64(2)] * 40, 1, id="numpy's numbers in a list"),
        pytest.param(torch.tensor([1, 2]).repeat(40), 1, id="torch"),
        pytest.param(pd.Series(["a", "b"] * 40, dtype="category"), "a", id="categories"),
        pytest.param(pd.Series(MONTHS), JANUARY, id="pandas' dates"),
        pytest.param(MONTHS.to_numpy(), JANUARY, id="numpy's nanoseconds"),
        pytest.param(pd.Series(MONTHS).dt.to_period("M"), pd.Period("2026-01"), id="months"),
        pytest.param([True, False] * 40, True, id="booleans"),
    ],
)
def test_domains_of_every_type_are_found_by_the_values_that_were_given(domain, key):
    found = rows_of_domains(domain, 80)
    assert [len(rows) for rows in found.values()] == [40, 40] and len(found[key]) == 40


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        pytest.param(None, "fit_domains got no sample_domain: give the domain of each target row", id="none"),
        pytest.param([1] * 40 + ["b"] * 40, r"sample_domain mixes types \(int, str\)", id="two types"),
        pytest.param([1.0] * 40 + [float("nan")] * 40, "sample_domain has 40 missing entries", id="NaN"),
        pytest.param(pd.Series(["a", None] * 40), "sample_domain has 40 missing entries", id="missing"),
        pytest.param([{}] * 80, "entries of type dict: expected strings, numbers or dates", id="no value"),
        pytest.param(np.zeros((80, 2)), r"sample_domain has shape \(80, 2\): expected one entry per", id="2-D"),
        pytest.param(np.arange(80), "0 has 1 row, .* and 75 more, but a domain needs 40", id="each another"),
    ],
)
def test_errors_name_sample_domain_and_what_to_do(domain, message):
    with pytest.raises(ValueError, match=message):
        rows_of_domains(domain, 80)


def test_a_domain_that_moved_takes_no_part_in_training(sites, monkeypatch):
    X, y, X_target, domain, is_novel, _ = sites
    moved, learn, trained_on = domain == "moved", CoLOR._learn, []

    def learn_and_note(model, problem):
        trained_on.append(problem.target)
        learn(model, problem)

    monkeypatch.setattr(CoLOR, "_learn", learn_and_note)
    models = CoLOR(**SMALL, **HALVES).fit_domains(X, y, X_target, domain)
    np.testing.assert_array_equal(trained_on[0], X_target[~moved])  # in their order
    assert len(models["moved"].target_novelty_score_) == moved.sum()
    here = domain == "new class"
    assert auroc(is_novel[here], models["new class"].novelty_score(X_target[here])) > 0.99
    assert models["new class"].novelty_test_.p_value < 0.001
    CoLOR(**SMALL, **HALVES).fit_domains(X, y, X_target[moved], domain[moved])
    assert len(trained_on[1]) == moved.sum()  # where no other domain is left, it is trained on
