from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from typer.testing import CliRunner

from openset.cli import app
from openset.commands.demo import METHODS, DemoRun, fit_all, fit_one
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
    return DemoRun(method, seed, metrics, 0.1, 0.08, score, is_novel, np.inf if method == "dd" else 2.0)


@pytest.fixture
def fitted(monkeypatch):
    """The demo without its training."""
    monkeypatch.setattr(
        import_module("openset.commands.demo"),
        "fit_all",
        lambda seeds, steps: [made_up(name, seed) for seed in range(seeds) for name in METHODS],
    )


def test_a_table_and_a_picture(fitted, tmp_path):
    result = run("--seeds", 2, "--out", tmp_path / "scores.png")
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "(test rows, 2 splits)" in result.stdout
    for word in ("AUROC", "AUPRC", "OSCR", "top-1", "novel fraction", *METHODS):
        assert word in result.stdout
    (color,) = [line for line in result.stdout.splitlines() if "color " in line]
    assert "0.60 ±0.10" in color and "0.25 ±0.00" in color and "0.10 ±0.00" in color
    (true,) = [line for line in result.stdout.splitlines() if "true " in line]
    assert "0.08 ±0.00" in true
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["scores.png"]


def test_without_matplotlib_the_extra_is_named(fitted, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("--seeds", 1, "--out", tmp_path / "scores.png")
    assert result.exit_code == 0 and "openset[plot]" in result.stdout.replace("\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_every_method_is_fitted_on_every_split_and_scored_on_its_test_rows():
    runs = fit_all(seeds=2, steps=50)
    assert [(run.seed, run.method) for run in runs] == [(seed, name) for seed in range(2) for name in METHODS]
    for found in runs:
        assert len(found.score) == len(found.is_novel) > 250
        assert found.is_novel.mean() == pytest.approx(0.08, abs=0.01) == found.true
        assert 0 <= found.estimated <= 1
    again = fit_one("dd", 1, 50)
    assert again.metrics.auroc == pytest.approx(runs[4].metrics.auroc, abs=0.02)


def test_numbers_out_of_range_exit_with_2():
    assert run("--seeds", 0).exit_code == run("--steps", 10).exit_code == 2


def test_the_command_imports_nothing_heavy():
    heavy = "{'matplotlib', 'numpy', 'scipy', 'sklearn', 'torch', 'joblib'}"
    code = f"import sys, openset.commands.demo; sys.exit(str({heavy} & set(sys.modules) or '') or None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
