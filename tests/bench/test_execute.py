from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench.made_up import RUN
from openset.bench import execute as module
from openset.bench.execute import execute
from openset.learn.memory import TrainingMemory
from openset.learn.train import _Run


@pytest.mark.slow
def test_executing_gives_metrics_heads_times_and_warnings(monkeypatch):
    result = execute(RUN, None)
    assert result.failure == ""
    assert 0 <= result.metrics["auroc"] <= 1 and result.metrics["n_novel"] == 4
    assert result.metrics["novel_fraction"] == 0.1
    assert 0 <= result.metrics["called"] <= 1 and 0 < result.metrics["p_value"] <= 1
    assert len(result.heads) == 3 * 2 * 2 and sum(head["selected"] for head in result.heads) == 1
    assert {"step", "head", "fpr", "recall", "candidate_recall", "feasible"} <= set(result.heads[0])
    tested = [head["auprc"] for head in result.heads if "auprc" in head]
    assert len(tested) == 2 and result.metrics["best_head_auprc"] == max(tested)
    assert set(result.seconds) == {"data", "fit", "score", "cpu"} and min(result.seconds.values()) > 0
    assert result.elapsed == pytest.approx(sum(result.seconds[name] for name in ("data", "fit", "score")))
    monkeypatch.setattr(module, "_TRAINING", TrainingMemory())
    again = execute(RUN, None)
    assert (again.metrics, again.heads, again.warnings) == (result.metrics, result.heads, result.warnings)
    json.dumps(result.heads)  # plain values only


@pytest.mark.slow
def test_the_selected_head_has_the_metrics_of_a_model_that_hears_heads_alone():
    parameters = {**json.loads(RUN.parameters), "effort": "fast", "groups": [[0.1]]}
    result = execute(replace(RUN, parameters=json.dumps(parameters)), None)
    (selected,) = [head for head in result.heads if head["selected"]]
    for metric in ("auroc", "auprc", "oscr"):
        assert selected[metric] == pytest.approx(result.metrics[metric])
    assert result.metrics["best_head_auprc"] >= result.metrics["auprc"]


def test_methods_that_share_a_classifier_train_it_once_and_are_each_charged_for_it(monkeypatch):
    trained = []
    train = _Run.run
    monkeypatch.setattr(_Run, "run", lambda self, *given: trained.append(1) or train(self, *given))
    msp, energy = (
        execute(replace(RUN, method=method, parameters='{"max_steps":300}'), None) for method in ("msp", "energy")
    )
    assert trained == [1] and msp.metrics["auroc"] != energy.metrics["auroc"]
    clock, cpu = module._TRAINING.spared
    assert energy.seconds["fit"] > clock > 0 and energy.seconds["cpu"] > cpu > 0


def test_a_failure_is_a_result_with_its_traceback():
    result = execute(replace(RUN, parameters='{"max_steps":-1}'), None)
    assert "Traceback" in result.failure and "max_steps=-1 is not valid" in result.failure
    assert result.metrics == {}
