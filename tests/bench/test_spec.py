from __future__ import annotations

import json

import pytest

from openset.bench.runs import expand
from openset.bench.spec import built_in_specs, load_spec, parse_spec
from openset.bench.summary import paper_figures
from openset.registry import get_method, methods
from openset.shift import PAPER_SEEDS

PROBLEM = '[[problem]]\ndataset = "digits"\n'
METHOD = '[[method]]\nname = "dd"\n'


def test_defaults_and_variants():
    spec = parse_spec(
        PROBLEM
        + 'preset = "amazon_reviews"\n'
        + METHOD
        + '[[method]]\nname = "color"\nparameters = { joint = false }\n'
        + '[[method]]\nname = "color"\nlabel = "β"\nsweep = { fpr = [0.01, 0.05] }\n',
        "mine",
    )
    (problem,) = spec.problems
    assert problem.settings == ("shift", "no-shift") and problem.seeds == PAPER_SEEDS and problem.novel == ()
    assert [(m.label, m.x, m.parameters) for m in spec.methods] == [
        ("dd", None, {}),
        ("color joint=False", None, {"joint": False}),
        ("β", 0.01, {"fpr": 0.01}),
        ("β", 0.05, {"fpr": 0.05}),
    ]


def test_a_problem_sweeps_an_option():
    spec = parse_spec(
        '[[problem]]\ndataset = "synthetic"\nlabel = "S"\nsweep = { novel_fraction = [0.1, 0.2] }\n' + METHOD, "s"
    )
    assert [(p.options, p.x, p.title) for p in spec.problems] == [
        ({"novel_fraction": 0.1}, 0.1, "S"),
        ({"novel_fraction": 0.2}, 0.2, "S"),
    ]


def test_all_means_every_method_that_takes_a_table():
    names = [m.name for m in parse_spec(PROBLEM + '[[method]]\nname = "all"', "s").methods]
    fewer = [m.name for m in parse_spec(PROBLEM + '[[method]]\nname = "all"\nbut = ["dd"]', "s").methods]
    assert fewer == [name for name in names if name != "dd"] != names
    assert names == [m.name for m in methods() if m.needs in ("nothing", "target rows")]
    assert {"color", "dd", "knn", "cac"} <= set(names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a =", "not valid TOML"),
        (METHOD, r"needs at least one \[\[problem\]\]"),
        (PROBLEM, r"needs at least one \[\[method\]\]"),
        ("speed = 3\n" + PROBLEM + METHOD, "spec 's': unknown key 'speed': expected some of title"),
        (PROBLEM + "sed = [1]\n" + METHOD, "spec 's', problem 1: unknown key 'sed'"),
        (PROBLEM + METHOD + "[[method]]\nlabel = 'x'", "method 2: the key 'name' is missing"),
        (PROBLEM + "seeds = ['a']\n" + METHOD, "an entry of seeds = 'a' is not valid: expected a int"),
        (PROBLEM + "seeds = []\n" + METHOD, "seeds is empty"),
        (PROBLEM + "settings = ['no']\n" + METHOD, "setting='no' is not valid: expected one of 'shift'"),
        (PROBLEM + METHOD + METHOD, "two methods are called 'dd'"),
        ("metrics = ['speed']\n" + PROBLEM + METHOD, "metric='speed' is not valid"),
        (PROBLEM + METHOD + "sweep = { a = [1], b = [2] }", "expected one name with a list of numbers"),
        (PROBLEM + METHOD + "preset = 'mnist'", "method 1: preset='mnist' is not valid"),
        ("table = 'long'\n" + PROBLEM + METHOD, "table='long' is not valid"),
        (PROBLEM + METHOD + "[figure]\nkind = 'pie'", "kind='pie' is not valid"),
        (PROBLEM + "[[method]]\nname = 'all'\nlabel = 'x'", r"method 1 \(all\): unknown key 'label'"),
    ],
)
def test_errors_name_the_place(text, message):
    with pytest.raises(ValueError, match=message):
        parse_spec(text, "s")


def test_loading_by_name_and_by_path(tiny_path, tmp_path):
    assert load_spec("quick").name == "quick"
    assert load_spec(str(tiny_path)).name == "tiny"
    with pytest.raises(ValueError, match="expected one of .*'quick'"):
        load_spec("quik")
    with pytest.raises(ValueError, match="no spec file"):
        load_spec(str(tmp_path / "none.toml"))


NAMED_BY_THE_PAPER = {
    "table-settings", "table-summary", "table-sun397-rn50", "table-sun397-vitl14", "table-cifar100",
    "table-amazon", "table-with-without-shift", "table-top1", "table-joint-learning", "table-target-recall",
    "table-msp", "table-synthetic", "ablation-grid-density", "ablation-grid-range", "figure-bars",
    "figure-alpha", "figure-beta", "quick",
}  # fmt: skip


@pytest.mark.parametrize(("name", "spec"), built_in_specs().items())
def test_built_in_specs_can_be_planned(name, spec):
    assert name == spec.name and spec.unavailable == []
    planned = expand(spec)
    assert planned and all(run.method not in ("zoc", "anna") for run in (plan.run for plan in planned))
    for plan in planned:  # what a run is given must be parameters of its method
        get_method(plan.run.method).make(**json.loads(plan.run.parameters))
    for problem in spec.problems:
        figures = [paper_figures(problem.paper, setting) for setting in problem.settings]
        assert problem.paper is None or any(figures)


def test_every_experiment_of_the_paper_has_a_spec():
    assert set(built_in_specs()) >= NAMED_BY_THE_PAPER
    assert built_in_specs()["quick"].missing_files(None) == []


def test_a_method_s_own_preset_or_none():
    problem = PROBLEM + 'preset = "amazon_reviews"\n'
    spec = parse_spec(problem + '[[method]]\nname = "color"\npreset = "none"\nparameters = { l2 = 0.5 }', "s")
    assert spec.methods[0].parameters_for(spec.problems[0]) == {"l2": 0.5}
    other = parse_spec(problem + '[[method]]\nname = "dd"\npreset = "cifar100"', "s")
    assert other.methods[0].parameters_for(other.problems[0])["hidden"] == 512


def test_what_is_not_registered_is_named():
    spec = parse_spec('[[problem]]\ndataset = "moon"\n[[method]]\nname = "magic"', "s")
    assert spec.unavailable == ["dataset moon", "method magic"]
