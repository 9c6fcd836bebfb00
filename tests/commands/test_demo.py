from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from openset.cli import app
from openset.commands.demo import METHODS, DemoRun, fit_all, fit_one
from openset.commands.sample import fit_arguments
from openset.pipeline.result import read_summary
from openset.stats.metrics import OpenSetMetrics


def run(*arguments):
    return CliRunner().invoke(app, ["demo", *map(str, arguments)], env={"COLUMNS": "80", "NO_COLOR": "1"})


def made_up(method, seed):
    """A run whose figures are worked out by hand: AUROC .5 on the first split, .7 on the second."""
    random = np.random.default_rng(seed)
    is_novel = np.arange(40) >= 30
    score = random.normal(size=40) + 3 * is_novel
    figures = dict.fromkeys(OpenSetMetrics.__dataclass_fields__, 0.25) | {"auroc": 0.5 + 0.2 * seed}
    metrics = OpenSetMetrics(**figures)
    return DemoRun(method, seed, metrics, score, is_novel, np.inf if method == "dd" else 1.0)


DEMO = import_module("openset.commands.demo")


@pytest.fixture
def compared(monkeypatch):
    """The comparison without its training."""
    monkeypatch.setattr(
        DEMO, "fit_all", lambda seeds, steps: [made_up(name, seed) for seed in range(seeds) for name in METHODS]
    )


@pytest.fixture
def quick(compared, monkeypatch):
    """The main job by a method that trains nothing."""
    monkeypatch.setattr(DEMO, "fit_arguments", lambda *given: [*fit_arguments(*given), "--method", "mahalanobis"])


@pytest.fixture
def no_main_job(compared, monkeypatch):
    """The demo without the main job."""
    monkeypatch.setattr(DEMO, "_find_new_digit", lambda context, folder: None)


def test_the_main_job_as_a_user_types_it(quick, tmp_path):
    folder = tmp_path / "demo"
    result = run("--seeds", 1, "--folder", folder)
    assert result.exit_code == 0, result.output
    shown = result.stdout
    sample, fit = (line for line in shown.splitlines() if line.startswith("$ "))
    assert sample == f"$ openset sample digits {folder}"
    assert fit.startswith(
        f"$ openset fit {folder}/known.csv {folder}/batch.csv --label digit --id id --out {folder}"
    )
    assert shown.index("Digit 9 is new") < shown.index(fit) < shown.index(read_summary(folder / "run")())
    assert f"browser: {folder / 'run' / 'report.html'}\n" in shown
    assert shown.index("own files: openset fit") < shown.index("beside a discriminator") < shown.index("AUPRC")
    assert sorted(path.name for path in folder.iterdir()) == [
        "batch.csv", "known.csv", "run", "scores.png", "truth.csv",
    ]  # fmt: skip
    scored = pd.read_parquet(folder / "run" / "scored_target.parquet").set_index("id")["predicted"]
    called = pd.read_csv(folder / "truth.csv").set_index("id")["digit"][scored.index[scored == -1]]
    right = (
        f"{(called == 9).sum()} of the {len(called)} rows called new are of digit 9. The batch has 180 of them."
    )
    assert len(called) and right in shown


def test_nothing_is_left_where_the_user_is(no_main_job, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = run("--seeds", 1)
    assert result.exit_code == 0 and list((tmp_path / "here").iterdir()) == []
    (picture,) = tmp_path.glob("openset-demo-*/scores.png")
    assert f"Histograms of the scores of test rows: {picture}\n" in result.stdout


def test_a_table_and_a_picture(no_main_job, tmp_path):
    result = run("--seeds", 2, "--folder", tmp_path, "--out", tmp_path / "mine.png")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.split("Histograms")[0].splitlines())) <= 80
    assert "(test rows, 2 splits)" in result.stdout
    for word in ("AUROC", "AUPRC", "OSCR", "top-1", "right", *METHODS):
        assert word in result.stdout
    runs = [made_up("color", seed) for seed in range(2)]
    (color,) = [line for line in result.stdout.splitlines() if "color " in line]
    assert "0.60 ±0.10" in color and "0.25 ±0.00" in color
    right = sum(int((one.score[one.is_novel] > 1).sum()) for one in runs)
    called = sum(int((one.score > 1).sum()) for one in runs)
    assert f" {right} of {called} " in color and 0 < right < called
    assert "fraction" not in result.stdout and "true " not in result.stdout  # no point estimate of the share
    (dd,) = [line for line in result.stdout.splitlines() if "dd " in line]
    assert " 0 of 0 " in dd and "20 new rows" in " ".join(result.stdout.split())
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.png"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--folder", "used"), "used/run is there already: choose another folder."),
        (("--folder", "file"), "file is a file"),
        (("--out", "nowhere/scores.png"), "there is no folder nowhere"),
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(quick, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "used" / "run").mkdir(parents=True)
    (tmp_path / "file").write_text("dear")
    result = run(*options)
    assert result.exit_code == 2 and words in result.stderr and "Verdict" not in result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "used"]


def test_the_demo_ends_where_a_command_fails(compared, tmp_path, monkeypatch):
    monkeypatch.setattr(DEMO, "fit_arguments", lambda *given: ["fit", str(tmp_path / "nowhere.csv")])
    result = run("--folder", tmp_path / "demo")
    assert result.exit_code == 2 and "two files are needed" in result.stderr
    assert "AUROC" not in result.stdout


def test_without_pyarrow_the_extra_is_named(compared, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("--folder", tmp_path / "demo")
    assert result.exit_code == 2 and "openset[data]" in result.stderr and not (tmp_path / "demo").exists()


def test_without_matplotlib_the_extra_is_named(no_main_job, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("--seeds", 1, "--folder", tmp_path)
    assert result.exit_code == 0 and "openset[plot]" in result.stdout.replace("\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_every_method_is_fitted_on_every_split_and_scored_on_its_test_rows():
    runs = fit_all(seeds=2, steps=50)
    assert [(run.seed, run.method) for run in runs] == [(seed, name) for seed in range(2) for name in METHODS]
    for found in runs:
        assert len(found.score) == len(found.is_novel) > 250
        assert found.is_novel.mean() == pytest.approx(0.08, abs=0.01)
        assert found.called.tolist() == (found.score > found.threshold).tolist()
    again = fit_one("dd", 1, 50)
    assert again.metrics.auroc == pytest.approx(runs[4].metrics.auroc, abs=0.02)


def test_numbers_out_of_range_exit_with_2():
    assert run("--seeds", 0).exit_code == run("--steps", 10).exit_code == 2


def test_the_command_imports_nothing_heavy():
    heavy = "{'matplotlib', 'numpy', 'scipy', 'sklearn', 'torch', 'joblib'}"
    code = f"import sys, openset.commands.demo; sys.exit(str({heavy} & set(sys.modules) or '') or None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
