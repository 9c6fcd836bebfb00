from __future__ import annotations

import json

import numpy as np
import pytest
from samples import minimal_summary

from openset.pipeline.summary import ClassShares, Head
from openset.report import ReportData, TargetMap
from openset.report.charts import (
    chart_data,
    class_mix,
    head_choices,
    map_points,
    score_histogram,
    training_curves,
)


def test_histogram_shares_sum_to_one_and_agree_with_counting():
    random = np.random.default_rng(0)
    source, target = random.standard_normal(2000), random.standard_normal(1500) + 1
    made = score_histogram(source, target, 2.0)
    edges = np.array(made["edges"])
    assert sum(made["source"]) == pytest.approx(1, abs=1e-4) and sum(made["target"]) == pytest.approx(1, abs=1e-4)
    for bin_ in range(1, len(edges) - 2):
        inside = ((target >= edges[bin_]) & (target < edges[bin_ + 1])).mean()
        assert made["target"][bin_] == pytest.approx(inside, abs=2 / 1500)


@pytest.mark.parametrize("threshold", [None, 50.0, -50.0])
def test_the_threshold_is_within_the_chart(threshold):
    made = score_histogram(np.arange(5.0), np.arange(5.0), threshold)
    if threshold is not None:
        assert made["edges"][0] < threshold < made["edges"][-1]


def test_equal_scores_and_infinite_ones_still_give_a_chart():
    made = score_histogram(np.zeros(4), np.array([0.0, np.inf, np.nan]), None)
    assert sum(made["source"]) == sum(made["target"]) == 1
    assert score_histogram(np.full(3, np.nan), np.zeros(2), 0.0) is None


def test_many_classes_are_cut_and_counted():
    mix = {f"class {c:03d}": ClassShares(c / 1000, 0.0) for c in range(100)}
    made = class_mix(mix)
    assert made["labels"][0] == "class 099" and len(made["labels"]) == 30 and made["left_out"] == 70


def test_the_map_gives_the_largest_classes_a_colour_and_the_novel_one_the_first():
    labels = [str(c) for c in range(9) for _ in range(20 - c)] + ["-1"]
    plane = TargetMap(
        np.zeros((len(labels), 2)),
        tuple(labels),
        tuple(labels),
        np.zeros(len(labels)),
        (-1,) * len(labels),
        200,
        1.0,
    )
    made = map_points(plane, -1)
    assert made["classes"] == ["novel (-1)", "0", "1", "2", "3", "4", "other known classes"]
    shown = [made["classes"][index] for index in made["class"]]
    assert (
        shown[0] == "0" and shown[-1] == "novel (-1)" and shown.count("other known classes") == 15 + 14 + 13 + 12
    )


def test_heads_are_told_apart():
    heads = [
        Head(0, step, head, 0.1, 0.01 * head, 0.2, 1.0, True, selected=(step, head) == (2, 1))
        for step in (1, 2)
        for head in range(3)
    ]
    made = head_choices(heads, 0.01)
    assert made["chosen"] == [[0.01, 0.2, 0.1, 2.0]]
    assert len(made["same_step"]) == 2 and len(made["earlier"]) == 3
    assert head_choices(None, 0.01) is None


def test_of_very_many_heads_the_latest_are_shown():
    heads = [Head(0, step, 0, 0.1, 0.01, 0.2, 1.0, True, selected=step == 3) for step in range(1000)]
    made = head_choices(heads, None)
    assert [step for *_, step in made["chosen"]] == [3] and made["same_step"] == [] and made["budget"] is None
    assert [step for *_, step in made["earlier"]] == list(range(600, 1000))


def test_without_a_map_there_is_no_chart_of_it():
    assert map_points(None, "novel") is None


def test_curves_are_means_over_members():
    history = [
        {"step": step, "member": member, "loss": step + member, "recall": 0.5, "norm": 7.0, "note": "text"}
        for step in (10, 20)
        for member in (0, 1)
    ]
    made = training_curves(history)
    assert made == {"steps": [10, 20], "losses": {"loss": [10.5, 20.5]}, "rates": {"recall": [0.5, 0.5]}}
    assert training_curves([]) is None and training_curves([{"loss": 1.0}]) is None


def test_everything_is_json(data):
    text = json.dumps(chart_data(data), allow_nan=False)
    assert json.loads(text)["scores"]["threshold"] == data.summary.threshold
    bare = chart_data(ReportData(minimal_summary(), np.empty(0), np.empty(0), ()))
    present = {name for name, chart in json.loads(json.dumps(bare, allow_nan=False)).items() if chart}
    assert present == {"mix"}
