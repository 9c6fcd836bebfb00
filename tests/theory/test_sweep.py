from __future__ import annotations

import math

import numpy as np
import pytest

from openset.stats.metrics import auprc, auroc
from openset.theory import LinearGaussianProblem, max_margin_color
from openset.theory.margin import SOLVERS
from openset.theory.sweep import SharedDraw, rule_map, summarise, sweep

BASE = LinearGaussianProblem(d=300, r_mu=0.1, r_eta=1.0, alpha=0.15, n_source=160, n_target=40)


@pytest.mark.parametrize(("parameter", "values"), [("r_eta", [1.0, 0.4]), ("theta", [math.pi / 2, 0.4])])
def test_shared_noise_changes_nothing(parameter, values):
    """Every point equals the problem drawn, solved and tested on its own."""
    for outcome in sweep(BASE, parameter, values, seeds=[3], n_test=500):
        problem = BASE.with_(**{parameter: outcome.value})
        sample = problem.sample(3)
        weights = SOLVERS[outcome.rule](sample.source, sample.target).weights
        rows, is_novel = problem.sample_test(500, 3)
        assert outcome.auroc == pytest.approx(problem.auroc(weights), abs=1e-9)
        assert outcome.auroc_test == pytest.approx(auroc(is_novel, rows @ weights), abs=1e-9)
        assert outcome.auprc_test == pytest.approx(auprc(is_novel, rows @ weights), abs=1e-9)
        assert outcome.certificate <= 1e-8


def test_fewer_coordinates_keep_the_auroc():
    draw = SharedDraw(BASE, 0)
    assert draw.rows.shape == (200, 202)
    sample = BASE.sample(0)
    for rule, solver in SOLVERS.items():
        w, full = draw.solve(BASE, rule).weights, solver(sample.source, sample.target).weights
        assert BASE.auroc_in_plane(w[:2], float(w @ w))[0] == pytest.approx(BASE.auroc(full), abs=1e-9)


def test_map_is_made_of_single_solutions():
    found = rule_map(BASE, "alpha", [0.1, 1.0], [0.1, 0.3, 0.5], seeds=[0, 1])
    assert found.auroc["dd"].shape == (3, 2)
    expected = []
    for seed in (0, 1):
        problem = BASE.with_(alpha=0.3, r_mu=1.0)
        sample = problem.sample(seed)
        expected.append(problem.auroc(max_margin_color(sample.source, sample.target).weights))
    assert found.auroc["color"][1, 1] == pytest.approx(np.mean(expected), abs=1e-9)


def test_order_does_not_depend_on_threads_and_progress_is_complete():
    seen = []
    outcomes = sweep(
        BASE, "r_eta", [1.0, 0.5], seeds=[0, 1, 2], n_test=100, workers=2, update=lambda *a: seen.append(a)
    )
    assert [o.seed for o in outcomes[::4]] == [0, 1, 2]
    assert [done for done, _, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert {total for _, total, _ in seen} == {6}
    assert outcomes == sweep(BASE, "r_eta", [1.0, 0.5], seeds=[0, 1, 2], n_test=100, workers=1)


# r_eta, rule, exact AUROC, AUPRC on 200 test rows
GOLDEN = [
    (1.0, "dd", 0.6085465535, 0.1650808190),
    (1.0, "color", 0.8762204834, 0.4292149785),
    (0.4, "dd", 0.4120109450, 0.1124184805),
    (0.4, "color", 0.6851694859, 0.2030363679),
    (0.1, "dd", 0.1924576398, 0.0886623281),
    (0.1, "color", 0.3165935809, 0.0969111194),
]


def test_the_numbers_of_the_first_draw_stay_as_they_are():
    outcomes = sweep(BASE, "r_eta", [1.0, 0.4, 0.1], seeds=[0], n_test=200)
    for outcome, (value, rule, area, precision) in zip(outcomes, GOLDEN, strict=True):
        assert (outcome.value, outcome.rule) == (value, rule)
        assert outcome.auroc == pytest.approx(area, abs=1e-8)
        assert outcome.auprc_test == pytest.approx(precision, abs=1e-8)


def test_means_and_deviations_over_seeds():
    outcomes = sweep(BASE, "r_eta", [1.0], seeds=[0, 1, 2], n_test=100)
    first = summarise(outcomes)[0]
    values = [o.auroc for o in outcomes if o.rule == "dd"]
    assert (first.rule, first.value) == ("dd", 1.0)
    assert first.auroc == pytest.approx(np.mean(values))
    assert first.auroc_sd == pytest.approx(np.std(values, ddof=1))


def test_the_paper_s_table_in_small():
    """A tenth of the paper's rows and features: CoLOR above DD everywhere, both rise with r_η."""
    points = summarise(sweep(BASE, "r_eta", [1.0, 0.5, 0.2], seeds=range(8), n_test=100))
    dd, color = ([p.auroc for p in points if p.rule == rule] for rule in ("dd", "color"))
    assert all(c > d for c, d in zip(color, dd, strict=True))
    assert color == sorted(color, reverse=True)
    assert dd == sorted(dd, reverse=True)


def test_bad_arguments():
    with pytest.raises(ValueError, match="parameter='d'"):
        sweep(BASE, "d", [1.0])
    with pytest.raises(ValueError, match="0 values"):
        sweep(BASE, "r_eta", [])
    with pytest.raises(ValueError, match="workers=0"):
        sweep(BASE, "r_eta", [1.0], workers=0)
    with pytest.raises(ValueError, match="no test rows"):
        SharedDraw(BASE, 0).test(BASE, np.zeros(300))
