"""Models of an earlier openset come back with the method and the parameters that their class resolved."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import openset
from openset import CoLOR, ConOp, PaperCoLOR
from openset.methods.color import as_groups
from openset.persistence.former import modernise
from openset.persistence.model import MANIFEST, _manifest_digest
from openset.registry import get_method

FOLDERS = Path(__file__).parents[1] / "net" / "folders" / "models"
PLAIN = {
    "optimizer": "adam", "momentum": 0.9, "tol": 1e-3, "dual_optimizer": "adam", "dual_learning_rate": 0.02,
    "class_loss_weight": 1.0, "members": "auto", "grid": "auto", "learning_rate": "auto", "max_steps": "auto",
    "evaluate_every": "auto", "backbone": None, "joint": True,
}  # fmt: skip


def resolved_then(selection, n_features, backbone, bounds, dropout, multiplier):
    """What the one class of then resolved: groups (bound, dropout, m), and the parameters that depended on it.

    Checked against that class itself, for every combination below, when it was split in two.
    """
    is_own = not (isinstance(bounds, str) and isinstance(dropout, str))
    auto = {"bounds": (0.1, 0.3, 1.0), "dropout": 0.0, "multiplier": 1.0}
    if selection == "paper":
        bounds = (math.inf,)
        auto["dropout"] = 0.4 if n_features >= 256 and backbone is None else 0.0
    elif backbone is not None:
        auto["bounds"] = (0.2,)
    elif n_features < 256:
        auto["multiplier"] = 0.6
    elif not is_own:
        auto = {"bounds": (0.1, 0.3, 0.1), "dropout": (0.0, 0.2, 0.2), "multiplier": (1.0, 0.6, 1.0)}
    given = {"bounds": bounds, "dropout": dropout, "multiplier": multiplier}
    value = {name: auto[name] if isinstance(v, str) else v for name, v in given.items()}
    each = [np.broadcast_to(value[name], len(value["bounds"])) for name in ("bounds", "dropout", "multiplier")]
    groups = [tuple(map(float, group)) for group in zip(*each, strict=True)]
    if selection == "paper":
        grid, others = [0.02, *(n / 100 for n in range(5, 50, 5))], (1, 1e-3, 3000, 250)
    else:
        grid = [0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.09, 0.13, 0.18, 0.25]
        others = (5 if backbone is None else 1, 3e-3, 1500, 125)
    return groups, grid, others


COMBINATIONS = list(
    itertools.product(
        ("color", "conop"),
        ("pooled", "paper"),
        (8, 255, 256, 768),
        (None, "resnet18"),
        ("auto", (0.2,), (0.2, 0.5, 2.0)),
        ("auto", 0.4, (0.1, 0.2, 0.3)),
        ("auto", 0.8, (1.0, 0.5, 2.0)),
    )
)


def test_every_combination_resolves_to_what_it_was():
    tried = 0
    for method, selection, n_features, *of_groups in COMBINATIONS:
        try:
            groups, grid, others = resolved_then(selection, n_features, *of_groups)
        except ValueError:
            continue  # more numbers than groups: that class refused it too
        backbone, bounds, dropout, multiplier = of_groups
        saved = {
            **PLAIN, "selection": selection, "backbone": backbone, "multiplier_bounds": bounds,
            "dropout": dropout, "logit_multiplier": multiplier, "joint": method == "color",
        }  # fmt: skip
        two_bodies = pytest.warns(UserWarning, match="fitted with joint=False, which CoLOR no longer has")
        with two_bodies if (method, selection) == ("conop", "pooled") else nullcontext():
            name, parameters = modernise(method, saved, n_features)
        model = get_method(name).make(**parameters)
        model.resolved_parameters_ = model._resolve(n_features)
        expected_class = CoLOR if selection == "pooled" else PaperCoLOR if method == "color" else ConOp
        assert type(model) is expected_class
        assert selection == "pooled" or model.joint == (method == "color")
        assert [tuple(group) for group in model._groups()] == groups, (method, selection, n_features, of_groups)
        assert list(model.grid) == pytest.approx(grid)
        assert (model._n_members(), model.learning_rate, model.max_steps, model.evaluate_every) == others
        if backbone is None or len(groups) == 1:  # several were refused then as they are now
            model._check_parameters()
        tried += 1
    assert tried == 504


def test_what_was_given_is_kept():
    saved = {
        **PLAIN, "selection": "pooled", "multiplier_bounds": "auto", "dropout": "auto", "members": 2,
        "logit_multiplier": "auto", "max_steps": 60, "evaluate_every": None, "grid": (0.1,),
        "learning_rate": 1e-2, "hidden": 32,
    }  # fmt: skip
    name, now = modernise("color", saved, 8)
    assert name == "color" and now["groups"] == "auto"
    assert (now["members"], now["max_steps"], now["evaluate_every"]) == (2, 60, None)
    assert (now["grid"], now["learning_rate"], now["hidden"]) == ((0.1,), 1e-2, 32)
    paper = modernise("color", {**saved, "selection": "paper", "members": "auto"}, 8)[1]
    assert paper["members"] == 1 and paper["max_steps"] == 60 and paper["dual_learning_rate"] == 0.02


def test_numbers_for_each_group_may_be_an_array_or_a_list():
    saved = {
        **PLAIN,
        "selection": "pooled",
        "multiplier_bounds": np.array([0.1, 0.3]),
        "logit_multiplier": [1, 2],
    }
    groups = modernise("color", {**saved, "dropout": np.array([0.0, 0.2])}, 8)[1]["groups"]
    assert as_groups(groups) == [(0.1, 0.0, 1.0), (0.3, 0.2, 2.0)]
    one = {**PLAIN, "selection": "paper", "dropout": (0.3,), "logit_multiplier": [1.2]}
    now = modernise("color", one, 8)[1]
    assert (now["dropout"], now["logit_multiplier"]) == (0.3, 1.2)


def test_one_body_or_two_is_no_longer_a_parameter_of_color():
    """Models saved after the class was split in two, and before ``joint`` became PaperCoLOR's own."""
    later = {**CoLOR(members=2).get_params(deep=False), "joint": True}
    later.pop("align")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        name, now = modernise("color", later, 8)
    assert name == "color" and now == {key: value for key, value in later.items() if key != "joint"}
    assert get_method(name).make(**now).align == "auto"
    with pytest.warns(UserWarning, match="fitted with joint=False, which CoLOR no longer has"):
        assert modernise("color", {**later, "joint": False}, 8) == ("color", now)
    paper = PaperCoLOR(joint=False).get_params(deep=False)
    assert modernise("color_paper", paper, 8)[1]["joint"] is modernise("conop", paper, 8)[1]["joint"] is False


