"""The results of a spec, from made-up runs whose every figure can be worked out by hand."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest

from bench.made_up import AUROC, SPEC, fill
from openset.bench.results import (
    compare,
    mean_and_sd,
    paired,
    reference_row,
    results_as_csv,
    results_of,
    stored_plan,
)
from openset.bench.runs import RunResult
from openset.bench.spec import parse_spec
from openset.bench.store import Store
from openset.stats.comparison import holm, signed_rank_test


@pytest.fixture
def results(tmp_path):
    return fill(tmp_path / "runs.sqlite")


def test_means_spread_wins_and_best(results):
    (block,) = results.blocks
    color, dd, knn = block.rows
    assert color.averages["auroc"].mean == pytest.approx(0.8)
    assert color.averages["auroc"].sd == pytest.approx((0.08 / 5) ** 0.5)
    assert [row.averages["auroc"].wins for row in block.rows] == [5, 1, 1]  # seed 2 is shared by two
    assert [row.averages["auroc"].is_best for row in block.rows] == [True, False, False]
    assert [row.averages["fpr_at_95_tpr"].is_best for row in block.rows] == [
        False,
        False,
        True,
    ]  # lower is better
    assert [row.averages["fpr_at_95_tpr"].wins for row in block.rows] == [0, 1, 5]
    assert all(row.averages["top1"].is_best for row in block.rows)
    assert (dd.label, knn.label, color.seconds) == ("dd", "k_NN", 2.5)
    assert (len(block.splits), block.novel_fraction, block.same_data) == (6, pytest.approx(0.1), True)


def test_comparisons_are_paired_and_corrected(results):
    of_auroc = [c for c in results.comparisons if c.metric == "auroc"]
    p = [signed_rank_test(AUROC["color_paper"], AUROC[name]) for name in ("dd", "knn")]
    assert [c.other for c in of_auroc] == ["dd", "k_NN"]
    assert [c.p for c in of_auroc] == p and [c.p_holm for c in of_auroc] == holm(p).tolist()
    assert of_auroc[0].difference == pytest.approx(0.5 / 6) and of_auroc[0].n == 6


def test_csv_has_full_precision(results):
    rows = list(csv.DictReader(io.StringIO(results_as_csv(results))))
    assert len(rows) == 3 * 3
    first = rows[0]
    assert float(first["mean"]) == results.blocks[0].rows[0].averages["auroc"].mean
    assert (first["method"], first["label"], first["wins"], first["splits"]) == ("color_paper", "color", "5", "6")
    assert float(rows[3]["p_holm"]) == results.comparisons[0].p_holm


@pytest.mark.parametrize(
    ("labels", "reference"),
    [({"conop": "color", "color": "color"}, "color"), ({"mine": "color", "dd": "dd"}, "mine"),
     ({"paper": "color_paper", "dd": "dd"}, "paper"), ({"grid 1": "color", "grid 2": "color"}, None)],
)  # fmt: skip
def test_color_is_what_others_are_compared_with(results, labels, reference):
    (block,) = results.blocks
    rows = [
        replace(block.rows[i], label=label, method=method) for i, (label, method) in enumerate(labels.items())
    ]
    found = compare([replace(block, rows=tuple(rows))], ["auroc"], reference_row)
    assert {c.reference for c in found} == ({reference} if reference else set())


def test_failures_and_missing_runs_are_counted(tmp_path):
    results = fill(tmp_path / "runs.sqlite", failing={("dd", 2)})
    (block,) = results.blocks
    assert block.rows[1].n_failed == 1 and block.rows[0].averages["auroc"].wins == 5
    more = parse_spec(SPEC.replace("4, 5]", "4, 5, 6]"), "made-up")
    (block,) = results_of(more, Store(tmp_path / "runs.sqlite")).blocks
    assert [row.n_missing for row in block.rows] == [1, 1, 1] and block.rows[1].n_failed == 1
    assert [c.n for c in results.comparisons[:2]] == [5, 6]
    both = parse_spec(SPEC.replace('["shift"]', '["shift", "no-shift"]'), "made-up")
    assert len(results_of(both, Store(tmp_path / "runs.sqlite")).blocks) == 1  # nothing stored without shift


def test_runs_of_one_split_that_used_different_rows_are_noticed(tmp_path):
    results = fill(tmp_path / "runs.sqlite")
    run = results.plan[0][0].run
    store = Store(tmp_path / "runs.sqlite")
    store.put(run, RunResult({"auroc": 0.5}, {"cpu": 1.0}, manifest_checksum="other"), spec="made-up")
    assert results.blocks[0].same_data and not results_of(results.spec, store).blocks[0].same_data


def test_an_empty_store_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="run `openset bench run made-up` first"):
        results_of(parse_spec(SPEC, "made-up"), Store(tmp_path / "empty.sqlite"))


def test_the_paper_s_figures_are_kept_by_label_unless_the_data_is_a_stand_in(tmp_path):
    text = SPEC.replace('label = "color"', "")
    of_paper = fill(tmp_path / "a.sqlite", text).blocks[0]
    assert of_paper.rows[0].paper == {"auroc": "0.77±0.09"} and of_paper.rows[1].paper == {"auroc": "0.70±0.11"}
    stand_in = fill(tmp_path / "b.sqlite", text, stand_in_for="CIFAR-100").blocks[0]
    assert [row.paper for row in stand_in.rows] == [{}, {}, {}]
    assert stand_in.title == "synthetic (stand-in for CIFAR-100), with shift"


def test_runs_of_another_code_version_are_named(tmp_path):
    results = fill(tmp_path / "runs.sqlite")
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(ValueError, match=f"no runs of made-up for 0.0.*It has runs of {re.escape(results.code)}"):
        results_of(results.spec, store, code="0.0")
    assert [stored for _, stored in stored_plan(results.spec, store, code="0.0")] == [None] * 18


def test_mean_and_sd_by_hand():
    assert mean_and_sd([0.25, 0.75]) == "0.50±0.35" and mean_and_sd([0.25]) == "0.25" and mean_and_sd([]) == "–"


def test_pairs_are_the_splits_that_both_have():
    first, second = paired(np.array([1.0, np.nan, 3.0]), np.array([4.0, 5.0, np.nan]))
    assert first.tolist() == [1.0] and second.tolist() == [4.0]
