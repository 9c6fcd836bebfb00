from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from openset import make_background_shift
from openset.shift import make_feature_maps, make_subtype_shift, separability
from openset.stats.metrics import auprc, auroc


def test_proportions_are_as_asked_for():
    data = make_background_shift(n_source=6000, n_target=5000, novel_fraction=0.07, rare=0.2, random_state=1)
    assert data.novel_fraction == 0.07 == data.is_novel_target.mean()
    assert data.max_density_ratio == pytest.approx(4)
    np.testing.assert_allclose(data.source_mix.sum(axis=1), 1)
    shares = np.bincount(data.subtype, minlength=6) / 6000
    np.testing.assert_allclose(shares.reshape(3, 2) * 3, data.source_mix, atol=0.03)
    known = data.subtype_target[~data.is_novel_target]
    np.testing.assert_allclose(np.bincount(known).reshape(3, 2) / len(known) * 3, data.target_mix, atol=0.03)
    assert np.bincount(data.y).tolist() == [2000] * 3


def test_without_shift_both_mixes_are_equal():
    data = make_background_shift(shift=False, n_subtypes=3, random_state=0)
    assert data.max_density_ratio == 1


def test_the_new_class_is_separable_for_one_who_knows_it():
    data = make_background_shift(random_state=0)
    oracle = LogisticRegression(max_iter=500).fit(data.X_target, data.is_novel_target)
    assert auprc(data.is_novel_test, oracle.decision_function(data.X_test)) > 0.98


def test_one_seed_gives_one_problem():
    one, same, other = (make_background_shift(random_state=seed).X for seed in (3, 3, 4))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_a_new_class_that_resembles_a_known_one_escapes_doubt_but_not_the_oracle():
    def doubt(**options):
        data = make_background_shift(random_state=0, **options)
        classifier = LogisticRegression(max_iter=2000).fit(data.X, data.y)
        return data, auroc(data.is_novel_test, -classifier.predict_proba(data.X_test).max(axis=1))

    (plain, found), (alike, missed) = doubt(novel_distance=5.0), doubt(novel_distance=5.0, resembles=1.0)
    assert found > 0.95 and missed < 0.5
    rows = alike.X_target
    assert separability(rows[~alike.is_novel_target], rows[alike.is_novel_target]).auroc > 0.98
    assert np.linalg.norm(alike.novel_centre - alike.centres[0, 0]) == pytest.approx(5)
    assert np.array_equal(plain.X, alike.X)  # the known rows are the same draws


@pytest.mark.parametrize("distance", [0.5, 2.0])
def test_no_score_exceeds_the_auroc_bound_and_the_bayes_score_comes_near(distance):
    data = make_background_shift(
        n_test=40000, n_features=4, novel_fraction=0.5, novel_distance=distance, resembles=1.0, random_state=1
    )

    def log_density(centres, weights):
        squares = ((data.X_test[:, None] - centres) ** 2).sum(axis=2)
        return logsumexp(-squares / 2, b=weights, axis=1)

    novel = log_density(data.novel_centre[None], np.ones(1))
    known = log_density(data.centres.reshape(-1, 4), data.target_mix.ravel() / 3)
    best = auroc(data.is_novel_test, novel - known)
    assert data.auroc_bound - 0.05 < best < data.auroc_bound + 0.005


@pytest.mark.parametrize(
    "wrong",
    [
        {"resembles": 1.5},
        {"n_source": 0},
        {"novel_fraction": 1.0},
        {"rare": 0},
        {"n_subtypes": 1},
        {"shift": "yes"},
    ],
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_background_shift(**wrong)


def test_a_map_holds_its_row_and_as_many_background_cells_as_asked(small):
    centres = np.array([[100.0] * 8, [-100.0] * 8])
    data = make_feature_maps(small, n_cells=5, n_background=2, backgrounds=centres, random_state=0)
    for rows, maps in ((small.X, data.X), (small.X_target, data.X_target), (small.X_test, data.X_test)):
        assert maps.shape == (len(rows), 5, 8)
        background = np.abs(maps).min(axis=2) > 50
        assert (background.sum(axis=1) == 2).all()
        near = np.abs(maps - rows[:, None]).max(axis=2) < 4
        np.testing.assert_array_equal(near, ~background)
        assert len(np.unique(background, axis=0)) == 10, "background is at every position"
    np.testing.assert_array_equal(data.y_test, small.y_test)
    assert small.X.ndim == 2, "the table is left as it was"


def test_the_seed_decides_the_maps(small):
    one, same, other = (make_feature_maps(small, random_state=seed).X for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


@pytest.mark.parametrize("wrong", [{"n_cells": 0}, {"n_background": -1}, {"n_background": 6}, {"backgrounds": 0}])
def test_bad_numbers_of_cells_are_named(small, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name}="):
        make_feature_maps(small, **wrong)


def test_two_subtypes_change_their_shares_beside_a_new_class():
    data = make_subtype_shift(novel_fraction=0.1, share=0.9, n_source=4000, n_target=5000, random_state=0)
    assert data.X.shape == (4000, 20) and data.X_target.shape == (5000, 20)
    assert data.is_novel_target.sum() == 500
    known, novel = data.X_target[~data.is_novel_target], data.X_target[data.is_novel_target]
    # subtypes at ±2 on the first axis: two standard deviations from zero
    assert (data.X[:, 0] > 0).mean() == pytest.approx(0.5, abs=0.03)
    assert (known[:, 0] > 0).mean() == pytest.approx(0.9, abs=0.03)
    np.testing.assert_allclose(novel.mean(axis=0)[:3], [0, 8, 0], atol=0.2)
    np.testing.assert_allclose(data.X[:, 2:].std(axis=0), 1, atol=0.05)


def test_without_shift_subtypes_keep_equal_shares_in_target():
    data = make_subtype_shift(shift=False, n_target=5000, random_state=0)
    assert (data.X_target[~data.is_novel_target, 0] > 0).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("wrong", [{"n_features": 1}, {"share": 1.5}, {"n_target": 0}, {"shift": 1}])
def test_wrong_parameters_of_two_subtypes_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_subtype_shift(**wrong)
