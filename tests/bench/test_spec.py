"""Specs of experiments: what a file says, and what is wrong with it in one sentence that names the entry."""

from __future__ import annotations

import json

import pytest

from mutations import mutations, outcome, toml_file
from openset.bench.paper import paper_figures
from openset.bench.problems import get_source, source_for
from openset.bench.runs import expand
from openset.bench.spec import built_in_specs, load_spec, parse_spec
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
        (
            'table = "suite"\n'
            + PROBLEM
            + '[[method]]\nname = "color"\nlabel = "color"\nsweep = { fpr = [0.1] }',
            "'suite' has no room for a sweep",
        ),
        (METHOD, r"needs at least one \[\[problem\]\]"),
        (PROBLEM, r"needs at least one \[\[method\]\]"),
        ("speed = 3\n" + PROBLEM + METHOD, "spec 's': 'speed' is unknown. Known are title, note, table, metrics"),
        (PROBLEM + "sed = [1]\n" + METHOD, "spec 's', problem 1: 'sed' is unknown. Did you mean 'seeds'"),
        (PROBLEM + METHOD + "[[method]]\nlabel = 'x'", "method 2: name is missing"),
        (PROBLEM + "seeds = ['a']\n" + METHOD, r"problem 1: seeds\[0\] is text, expected a whole number"),
        (PROBLEM + "seeds = [-1]\n" + METHOD, "problem 1: seed -1 is not valid: expected an integer from 0"),
        (PROBLEM + f"seeds = [{2**63}]\n" + METHOD, "problem 1: seed 9223372036854775808 is not valid"),
        (PROBLEM + "seeds = []\n" + METHOD, "seeds is empty"),
        (PROBLEM + "settings = ['no']\n" + METHOD, "setting='no' is not valid: expected one of 'shift'"),
        (PROBLEM + METHOD + METHOD, "two methods are called 'dd'"),
        ("metrics = ['speed']\n" + PROBLEM + METHOD, "metric='speed' is not valid"),
        (PROBLEM + METHOD + "sweep = { a = [1], b = [2] }", "expected one name with a list of numbers"),
        (PROBLEM + METHOD + "preset = 'mnist'", "method 1: preset='mnist' is not valid"),
        ("table = 'long'\n" + PROBLEM + METHOD, "table='long' is not valid"),
        (PROBLEM + METHOD + "[figure]\nkind = 'pie'", "kind='pie' is not valid"),
        (
            PROBLEM + "[[method]]\nname = 'all'\nlabel = 'x'",
            r"method 1 \(all\): 'label' is unknown. Known are name, but",
        ),
        ("title = ['a']\n" + PROBLEM + METHOD, "title is a list, expected text"),
        ("problem = [1, 2]\n" + METHOD, "problem 1 is a whole number, expected a table of names"),
        ("method = ['dd']\n" + PROBLEM, "method 1 is text, expected a table of names"),
        ("figure = 3\n" + PROBLEM + METHOD, "figure is a whole number, expected a table of names"),
        (
            PROBLEM + METHOD + "[figure]\nkind = 'bars'\nx_label = 3",
            "figure: x_label is a whole number, expected",
        ),
        (PROBLEM + METHOD + "[figure]\nkind = 'bars'\nmetrics = []", "figure: metrics is empty"),
        ("metrics = []\n" + PROBLEM + METHOD, "metrics is empty"),
        ("metrics = [['auroc']]\n" + PROBLEM + METHOD, r"metrics\[0\] is a list, expected text"),
        (PROBLEM + "label = 3\n" + METHOD, "problem 1: label is a whole number, expected text"),
        (PROBLEM + METHOD + "label = ['a']", "method 1: label is a list, expected text"),
        (PROBLEM + "encoder = 3\n" + METHOD, "problem 1: encoder is a whole number, expected text"),
        (PROBLEM + "preset = ['cifar100']\n" + METHOD, "problem 1: preset is a list, expected text"),
        (PROBLEM + "preset = 'cifar10'\n" + METHOD, "preset='cifar10' is not valid: expected .*'cifar100'"),
        (PROBLEM + "paper = ['msp']\n" + METHOD, "problem 1: paper is a list, expected text"),
        (PROBLEM + "paper = 'mps'\n" + METHOD, "paper='mps' is not valid: .*'msp', 'synthetic-r-eta'"),
        (PROBLEM + "x = 'a'\n" + METHOD, "problem 1: x is text, expected a number"),
        (PROBLEM + METHOD + "x = 'a'", "method 1: x is text, expected a number"),
        (
            PROBLEM + METHOD + "sweep = { fpr = [[0.1]] }",
            r"method 1: sweep.fpr\[0\] is a list, expected",
        ),
        (PROBLEM + METHOD + "sweep = { fpr = ['a'] }", r"method 1: sweep.fpr\[0\] is text, expected a number"),
        (PROBLEM + METHOD + "sweep = { fpr = [] }", "method 1: sweep={'fpr': .* one name with a list of numbers"),
        (PROBLEM + METHOD + "parameters = { k = 2020-01-01 }", "method 1: parameters k = .* expected a number"),
        (PROBLEM + "x = nan\n" + METHOD, "problem 1: x=nan is not valid: expected a number"),
        (PROBLEM + "x = true\n" + METHOD, "problem 1: x is true or false, expected a number"),
        (PROBLEM + "novel = [9]\n" + METHOD, r"problem 1: novel\[0\] is a whole number, expected text"),
        (PROBLEM + "options = { a = [10:00:00] }\n" + METHOD, "problem 1: options a = .* expected a number"),
    ],
)
def test_errors_name_the_place(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_spec(text, "s")
    assert str(caught.value).startswith("spec 's'")


def test_a_spec_with_one_thing_changed_is_read_or_refused_in_one_sentence():
    content = {
        "title": "Mine",
        "table": "methods",
        "metrics": ["auroc", "auprc"],
        "problem": [
            {
                "dataset": "digits", "label": "small", "encoder": "minilm", "settings": ["shift"], "novel": ["9"],
                "seeds": [0, 8], "options": {"test_fraction": 0.3}, "preset": "amazon_reviews", "paper": "msp",
                "sweep": {"novel_fraction": [0.1, 0.2]},
            }
        ],
        "method": [
            {"name": "color", "label": "mine", "parameters": {"joint": False}, "preset": "none", "x": 0.5},
            {"name": "all", "but": ["color"]},
        ],
        "figure": {"kind": "lines", "metrics": ["auroc"], "x_label": "share"},
    }  # fmt: skip
    assert len(parse_spec(toml_file(content), "s").problems) == 2
    read = refused = 0
    for mutation in mutations(content, others=(True, 3, 0.5, "text", [], [1], {}, {"some": "name"})):
        if not mutation.path:
            continue  # a TOML file is a table
        spec, message = outcome(parse_spec, toml_file(mutation.content), "s")
        if message:
            refused += 1
            assert message.startswith("spec 's'") and "\n" not in message
            assert (
                str(mutation.path[-1]) in message or isinstance(mutation.path[-1], int) or mutation.what != "add"
            )
        else:
            read += 1
            assert mutation.what != "add" or {"options", "parameters"} & set(mutation.path)
            expand(spec)
    assert read > 20 and refused > 100


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("preset = 'cifar100'", ""),
        ("encoder = 'minilm'\nlabel = 'a'", "encoder = 'clip'\nlabel = 'a'"),
        ("options = { novel_fraction = 0.1 }\nlabel = 'a'", "options = { novel_fraction = 0.2 }\nlabel = 'a'"),
    ],
)
def test_different_problems_need_names_of_their_own(one, other):
    with pytest.raises(ValueError, match="two different problems are called .*: give each a label of its own"):
        parse_spec(f"{PROBLEM}{one}\n{PROBLEM}{other}\n{METHOD}", "s")


