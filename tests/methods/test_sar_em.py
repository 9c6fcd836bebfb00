from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from openset import SAREM, make_background_shift
from openset.methods.sar_em import expected_known, log_likelihood
from openset.stats.metrics import auroc


def test_the_e_step_is_the_formula():
    assert expected_known(0.6, 0.5, 0.0) == pytest.approx(0.428571, abs=1e-6)
    assert expected_known(0.6, 0.5, 1.0) == 1
    f, e = np.random.default_rng(0).random((2, 50))
    np.testing.assert_allclose(expected_known(f, e, np.zeros(50)), f * (1 - e) / (f * (1 - e) + 1 - f))
    assert expected_known(1.0, 1.0, 0.0) == 0  # no division by zero


def test_the_expected_log_likelihood_is_the_formula():
    f, e, s = np.array([0.6, 0.3]), np.array([0.5, 0.2]), np.array([0.0, 1.0])
    q = 0.3 / 0.7
    expected = (q * np.log(0.3) + (1 - q) * np.log(0.4) + np.log(0.06)) / 2
    assert log_likelihood(f, e, s) == pytest.approx(expected)
    assert np.isfinite(log_likelihood(np.array([1.0]), np.array([1.0]), np.array([0.0])))


@pytest.mark.parametrize("refit", [True, False])
def test_polarity_f_is_high_on_known_rows_in_every_round(refit):
    """The score must not turn round after the first M-step, as it does in one public version."""
    data = make_background_shift(
        n_source=300, n_target=300, n_test=300, n_features=8, shift=False, random_state=0
    )
    for rounds in (1, 2, 5, 30):
        model = SAREM(max_steps=rounds, refit=refit, fpr=0.05, random_state=0)
        model.fit(data.X, data.y, data.X_target)
        assert auroc(data.is_novel_test, model.novelty_score(data.X_test)) > 0.9
        assert model.novelty_score(data.X).mean() < model.novelty_score(data.X_test[data.is_novel_test]).mean()
        assert model.n_steps_ == rounds == len(model.history_)


def test_the_likelihood_grows_and_the_rounds_end_by_themselves():
    data = make_background_shift(n_source=150, n_target=150, n_test=10, n_features=3, shift=False, random_state=0)
    model = SAREM(fpr=0.05, random_state=0).fit(data.X, data.y, data.X_target)
    assert 10 < model.n_steps_ < 500
    assert model.history_.log_likelihood[-1] > model.history_.log_likelihood[0]


def test_strength_em_undoes_part_of_a_background_shift():
    """One round still trusts "source against target", which sees the shift; the propensity then takes it up."""
    data = make_background_shift(n_source=600, n_target=600, n_features=20, random_state=0)
    first, last = (
        auroc(data.is_novel_test, model.novelty_score(data.X_test))
        for model in (
            SAREM(max_steps=rounds, refit=False, fpr=0.05, random_state=0).fit(data.X, data.y, data.X_target)
            for rounds in (1, 40)
        )
    )
    assert last > first + 0.05


def test_propensity_may_depend_on_the_given_columns_only(small):
    model = SAREM(max_steps=3, propensity_features=(1, 4), fpr=0.05, random_state=0)
    model.fit(small.X, small.y, small.X_target)
    assert np.flatnonzero(model.propensity_).tolist() == [1, 4, 8]
    with pytest.raises(ValueError, match="8 columns"):
        model.set_params(propensity_features=[8]).fit(small.X, small.y, small.X_target)


@pytest.mark.parametrize("k", [2, 3])
def test_known_classes_are_a_logistic_regression_on_source(small, k):
    rows = small.y < k
    model = SAREM(max_steps=2, standardize=None, random_state=0).fit(small.X[rows], small.y[rows])
    theirs = LogisticRegression(max_iter=1000).fit(small.X[rows], small.y[rows])
    np.testing.assert_allclose(model.predict_proba(small.X_test), theirs.predict_proba(small.X_test), atol=1e-6)


def test_target_validation_rows_train_nothing(small):
    model = SAREM(max_steps=3, fpr=0.05, random_state=0).fit(small.X, small.y, small.X_target)
    scored = ~np.isnan(model.target_novelty_score_)
    assert scored.sum() == pytest.approx(len(small.X_target) / 5, abs=1)
    changed = small.X_target.copy()
    changed[np.flatnonzero(scored)[0]] += 0.01
    again = SAREM(max_steps=3, fpr=0.05, standardize=None, random_state=0)
    one, other = (again.fit(small.X, small.y, t).known_.copy() for t in (small.X_target, changed))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "bad",
    [
        {"propensity_features": "a"}, {"propensity_features": []}, {"propensity_features": [-1]}, {"refit": 1},
        {"C": 0}, {"max_steps": 0}, {"standardize": "yes"},
    ],
)  # fmt: skip
def test_bad_parameters_are_named(bad, small):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SAREM(**bad).fit(small.X, small.y, small.X_target)
