"""Sweeps: killed and continued, failures, other data, and requests that cannot be met."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from openset.bench import execute
from openset.bench.problems import ProblemSource
from openset.bench.runs import RunResult
from openset.bench.spec import built_in_specs, parse_spec
from openset.bench.store import Store
from openset.bench.sweep import check_available, sweep
from openset.errors import MissingExtraError

AWAY = ("amazon", "sun397")
"""Datasets whose stand-ins are used."""
PROBLEM = '[[problem]]\ndataset = "digits"\n'
COMMAND = [sys.executable, "-m", "openset.cli", "bench", "run"]


def children_of(process):
    """Ids of a process's own children."""
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


@pytest.mark.slow
def test_killed_half_way_and_started_again_equals_an_uninterrupted_sweep(tiny_path, finished, tmp_path, numbers):
    path = tmp_path / "killed.sqlite"
    command = [*COMMAND, str(tiny_path), "--store", str(path)]
    process = subprocess.Popen([*command, "--jobs", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not path.exists() or len(Store(path).all()) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    workers = children_of(process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {run.key: run for run in Store(path).all()}
    assert 2 <= len(before) < 12
    while any(Path(f"/proc/{worker}/cwd").exists() for worker in workers):  # they end with their parent
        assert time.monotonic() < deadline
        time.sleep(0.05)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{len(before)} already stored, 0 failed" in " ".join(again.stderr.split())
    store = Store(path)
    assert numbers(store) == numbers(finished)
    assert {run.key: run for run in store.all() if run.key in before} == before  # nothing was computed twice


@pytest.mark.slow
def test_a_finished_sweep_runs_nothing_again(tiny, finished):
    before = finished.all()
    report = sweep(tiny, finished, jobs=2)
    assert (report.planned, report.skipped) == (12, 12)
    assert finished.all() == before


@pytest.mark.slow
def test_runs_on_other_rows_are_not_taken_for_these(two_methods, tmp_path, monkeypatch):
    store = Store(tmp_path / "s.sqlite")
    sweep(two_methods, store)
    build = execute.build_problem
    monkeypatch.setattr(
        execute, "build_problem", lambda *a, **k: replace(build(*a, **k), manifest_checksum="other")
    )
    execute.forget_problems()
    with pytest.raises(ValueError, match="runs on other rows of synthetic than those in the data folder: give"):
        sweep(two_methods, store)
    execute.forget_problems()


@pytest.fixture
def two_methods():
    return parse_spec(
        '[[problem]]\ndataset = "synthetic"\nsettings = ["shift"]\nseeds = [0]\n'
        "options = { n_source = 60, n_target = 60, n_test = 40, n_features = 4 }\n"
        '[[method]]\nname = "knn"\nparameters = { fpr = 7 }\n[[method]]\nname = "mahalanobis"',
        "two",
    )


@pytest.mark.slow
def test_failures_are_recorded_and_tried_again_only_when_asked(two_methods, tmp_path, monkeypatch):
    store = Store(tmp_path / "runs.sqlite")
    assert sweep(two_methods, store).failed == 1
    failed = [run for run in store.all() if run.result.failure]
    assert [run.run.method for run in failed] == ["knn"]
    assert "fpr=7 is not valid" in failed[0].result.failure

    mended = []

    def results(on, runs, data_dir, jobs, progress):
        mended.extend(runs)
        return ((run, RunResult(metrics={"auroc": 1.0})) for run in runs)

    monkeypatch.setattr("openset.bench.sweep._results", results)
    assert sweep(two_methods, store).skipped == 2 and mended == []
    assert sweep(two_methods, store, retry_failed=True, show_progress=True).skipped == 1
    assert [run.method for run in mended] == ["knn"]
    assert not any(run.result.failure for run in store.all())


def test_a_missing_extra_is_told_before_anything_runs(two_methods, tmp_path, monkeypatch):
    def build(*args, **options):
        raise MissingExtraError("Reading Parquet", "data")

    monkeypatch.setattr(execute, "build_problem", build)
    execute.forget_problems()
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(MissingExtraError, match=r"openset\[data\]"):
        sweep(two_methods, store)
    assert store.all() == []


def test_requests_that_cannot_be_met(tiny, two_methods, tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(ValueError, match="jobs=0"):
        sweep(tiny, store, jobs=0)
    with pytest.raises(ValueError, match="on='moon'"):
        sweep(tiny, store, on="moon")
    unknown = parse_spec('[[problem]]\ndataset = "moon"\n[[method]]\nname = "dd"', "s")
    with pytest.raises(ValueError, match="does not have: dataset moon"):
        sweep(unknown, store)


@pytest.mark.parametrize(
    ("dataset", "options", "message"),
    [
        (
            "sun397",
            "{ pooling = 'cls' }",
            "unknown option 'pooling': expected some of encoder, device, cells",
        ),
        ("cifar100", "{ novel_shar = 1.0 }", "unknown option 'novel_shar': .* Did you mean 'novel_share'?"),
        ("cifar100-images", "{ cells = 2 }", "unknown option 'cells'"),
        (
            "amazon",
            "{ cells = 2 }",
            "unknown option 'cells': expected some of encoder, device, pooling",
        ),
        ("amazon", "{ n_train = 9 }", r"\(amazon-fdu-mtl stands in for it\): unknown option 'n_train'"),
        ("synthetic", "{ n_sourc = 9 }", "Did you mean 'n_source'"),
    ],
)
def test_an_option_that_a_dataset_does_not_have_is_told_before_anything_runs(
    dataset, options, message, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        ProblemSource, "missing_files", lambda source, folder: source.files * (source.name in AWAY)
    )
    spec = parse_spec(f'[[problem]]\ndataset = "{dataset}"\noptions = {options}\n[[method]]\nname = "knn"', "s")
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(ValueError, match=message):
        sweep(spec, store, data_dir=tmp_path)
    assert store.all() == []


@pytest.mark.parametrize("name", built_in_specs())
def test_options_of_built_in_specs_are_those_of_their_datasets_and_stand_ins(name, tmp_path, monkeypatch):
    for away in (AWAY, ()):
        monkeypatch.setattr(
            ProblemSource, "missing_files", lambda s, folder, away=away: s.files * (s.name in away)
        )
        check_available(built_in_specs()[name], tmp_path)


def test_a_spec_whose_methods_all_need_more_says_what_they_need(tmp_path):
    text = PROBLEM + '[[method]]\nname = "zoc"\nparameters = { decoder = "d" }\n[[method]]\nname = "anna"'
    with pytest.raises(ValueError, match="s has nothing to run") as told:
        sweep(parse_spec(text, "s"), Store(tmp_path / "runs.sqlite"))
    assert "zoc needs embeddings of names, or a caption decoder (names = true in the options of" in str(
        told.value
    )
    assert "anna needs target rows; maps of cells (cells = 3 in the options of a [[problem]])" in str(told.value)
