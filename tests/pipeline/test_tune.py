from __future__ import annotations

import json

import numpy as np
import pytest

import openset
from openset import KNN, CoLOR, Mahalanobis, make_background_shift
from openset.pipeline.tune import GRIDS, Simulation, TuneResult, _set_stage, _sizes

QUICK = {"max_steps": 40, "evaluate_every": 20, "hidden": 8, "groups": [(0.2, 0.0, 0.6)], "random_state": 0}


def problem(**options):
    """Three classes far apart; by default the target holds nothing new."""
    settings = {
        "n_source": 900, "n_target": 600, "n_features": 6, "shift": False, "n_subtypes": 1, "subtype_distance": 0,
        "class_distance": 12, "novel_distance": 12, "novel_fraction": 0, "random_state": 1,
    }  # fmt: skip
    return make_background_shift(**{**settings, **options})


def simulation(candidate="a", novel_class="x", novel_fraction=0.1, auprc=0.5, noticed=True):
    shares = novel_fraction, novel_fraction
    return Simulation(candidate, novel_class, *shares, auprc, auprc, 0.5, "…", noticed, 0.05, 1.0)


@pytest.fixture(scope="module")
def found():
    data = problem()
    return openset.tune(
        data.X,
        data.y,
        data.X_target,
        estimator=Mahalanobis(validation_fraction=0.4),
        novel_fractions=(0.2, 0.1),
        random_state=0,
    )


def test_every_class_and_share_is_simulated_and_an_easy_class_is_found(found):
    assert [(row.novel_class, row.novel_fraction) for row in found.table] == [
        (label, share) for label in (0, 1, 2) for share in (0.1, 0.2)
    ]
    for row in found.table:
        assert row.true_fraction == pytest.approx(row.novel_fraction, abs=0.01)
        assert row.auprc > 0.99 and row.auprc_source > 0.99 and row.recall > 0.9
        assert 0 < row.low <= row.novel_fraction + 0.02
        assert row.noticed and row.verdict == "a group stands out, not proved"
    assert found.detectable == {0: 0.1, 1: 0.1, 2: 0.1}
    assert found.best == "as it is" and found.best_parameters == {} and found.skipped == ()


def test_the_control_holds_none_of_the_class(found):
    assert [row.novel_class for row in found.controls] == [0, 1, 2]
    assert all(row.novel_fraction == row.true_fraction == 0 and np.isnan(row.auprc) for row in found.controls)
    assert not any(row.noticed for row in found.controls)
    assert len(found.notes) == 1 and "promise too much" in found.notes[0]


def test_a_real_new_class_shows_in_the_control_and_takes_its_verdicts_away():
    data = problem(novel_fraction=0.2)
    found = openset.tune(
        data.X, data.y, data.X_target, estimator=Mahalanobis(validation_fraction=0.4), novel_fractions=(0.1,)
    )
    # the new rows leave the target with those of the class they are taken for: of three controls two hold them
    noticed = {row.novel_class: row.noticed for row in found.controls}
    assert sorted(noticed.values()) == [False, True, True]
    assert all(found.detectable[label] is None for label, alarm in noticed.items() if alarm)
    assert "a new class of its own" in found.notes[1]


def test_no_target_row_is_read_but_as_a_row_and_results_repeat():
    data = problem(n_source=200, n_target=200)
    first, second = (
        openset.tune(data.X, data.y, data.X_target, estimator=KNN(fpr=0.1), novel_fractions=(0.1,)).to_dict()
        for _ in range(2)
    )
    for part in (*first["table"], *second["table"], *first["controls"], *second["controls"]):
        part.pop("seconds")
    assert first == second
    json.dumps(first, allow_nan=False)


def test_grids_are_candidates_and_the_best_has_the_highest_mean():
    data = problem(n_source=240, n_target=200)
    found = openset.tune(
        data.X,
        data.y.astype(str),
        data.X_target,
        estimator=CoLOR(**QUICK),
        grids={"low": (0.05, 0.1), "tiny": {"grid": (0.01,), "hidden": 1}},
        novel_fractions=(0.1,),
    )
    assert found.candidates == {"low": {"grid": (0.05, 0.1)}, "tiny": {"grid": (0.01,), "hidden": 1}}
    assert len(found.table) == 6 and len(found.controls) == 3
    assert {row.candidate for row in found.controls} == {found.best}
    assert found.mean_auprc[found.best] == max(found.mean_auprc.values())
    assert clone_with(found).get_params()["grid"] == found.best_parameters["grid"]
    frame = found.to_frame("polars")
    assert frame.shape[0] == 9 and frame["novel_class"].to_list()[:2] == ["0", "0"]


def clone_with(found):
    return CoLOR(**QUICK).set_params(**found.best_parameters)


def test_detectable_is_the_smallest_share_that_the_best_candidate_finds():
    table = (
        simulation(novel_fraction=0.05, noticed=False),
        simulation(novel_fraction=0.1),
        simulation(novel_fraction=0.2),
        simulation(novel_class="y", noticed=False),
        simulation(novel_class="z"),
        simulation(candidate="b", novel_fraction=0.05, auprc=0.1),
    )
    controls = (
        simulation(novel_fraction=0.0, noticed=False),
        simulation(novel_class="z", novel_fraction=0.0),
    )
    result = TuneResult(table, controls, {"a": {}, "b": {}}, "a", ())
    assert result.detectable == {"x": 0.1, "y": None, "z": None}
    assert result.alarmed == ("z",) and "where z is removed" in result.notes[1]


def test_a_small_class_makes_a_smaller_target_of_the_same_share():
    y = np.repeat([0, 1], [10, 90])
    X = np.arange(100.0)[:, None]
    stage = _set_stage(X, y, np.arange(1000.0, 1400.0)[:, None], 0, 0.25, 0)
    assert _sizes(stage, 0.1) == (10, 90) and _sizes(stage, 0.01) == (4, 396) and _sizes(stage, 0.0) == (0, 400)
    assert sorted(stage.novel[:, 0]) == list(range(10))
    others = np.concatenate([stage.X, stage.test])[:, 0]
    assert sorted(others) == list(range(10, 100)) and 20 <= len(stage.test) <= 25 and set(stage.y) == {1}


def test_classes_with_too_few_rows_are_left_out_and_named():
    data = problem(n_source=200, n_target=200)
    y = data.y.copy()
    y[:3] = 7
    found = openset.tune(data.X, y, data.X_target, estimator=KNN(fpr=0.1), novel_fractions=(0.1,))
    assert found.skipped == (7,) and {row.novel_class for row in found.table} == {0, 1, 2}
    assert "too few rows: 7" in found.notes[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"novel_fractions": ()}, "novel_fractions=\\(\\) is not valid"),
        ({"novel_fractions": (1.5,)}, "novel_fractions entry=1.5"),
        ({"novel_fractions": (0.001,)}, "Use larger novel_fractions"),
        ({"test_fraction": 0}, "test_fraction=0"),
        ({"grids": {}}, "grids is empty"),
        ({"grids": [{"depth": 3}]}, "KNN has no parameter 'depth'"),
        ({"grids": GRIDS}, "KNN has no parameter 'grid'"),
    ],
)
def test_bad_input(small, options, message):
    with pytest.raises(ValueError, match=message):
        openset.tune(small.X, small.y, small.X_target, **{"estimator": KNN(fpr=0.1), **options})


def test_one_class_leaves_nothing_to_know(small):
    with pytest.raises(ValueError, match="one class only"):
        openset.tune(small.X, np.zeros(len(small.X)), small.X_target)
