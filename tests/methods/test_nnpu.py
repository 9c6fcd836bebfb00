from __future__ import annotations

import numpy as np
import pytest

from openset import NNPU, UPU, make_background_shift
from openset.stats.metrics import auroc

QUICK = {"max_steps": 120, "evaluate_every": 40, "random_state": 0, "fpr": 0.05}


def test_it_is_upu_with_two_parameters_more_and_its_own_dropout():
    assert set(NNPU._get_param_names()) - set(UPU._get_param_names()) == {"beta", "gamma"}
    assert (NNPU().beta, NNPU().gamma) == (0.0, 1.0)
    assert NNPU(beta=0.1, gamma=2)._non_negative() == (0.1, 2.0) and UPU()._non_negative() is None
    assert NNPU()._resolve(256)["dropout"] == 0.2 and UPU()._resolve(256)["dropout"] == 0.4


@pytest.mark.parametrize("bad", [{"beta": -1}, {"beta": None}, {"gamma": 0}, {"gamma": "large"}])
def test_bad_parameters_are_named(bad, small):
    with pytest.raises(ValueError, match=next(iter(bad))):
        NNPU(**bad).fit(small.X, small.y, small.X_target)


def test_upu_is_nnpu_where_the_risk_stays_non_negative(small):
    unbiased = UPU(**QUICK, prior=0.05).fit(small.X, small.y, small.X_target)  # r ≥ 0 with so small a prior
    allowed = NNPU(**QUICK, prior=0.05, beta=0.0).fit(small.X, small.y, small.X_target)
    assert min(record["loss"] for record in allowed.history_) > 0
    np.testing.assert_array_equal(unbiased.novelty_score(small.X_test), allowed.novelty_score(small.X_test))
    # and where it falls below zero they part, unless it may
    over_fitted = {**QUICK, "prior": 0.95, "max_steps": 200}
    upu, nnpu, lenient = (
        m.fit(small.X, small.y, small.X_target)
        for m in (UPU(**over_fitted), NNPU(**over_fitted), NNPU(**over_fitted, beta=9.0))
    )
    assert not np.array_equal(upu.novelty_score(small.X_test), nnpu.novelty_score(small.X_test))
    np.testing.assert_array_equal(upu.novelty_score(small.X_test), lenient.novelty_score(small.X_test))


@pytest.mark.slow
def test_nnpu_beats_upu_where_upu_over_fits():
    data = make_background_shift(
        n_source=400, n_target=400, n_features=100, shift=False, novel_fraction=0.3, novel_distance=4,
        random_state=0,
    )  # fmt: skip
    reached = {}
    for cls in (UPU, NNPU):
        model = cls(prior=0.7, l2=0.0, max_steps=500, tol=0.0, fpr=0.05, random_state=0)
        model.fit(data.X, data.y, data.X_target)
        reached[cls] = auroc(data.is_novel_test, model.novelty_score(data.X_test))
    assert reached[NNPU] > reached[UPU]