def test_splits_of_one_problem_may_stand_in_two_entries():
    shared = PROBLEM + "options = { novel_fraction = 0.1 }\nlabel = 'a'\n"
    spec = parse_spec(
        f"{shared}settings = ['shift']\n{shared}settings = ['no-shift']\nseeds = [1]\n{METHOD}", "s"
    )
    assert [(p.title, p.settings) for p in spec.problems] == [("a", ("shift",)), ("a", ("no-shift",))]
    elsewhere = PROBLEM + "settings = ['no-shift']\nlabel = 'a'\n"
    assert len(parse_spec(f"{shared}settings = ['shift']\n{elsewhere}{METHOD}", "s").problems) == 2


def test_loading_by_name_and_by_path(tiny_path, tmp_path):
    assert load_spec("quick").name == "quick"
    assert load_spec(str(tiny_path)).name == "tiny"
    with pytest.raises(ValueError, match="expected one of .*'quick'"):
        load_spec("quik")
    with pytest.raises(ValueError, match="no spec file"):
        load_spec(str(tmp_path / "none.toml"))
    assert (load_spec("quick").path, load_spec(str(tiny_path)).path) == (None, tiny_path)
    (tmp_path / "latin.toml").write_bytes("title = 'é'".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.toml is not valid TOML: 'utf-8' codec can't decode"):
        load_spec(str(tmp_path / "latin.toml"))


NAMED_BY_THE_PAPER = {
    "table-settings", "table-summary", "table-sun397-rn50", "table-sun397-vitl14", "table-cifar100",
    "table-amazon", "table-with-without-shift", "table-top1", "table-joint-learning", "table-target-recall",
    "table-msp", "table-synthetic", "ablation-grid-density", "ablation-grid-range", "figure-bars",
    "figure-alpha", "figure-beta", "joint-learning-from-scratch", "quick",
}  # fmt: skip


@pytest.mark.parametrize(("name", "spec"), built_in_specs().items())
def test_built_in_specs_can_be_planned(name, spec):
    assert name == spec.name and spec.unavailable == []
    planned = expand(spec)
    assert planned
    for run in (plan.run for plan in planned):  # what needs cells or names runs where a problem has them
        assert run.method != "anna" or json.loads(run.options).get("cells")
        assert run.method != "zoc" or json.loads(run.options).get("names")
    for plan in planned:  # what a run is given must be parameters of its method
        get_method(plan.run.method).make(**json.loads(plan.run.parameters))
    for problem in spec.problems:
        figures = [paper_figures(problem.paper, setting) for setting in problem.settings]
        assert problem.paper is None or any(figures)


def test_every_experiment_of_the_paper_has_a_spec():
    assert set(built_in_specs()) >= NAMED_BY_THE_PAPER
    assert built_in_specs()["quick"].missing_files(None) == []


def test_the_paper_s_figures_stand_beside_methods_on_the_same_features():
    """Of the methods by CLIP ViT-B/32 the paper has ZOC only; its others learn from other features."""
    spec = built_in_specs()["table-names"]
    figures = [paper_figures(p.paper, setting) for p in spec.problems for setting in p.settings]
    labels = {method.label for method in spec.methods}
    assert labels & {label for figure in figures for by_label in figure.values() for label in by_label} == {"zoc"}
    assert "beside zoc only" in spec.note


@pytest.mark.parametrize("name", ["results-grid-range", "ablation-grid-range"])
def test_a_page_of_ranges_says_where_they_differ_from_the_paper_s(name):
    spec = built_in_specs()[name]
    assert sum(method.label.endswith("0.99]") for method in spec.methods) == 6
    assert spec.note.startswith("Six of the paper's ranges end at 1.0")


def test_every_experiment_on_sun397_has_the_paper_s_settings():
    presets = {"microsoft/resnet-50": "sun397_resnet50", "openai/clip-vit-large-patch14": "sun397_vitl14"}
    problems = [(spec.name, p) for spec in built_in_specs().values() for p in spec.problems]
    found = {(name, p.encoder, p.preset) for name, p in problems if p.encoder in presets}
    assert "table-msp" in {name for name, _, _ in found}
    assert found == {(name, encoder, presets[encoder]) for name, encoder, _ in found}


def test_missing_files_are_those_of_the_paper_and_of_the_stand_in(tmp_path):
    (missing,) = built_in_specs()["table-msp"].missing_files(None)
    sun397, sun = get_source("sun397"), get_source("sun")
    assert missing == f"{', '.join(sun397.files)} (or, for sun to stand in for sun397, {', '.join(sun.files)})"
    for name in sun.files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert built_in_specs()["table-msp"].missing_files(tmp_path) == []


@pytest.mark.parametrize(
    ("files", "source"),
    [("{}_5.json.gz", "amazon"), ("reviews_{}.json.gz", "amazon"), ("meta_{}.json.gz", "amazon-fdu-mtl")],
)
def test_files_about_products_are_no_reviews(files, source, tmp_path):
    (tmp_path / "amazon_reviews").mkdir()
    for category in get_source("amazon").novel:
        (tmp_path / "amazon_reviews" / files.format(category)).touch()
    assert source_for("amazon", tmp_path).name == source


def test_a_method_s_own_preset_or_none():
    problem = PROBLEM + 'preset = "amazon_reviews"\n'
    spec = parse_spec(problem + '[[method]]\nname = "color"\npreset = "none"\nparameters = { l2 = 0.5 }', "s")
    assert spec.methods[0].parameters_for(spec.problems[0]) == {"l2": 0.5}
    other = parse_spec(problem + '[[method]]\nname = "dd"\npreset = "cifar100"', "s")
    assert other.methods[0].parameters_for(other.problems[0])["hidden"] == 512


def test_what_is_not_registered_is_named():
    spec = parse_spec('[[problem]]\ndataset = "moon"\n[[method]]\nname = "magic"', "s")
    assert spec.unavailable == ["dataset moon", "method magic"]


def test_the_spec_from_scratch_has_the_trained_methods_of_the_papers_table():
    spec = built_in_specs()["cifar100-from-scratch"]
    trained = ["dd", "upu", "nnpu", "boda", "arpl", "cac", "pulse", "color_paper"]
    assert [method.name for method in spec.methods] == trained
    for method in spec.methods:
        parameters = method.parameters_for(spec.problems[0])
        assert (parameters["backbone"], parameters["batch_size"]) == ("resnet18", 200)
        get_method(method.name).load()(**parameters)  # it has all of them


def test_every_problem_with_label_shift_has_one_without_beside_it():
    problems = built_in_specs()["results-label-shift"].problems
    both = {(p.dataset, "label_shift" in p.options) for p in problems}
    assert both == {(name, shift) for name in ("amazon-fdu-mtl", "sun", "clinc150") for shift in (True, False)}
