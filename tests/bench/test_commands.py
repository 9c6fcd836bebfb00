from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from openset.cli import app
from openset.errors import MissingExtraError

TEN_ROWS = """
[[problem]]
dataset = "synthetic"
settings = ["shift"]
seeds = [0]
options = { n_source = 60, n_target = 60, n_test = 40, n_features = 4 }
[[method]]
name = "knn"
[[method]]
name = "mahalanobis"
"""


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"COLUMNS": "80", "NO_COLOR": "1"})


def fits_80_columns(text):
    return max(map(len, text.splitlines())) <= 80 and "…" not in text


def test_list_names_experiments_and_datasets():
    listed = run("list")
    assert listed.exit_code == 0 and fits_80_columns(listed.stdout)
    for word in ("quick", "yes, ", "digits", "synthetic-subtypes"):
        assert word in listed.stdout


def test_run_table_figure_and_export(tmp_path):
    spec, store = tmp_path / "mine.toml", ("--store", tmp_path / "runs.sqlite")
    spec.write_text(TEN_ROWS)
    ran = run("run", spec, *store)
    assert ran.exit_code == 0, ran.output
    assert "knn" in ran.stdout and "AUROC" in ran.stdout and "Paired tests need 6 splits" in ran.stdout
    assert "2 runs in" in ran.stderr and fits_80_columns(ran.stdout)
    assert "2 already stored" in run("run", spec, *store).stderr

    printed = run("table", spec, *store).stdout
    assert printed.split() == ran.stdout.split()
    assert run("table", spec, *store, "--format", "markdown").stdout.count("| knn |") == 1
    assert r"\begin{tabular}" in run("table", spec, *store, "--format", "latex").stdout
    run("table", spec, *store, "--format", "csv", "--output", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().startswith("problem,x,setting,")
    run("table", spec, *store, "--output", tmp_path / "t.txt")
    assert "mahalanobis" in (tmp_path / "t.txt").read_text()

    assert run("figure", spec, *store, "--output", tmp_path / "f.svg").exit_code == 0
    assert b"<svg" in (tmp_path / "f.svg").read_bytes()
    exported = run("export", *store, "--output", tmp_path / "runs.csv")
    assert "2 rows" in exported.stderr and (tmp_path / "runs.csv").read_text().count("\n") == 3
    assert "0 rows" in run("export", *store, "--what", "heads", "--output", tmp_path / "heads.csv").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nonsense"), "spec='nonsense'"),
        (("table", "quick", "--store", "none.sqlite"), "no result store 'none.sqlite'"),
        (("export", "--store", "none.sqlite", "--output", "x.csv"), "no result store"),
    ],
)
def test_usage_errors_without_a_traceback(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_an_interrupted_run_says_how_to_continue(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("openset.bench.runner.sweep", interrupted)
    result = run("run", "quick", "--store", tmp_path / "runs.sqlite")
    assert result.exit_code == 130 and "the same command continues" in result.stderr


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    from openset.bench.on_ray import ray_results

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"openset\[ray\]"):
        next(ray_results([], None, 1, lambda run: None))
    spec = tmp_path / "mine.toml"
    spec.write_text(TEN_ROWS)
    result = run("run", spec, "--on", "ray", "--store", tmp_path / "runs.sqlite")
    assert result.exit_code == 2 and "openset[ray]" in result.output


@pytest.mark.parametrize("command", ["list", "run", "table", "figure", "export"])
def test_help_has_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0 and f"openset bench {command}" in result.stdout


def test_the_commands_import_nothing_heavy():
    heavy = "{'matplotlib', 'numpy', 'scipy', 'sklearn', 'torch', 'ray', 'pyarrow'}"
    code = f"import sys, openset.bench.commands; sys.exit(str({heavy} & set(sys.modules) or '') or None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
