from __future__ import annotations

import json
from dataclasses import replace

import pytest

from openset.bench import runs
from openset.bench.runs import Run, _what_runs, code_version, execute, expand
from openset.bench.spec import parse_spec
from openset.learn.memory import TrainingMemory
from openset.learn.train import _Run
from openset.methods.color import CoLOR

RUN = Run(
    dataset="synthetic",
    encoder=None,
    options='{"n_features":5,"n_source":90,"n_target":60,"n_test":40}',
    setting="shift",
    novel="novel",
    seed=0,
    method="color",
    parameters='{"evaluate_every":10,"grid":[0.05,0.1],"max_steps":20}',
)


def test_the_key_depends_on_everything_a_result_depends_on():
    changed = {
        "dataset": "digits", "encoder": "e", "options": "{}", "setting": "no-shift", "novel": "9", "seed": 1,
        "method": "dd", "parameters": "{}",
    }  # fmt: skip
    keys = {RUN.key("1"), RUN.key("2"), *(replace(RUN, **{name: v}).key("1") for name, v in changed.items())}
    assert len(keys) == 2 + len(changed) and set(changed) == set(Run.__dataclass_fields__)
    assert RUN.key("1") == replace(RUN).key("1")


def test_expansion_is_method_by_novel_by_seed_by_setting_split_by_split():
    spec = parse_spec(
        '[[problem]]\ndataset = "synthetic"\nseeds = [5, 6]\npreset = "amazon_reviews"\n'
        '[[method]]\nname = "color"\nparameters = { l2 = 0.5 }\n[[method]]\nname = "knn"',
        "s",
    )
    planned = [plan.run for plan in expand(spec)]
    assert [(r.setting, r.seed, r.method) for r in planned] == [
        (setting, seed, method)
        for setting in ("shift", "no-shift")
        for seed in (5, 6)
        for method in ("color", "knn")
    ]
    assert planned[0].novel == "novel"
    parameters = json.loads(planned[0].parameters)
    preset = CoLOR.preset("amazon_reviews", l2=0.5)
    assert all(getattr(preset, name) == value for name, value in parameters.items())
    assert parameters["l2"] == 0.5 and parameters["dual_learning_rate"] == 0.06
    assert json.loads(planned[1].parameters) == {"fpr": 0.01, "standardize": None}


def test_unknown_methods_and_datasets_stop_an_expansion():
    with pytest.raises(ValueError, match="dataset='moon'"):
        expand(parse_spec('[[problem]]\ndataset = "moon"\n[[method]]\nname = "dd"', "s"))
    with pytest.raises(ValueError, match="method='magic'"):
        expand(parse_spec('[[problem]]\ndataset = "digits"\n[[method]]\nname = "magic"', "s"))


def test_executing_gives_metrics_heads_times_and_warnings(monkeypatch):
    result = execute(RUN, None)
    assert result.failure == ""
    assert 0 <= result.metrics["auroc"] <= 1 and result.metrics["n_novel"] == 4
    assert result.metrics["novel_fraction"] == 0.1
    assert len(result.heads) == 3 * 2 * 2 and sum(head["selected"] for head in result.heads) == 1
    assert {"step", "head", "fpr", "recall", "candidate_recall", "feasible"} <= set(result.heads[0])
    tested = [head["auprc"] for head in result.heads if "auprc" in head]
    assert len(tested) == 2 and result.metrics["best_head_auprc"] == max(tested) >= result.metrics["auprc"]
    assert set(result.seconds) == {"data", "fit", "score", "cpu"} and min(result.seconds.values()) > 0
    assert result.elapsed == pytest.approx(sum(result.seconds[name] for name in ("data", "fit", "score")))
    monkeypatch.setattr(runs, "_TRAINING", TrainingMemory())
    again = execute(RUN, None)
    assert (again.metrics, again.heads, again.warnings) == (result.metrics, result.heads, result.warnings)
    json.dumps(result.heads)  # plain values only


def test_methods_that_share_a_classifier_train_it_once_and_are_each_charged_for_it(monkeypatch):
    trained = []
    train = _Run.run
    monkeypatch.setattr(_Run, "run", lambda self, *given: trained.append(1) or train(self, *given))
    msp, energy = (
        execute(replace(RUN, method=method, parameters='{"max_steps":300}'), None) for method in ("msp", "energy")
    )
    assert trained == [1] and msp.metrics["auroc"] != energy.metrics["auroc"]
    clock, cpu = runs._TRAINING.spared
    assert energy.seconds["fit"] > clock > 0 and energy.seconds["cpu"] > cpu > 0


def test_a_failure_is_a_result_with_its_traceback():
    result = execute(replace(RUN, parameters='{"max_steps":-1}'), None)
    assert "Traceback" in result.failure and "max_steps=-1 is not valid" in result.failure
    assert result.metrics == {}


def test_words_about_code_do_not_make_another_version():
    code = "X = 1\n\ndef f(a):\n    return a + X\n"
    told = '"""A module."""\nX = 1  # one\n"""About X."""\n\ndef f(a):\n    """Adds."""\n    return a + X\n'
    assert _what_runs(code) == _what_runs(told)
    assert _what_runs(code) != _what_runs(code.replace("X = 1", "X = 2")) != _what_runs(code.replace("+", "-"))
    assert _what_runs("def f():\n    'g'") != _what_runs("def f():\n    return 'g'")


def test_the_code_version_is_stable_and_names_the_version():
    assert code_version() == code_version.__wrapped__() and code_version().startswith("0.")
