"""Runs of older code are kept where a sample gives the same numbers, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bench.made_up import fill
from openset.bench import adopt as adopting
from openset.bench.adopt import adopt, difference
from openset.bench.runs import RunResult, expand
from openset.bench.spec import parse_spec
from openset.bench.store import Store
from openset.cli import app

SPEC = """
title = "Two methods"
[[problem]]
dataset = "synthetic"
settings = ["shift"]
seeds = [0, 1, 2]
options = { n_source = 60, n_target = 60, n_test = 40, n_features = 4 }
[[method]]
name = "knn"
[[method]]
name = "mahalanobis"
"""


@pytest.fixture
def swept(tmp_path):
    """A store with all runs of the spec, as if by older code: their keys are others."""
    from openset.bench.sweep import sweep

    spec, now, before = parse_spec(SPEC, "two"), Store(tmp_path / "now.sqlite"), Store(tmp_path / "before.sqlite")
    sweep(spec, now)
    before.add([replace(item, key=f"older {item.key}", code_version="0.0.9") for item in now.all()])
    return spec, before


def keys_of(spec):
    return {planned.run.key for planned in expand(spec)}


@pytest.mark.slow
def test_equal_runs_get_today_s_keys_and_keep_their_date_and_code(swept):
    spec, store = swept
    found = adopt(spec, store)
    assert [(group.method, group.n_checked, group.n_adopted) for group in found] == [
        ("knn", 1, 2),
        ("mahalanobis", 1, 2),
    ]
    kept = store.get(keys_of(spec))
    assert len(kept) == 6
    assert sorted(item.code_version for item in kept.values()).count("0.0.9") == 4  # the two others were computed
    assert adopt(spec, store) == []  # nothing is left to adopt


def elsewhere(item):
    return replace(item, result=replace(item.result, environment={"processor": "an abacus"}))


def moved(item, by=0.01):
    metrics = {**item.result.metrics, "auroc": item.result.metrics["auroc"] + by}
    return replace(item, result=replace(item.result, metrics=metrics))


@pytest.mark.slow
def test_runs_of_another_machine_decide_only_where_there_are_no_others(swept, tmp_path):
    spec, store = swept
    knn = [item for item in store.all() if item.run.method == "knn"]
    mixed, alone = Store(tmp_path / "mixed.sqlite"), Store(tmp_path / "alone.sqlite")
    mixed.add([moved(elsewhere(knn[0])), moved(elsewhere(knn[1])), knn[2]])  # as rounding moves them
    found = {group.method: group for group in adopt(spec, mixed)}
    assert found["knn"].n_adopted == 2 and found["knn"].n_checked == 1
    alone.add([moved(elsewhere(item)) for item in knn])
    found = {group.method: group for group in adopt(spec, alone)}
    assert found["knn"].n_adopted == 0 and "it was made on another machine" in found["knn"].difference


@pytest.mark.slow
def test_a_method_whose_numbers_changed_is_not_adopted(swept):
    spec, store = swept
    changed = [item for item in store.all() if item.run.method == "knn"]
    for item in changed:
        with store._writing() as connection:
            connection.execute("DELETE FROM runs WHERE key = ?", (item.key,))
        store.add([moved(item)])
    by_method = {group.method: group for group in adopt(spec, store, sample=2)}
    assert by_method["knn"].n_adopted == 0 and "auroc was" in by_method["knn"].difference
    assert by_method["mahalanobis"].n_adopted == 1
    missing = keys_of(spec) - store.get(keys_of(spec)).keys()
    assert len(missing) == 1  # knn's third run is still to be computed
    third = next(item for item in store.all() if item.run.key in missing)
    with store._writing() as connection:
        connection.execute("DELETE FROM runs WHERE key = ?", (third.key,))
    store.add([moved(third, -0.01)])  # this one would be equal
    (again,) = adopt(spec, store)
    assert again.n_adopted == 0 and "auroc was" in again.difference  # asking once more does not help


def test_differences_are_told(tmp_path):
    (first, *_) = (stored for _, stored in fill(tmp_path / "runs.sqlite").plan)
    assert difference(first, first) == ""
    assert difference(first, None).endswith("seed 0 failed")
    failed = replace(first, result=RunResult(failure="Traceback"))
    assert difference(first, failed).endswith("seed 0 failed")
    other_rows = replace(first, result=replace(first.result, manifest_checksum="other"))
    assert difference(first, other_rows).endswith("seed 0 has other rows")
    lacks = replace(first, result=replace(first.result, metrics={"auroc": 0.9}))
    assert "fpr_at_95_tpr was 0.4500 and is nan" in difference(first, lacks)
    nearly = {**first.result.metrics, "auroc": first.result.metrics["auroc"] + 0.004}
    assert difference(first, replace(first, result=replace(first.result, metrics=nearly))) == ""


def test_the_command_says_what_it_kept(tmp_path, monkeypatch):
    (tmp_path / "two.toml").write_text(SPEC)
    fill(tmp_path / "runs.sqlite")
    arguments = ["bench", "adopt", str(tmp_path / "two.toml"), "--store", str(tmp_path / "runs.sqlite")]
    nothing = CliRunner().invoke(app, arguments)
    assert nothing.exit_code == 0 and "no runs of older code" in nothing.output
    found = [
        adopting.Adopted("knn", "synthetic", 1, 2, ""),
        adopting.Adopted("dd", "synthetic", 1, 0, "auroc was 1"),
    ]
    monkeypatch.setattr("openset.bench.adopt.adopt", lambda *_, **__: found)
    told = CliRunner().invoke(app, arguments)
    assert "knn on synthetic: 2 runs kept, 1 computed again and equal" in told.output
    assert "dd on synthetic: none kept: auroc was 1" in told.output
