from __future__ import annotations

import sys

import numpy as np
import pytest

from openset.errors import MissingExtraError
from openset.theory import LinearGaussianProblem, theorem_conditions
from openset.theory.figures import _regions, draw_map, draw_sweeps
from openset.theory.sweep import RuleMap, rule_map, sweep

PNG = b"\x89PNG\r\n\x1a\n"


def test_figures_without_matplotlib_name_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"openset\[plot\]"):
        draw_sweeps([], [], tmp_path / "x.png", novel_share=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("parameter", ["r_eta", "alpha"])
def test_map_is_drawn(parameter, tmp_path):
    problem = LinearGaussianProblem(d=400, r_mu=1.0, r_eta=1.0, alpha=0.2, n_source=40, n_target=20)
    draw_map(rule_map(problem, parameter, [0.1, 1.0, 5.0], [0.2, 0.6]), tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(PNG)


def test_sweeps_are_drawn_for_one_seed(tmp_path):
    problem = LinearGaussianProblem(d=120, r_mu=0.3, r_eta=1.0, n_source=20, n_target=20)
    r_eta = sweep(problem, "r_eta", [1.0, 0.5], seeds=[0], n_test=50)
    theta = sweep(problem, "theta", [1.0, 0.5], seeds=[0], n_test=50)
    draw_sweeps(r_eta, theta, tmp_path / "s.png", novel_share=0.15)
    assert (tmp_path / "s.png").stat().st_size > 10_000


def test_a_region_is_where_no_condition_fails():
    problem = LinearGaussianProblem(d=25_000, r_mu=1.0, r_eta=1.0, alpha=0.02, n_source=400, n_target=100)
    result = RuleMap(problem, "r_eta", np.array([0.01, 10.0]), np.array([0.01, 10.0]), {})
    region = _regions(result)["proposition 1 (DD)"]
    assert 0 < region.inside.mean() < 1
    for i, j in ((0, 89), (89, 0), (45, 45)):
        point = problem.with_(r_mu=float(region.x[j]), r_eta=float(region.y[i]))
        failed = theorem_conditions(point).failures("proposition 1 (DD)")
        assert region.inside[i, j] == (not failed)
