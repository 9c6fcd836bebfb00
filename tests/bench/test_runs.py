from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench.made_up import RUN
from openset.bench.runs import Run, expand
from openset.bench.spec import parse_spec
from openset.methods.color_paper import PaperCoLOR


def test_the_key_depends_on_everything_a_result_depends_on(monkeypatch):
    changed = {
        "dataset": "digits", "encoder": "e", "options": "{}", "setting": "no-shift", "novel": "9", "seed": 1,
        "method": "dd", "parameters": "{}",
    }  # fmt: skip
    before = RUN.key
    keys = {before, *(replace(RUN, **{name: value}).key for name, value in changed.items())}
    assert before == replace(RUN).key and set(changed) == set(Run.__dataclass_fields__)
    monkeypatch.setattr("openset.bench.runs.reached_code", lambda method: f"other code of {method}")
    assert len({*keys, RUN.key}) == 2 + len(changed)


def test_expansion_is_method_by_novel_by_seed_by_setting_split_by_split():
    spec = parse_spec(
        '[[problem]]\ndataset = "synthetic"\nseeds = [5, 6]\npreset = "amazon_reviews"\n'
        '[[method]]\nname = "color_paper"\nparameters = { l2 = 0.5 }\n[[method]]\nname = "knn"',
        "s",
    )
    planned = [plan.run for plan in expand(spec)]
    assert [(r.setting, r.seed, r.method) for r in planned] == [
        (setting, seed, method)
        for setting in ("shift", "no-shift")
        for seed in (5, 6)
        for method in ("color_paper", "knn")
    ]
    assert planned[0].novel == "novel"
    parameters = json.loads(planned[0].parameters)
    preset = PaperCoLOR.preset("amazon_reviews", l2=0.5)
    assert all(getattr(preset, name) == value for name, value in parameters.items())
    assert parameters["l2"] == 0.5 and parameters["dual_learning_rate"] == 0.06
    assert json.loads(planned[1].parameters) == {"fpr": 0.01, "standardize": None}


def test_unknown_methods_and_datasets_stop_an_expansion():
    with pytest.raises(ValueError, match="dataset='moon'"):
        expand(parse_spec('[[problem]]\ndataset = "moon"\n[[method]]\nname = "dd"', "s"))
    with pytest.raises(ValueError, match="method='magic'"):
        expand(parse_spec('[[problem]]\ndataset = "digits"\n[[method]]\nname = "magic"', "s"))
