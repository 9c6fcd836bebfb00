from __future__ import annotations

import math

import numpy as np
import pytest

from openset.bench.execute import execute
from openset.bench.problems import build_problem, get_source
from openset.bench.runs import expand
from openset.bench.spec import parse_spec
from openset.shift.digits import digits_problem
from openset.stats.metrics import auprc, auroc
from openset.theory.problem import LinearGaussianProblem
from openset.theory.sweep import sweep

SIZES = {"d": 300, "n_source": 60, "n_target": 30, "r_mu": 0.3, "alpha": 0.2}
SPEC = """
metrics = ["auroc", "auprc"]
[[problem]]
dataset = "linear-gaussian"
settings = ["shift"]
seeds = [0, 1]
options = { d = 300, n_source = 60, n_target = 30, r_mu = 0.3, alpha = 0.2, n_test = 100 }
sweep = { r_eta = [0.5, 1.5] }
[[method]]
name = "dd"
[[method]]
name = "color"
"""


def test_runs_equal_the_theory_s_sweep():
    base = LinearGaussianProblem(**SIZES, r_eta=1.0)
    outcomes = {
        (o.value, o.seed, o.rule): o
        for o in sweep(base, "r_eta", [0.5, 1.5], seeds=[0, 1], n_test=100, workers=1)
    }
    for plan in expand(parse_spec(SPEC, "s")):
        result = execute(plan.run, None)
        assert result.failure == ""
        expected = outcomes[plan.x, plan.run.seed, plan.run.method]
        assert result.metrics["auroc"] == pytest.approx(expected.auroc, abs=1e-9)
        assert result.metrics["auprc"] == pytest.approx(expected.auprc_test, abs=1e-9)
        assert result.metrics["certificate"] < 1e-9 and result.metrics["novel_fraction"] == 0.2


@pytest.mark.parametrize("theta", [math.pi / 2, math.pi / 4, 0.1])
def test_its_distributions_tell_every_new_row(theta):
    """The oracle that its pages state instead of measuring it."""
    gaussian = LinearGaussianProblem(**SIZES, r_eta=0.1, theta=theta)
    rows, is_novel = gaussian.sample_test(2000, 0)
    along = rows[:, :2] @ gaussian.eta_plane
    score = np.abs(along - gaussian.mean_known[:2] @ gaussian.eta_plane).round(12)
    assert auroc(is_novel, score) == auprc(is_novel, score) == 1
    assert "AUROC and AUPRC are 1" in get_source("linear-gaussian").no_oracle


def test_what_it_cannot_do_is_told():
    knn = parse_spec(SPEC.replace('"dd"', '"knn"'), "s")
    assert "method='knn' is not valid: expected one of 'dd'" in execute(expand(knn)[0].run, None).failure
    crowded = parse_spec(SPEC.replace("d = 300", "d = 4"), "s")
    assert "too many rows for its features" in execute(expand(crowded)[0].run, None).failure
    with pytest.raises(ValueError, match="always has a shift: set a smaller r_mu"):
        build_problem("linear-gaussian", "no-shift", "novel", 0)


def test_digits_are_the_demo_s_with_and_without_shift():
    split = digits_problem(0)
    shifted, level = (build_problem("digits", setting, "9", 0) for setting in ("shift", "no-shift"))
    assert (shifted.X == split.X).all() and (shifted.y_test == split.y_test).all()
    assert level.novel_fraction == pytest.approx(shifted.novel_fraction, abs=0.01)
    difference = [np.abs(p.X.mean(0) - p.X_target[p.y_target != "novel"].mean(0)).max() for p in (shifted, level)]
    assert difference[1] < difference[0]
