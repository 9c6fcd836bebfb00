from __future__ import annotations

import pytest

from openset.bench.spec import PAPER_SEEDS, built_in_specs, load_spec, parse_spec
from openset.registry import methods

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
        ({"novel_fraction": 0.1}, 0.1, "S 0.1"),
        ({"novel_fraction": 0.2}, 0.2, "S 0.2"),
    ]


def test_all_means_every_method_that_takes_a_table():
    names = [m.name for m in parse_spec(PROBLEM + '[[method]]\nname = "all"', "s").methods]
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


def test_built_in_specs_parse_and_quick_is_ready():
    specs = built_in_specs()
    assert all(name == spec.name for name, spec in specs.items())
    assert specs["quick"].unavailable == [] and specs["quick"].missing_files(None) == []


def test_what_is_not_registered_is_named():
    spec = parse_spec('[[problem]]\ndataset = "moon"\n[[method]]\nname = "magic"', "s")
    assert spec.unavailable == ["dataset moon", "method magic"]