def test_models_of_today_and_other_methods_come_back_as_they_are():
    today = CoLOR(groups=[(0.1, 0.0, 0.6)], members=2).get_params(deep=False)
    assert modernise("color", today, 8) == ("color", today)
    paper = PaperCoLOR(dual_learning_rate=0.06).get_params(deep=False)
    assert modernise("color_paper", paper, 8) == ("color_paper", paper)
    assert modernise("pulse", {"selection": "mine"}, 8) == ("pulse", {"selection": "mine"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("optimizer", "sgd"), ("momentum", 0.5), ("tol", 0.0), ("dual_optimizer", "sgd"),
        ("dual_learning_rate", 0.06), ("class_loss_weight", 2.0), ("joint", False),
    ],
)  # fmt: skip
def test_a_setting_that_color_no_longer_has_is_told(name, value):
    saved = {**PLAIN, "selection": "pooled", name: value}
    with pytest.warns(UserWarning, match=f"was fitted with {name}={value!r}, which CoLOR no longer has"):
        now = modernise("color", saved, 8)[1]
    assert name not in now and set(now) <= set(CoLOR._get_param_names())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert modernise("color", {**saved, "selection": "paper"}, 8)[1][name] == value, "PaperCoLOR has it"


@pytest.mark.parametrize("name", ["color", "color-paper", "conop-pooled"])
def test_folders_of_then_load_with_the_classes_of_today(name):
    two_bodies = pytest.warns(UserWarning, match="fitted with joint=False, which CoLOR no longer has")
    with two_bodies if name == "conop-pooled" else nullcontext():
        model = openset.load(FOLDERS / name)
    saved = json.loads((FOLDERS / name / MANIFEST).read_text())["parameters"]
    expected = {"color": CoLOR, "color-paper": PaperCoLOR, "conop-pooled": CoLOR}[name]
    assert type(model) is expected
    assert (model.hidden, model.max_steps) == (saved["hidden"], 60)
    assert getattr(model, "joint", None) == (saved["joint"] if expected is PaperCoLOR else None)
    bodies = {"shared"} if saved["joint"] else {"known", "novelty"}
    assert set(model.architecture_.bodies) == bodies
    model._check_parameters()


def test_a_folder_with_such_a_setting_loads_and_its_warning_points_at_the_caller(tmp_path):
    shutil.copytree(FOLDERS / "color", tmp_path / "model")
    path = tmp_path / "model" / MANIFEST
    content = json.loads(path.read_text())
    content["parameters"]["tol"] = 0.5
    path.write_text(json.dumps({**content, "sha256": _manifest_digest(content)}))
    with pytest.warns(UserWarning, match="fitted with tol=0.5, which CoLOR no longer has") as told:
        model = openset.load(tmp_path / "model")
    assert [Path(w.filename).name for w in told] == [Path(__file__).name]
    with np.load(FOLDERS.parent / "expected.npz") as expected:
        np.testing.assert_allclose(model.novelty_score(expected["X"]), expected["color score"], rtol=1e-5)
