from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from openset import make_background_shift
from openset.stats.metrics import auprc


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


@pytest.mark.parametrize(
    "wrong", [{"n_source": 0}, {"novel_fraction": 1.0}, {"rare": 0}, {"n_subtypes": 1}, {"shift": "yes"}]
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_background_shift(**wrong)
