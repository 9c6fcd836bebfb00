from __future__ import annotations

import csv
import sys
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from bench.test_store import RESULT, RUN
from openset.bench.exchange import export, head_rows, read_runs, run_rows
from openset.bench.runs import RunResult
from openset.bench.store import Store
from openset.errors import MissingExtraError


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "runs.sqlite")


def test_exports_hold_every_figure(store, tmp_path):
    store.put(RUN, RESULT, spec="quick")
    store.put(replace(RUN, seed=1), RunResult(failure="it broke"), spec="quick")
    rows = run_rows(store.all())
    export(rows, tmp_path / "runs.csv")
    export(rows, tmp_path / "runs.parquet")
    export(head_rows(store.all()), tmp_path / "heads.csv")
    with (tmp_path / "runs.csv").open() as file:
        read = sorted(csv.DictReader(file), key=lambda row: row["seed"])
    assert float(read[0]["auroc"]) == 0.1 + 0.2 and read[0]["seconds_fit"] == "0.5"
    assert read[1]["auroc"] == "" and read[1]["failure"] == "it broke"
    table = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    assert sorted(row["auroc"] or 0 for row in table) == [0, 0.1 + 0.2]
    with (tmp_path / "heads.csv").open() as file:
        assert [row["selected"] for row in csv.DictReader(file)] == ["True", "False"]


def test_export_names_what_it_can_write_and_needs(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        export([], tmp_path / "runs.xlsx")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"openset\[data\]"):
        export([], tmp_path / "runs.parquet")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_exported_runs_come_back_bit_for_bit_with_the_heads_that_have_metrics(store, tmp_path, suffix):
    tested = {"member": 0, "head": 1, "auroc": 0.1 + 0.2, "selected": True}
    store.put(RUN, replace(RESULT, heads=[*RESULT.heads, tested]), spec="quick")
    store.put(replace(RUN, seed=7, encoder="minilm"), RunResult({"top1": 0.1}), spec="quick")
    store.put(replace(RUN, seed=8), RunResult(failure='it "broke",\nand ended'), spec="other")
    export(run_rows(store.all()), tmp_path / f"runs{suffix}")
    of_heads = {0: [tested]}
    expected = [
        replace(run, result=replace(run.result, heads=of_heads.get(run.run.seed, []))) for run in store.all()
    ]
    assert read_runs(tmp_path / f"runs{suffix}") == expected


def test_files_of_before_the_column_of_heads_are_read(store, tmp_path):
    store.put(RUN, RESULT, spec="quick")
    rows = [{name: value for name, value in row.items() if name != "heads"} for row in run_rows(store.all())]
    export(rows, tmp_path / "runs.parquet")
    assert [run.result.heads for run in read_runs(tmp_path / "runs.parquet")] == [[]]


def test_files_that_are_no_export_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        read_runs(tmp_path / "none.csv")
    (tmp_path / "a.csv").write_text("key,seed\n1,2\n")
    with pytest.raises(ValueError, match=r"no table of runs: it lacks code_version, .* Write one with"):
        read_runs(tmp_path / "a.csv")
    for name, says in (("a.parquet", "not a Parquet file"), ("a.xlsx", r"must end in \.csv or \.parquet")):
        (tmp_path / name).write_text("x")
        with pytest.raises(ValueError, match=says):
            read_runs(tmp_path / name)
    (tmp_path / "empty.csv").write_text("")
    assert read_runs(tmp_path / "empty.csv") == []
