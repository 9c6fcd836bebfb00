from __future__ import annotations

import csv
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from openset.commands.theory import app

SMALL = ["--features", "120", "--n-source", "40", "--n-target", "20", "--n-test", "60", "--seeds", "2"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    runner = CliRunner()
    return lambda *args: runner.invoke(app, list(args))


def lines_fit(text):
    return max(map(len, text.splitlines())) <= 80


def test_sweep_prints_both_tables_and_writes_outcomes(run, tmp_path):
    result = run("sweep", *SMALL, "--output", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert lines_fit(result.stdout)
    assert "…" not in result.stdout
    assert "r_eta sweep" in result.stdout
    assert "pi/32" in result.stdout
    assert (tmp_path / "sweeps.png").read_bytes().startswith(PNG)
    with (tmp_path / "outcomes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == (10 + 5) * 2 * 2
    assert max(float(row["certificate"]) for row in rows) <= 1e-8


def test_maps_need_a_folder(run):
    result = run("sweep", *SMALL, "--maps")
    assert result.exit_code == 2
    assert "--output" in result.output


def test_check_reports_conditions_limit_and_solution(run):
    args = ("--r-mu", "1", "--r-eta", "3.5", "--alpha", "0.2", "--n-source", "160", "--n-target", "40")
    result = run("check", *args, "-d", "10000")
    assert result.exit_code == 0, result.output
    assert lines_fit(result.stdout)
    assert "CoLOR ranks novel above known" in result.stdout
    assert "DD ranks known above novel" in result.stdout
    assert "unknown" in result.stdout


def test_check_shows_the_theorem_s_region_failing(run):
    args = ("--r-mu", "132", "--r-eta", "0.0615", "--alpha", "1.43e-5", "--n-source", "70000")
    constants = ("--c1", "1", "--c2", "2", "--prop-scale", "0.5", "--prop-inner", "2")
    result = run("check", *args, "--n-target", "70000", "-d", "100000000", "--no-solve", *constants)
    assert result.exit_code == 0, result.output
    assert "unknown" not in result.stdout
    assert " NO" not in result.stdout
    assert "CoLOR ranks known above novel" in result.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("check", "--r-mu", "0"), "r_mu=0.0"),
        (("check", "-d", "100000000"), "--no-solve"),
        (("impossibility", "--epsilon", "0.7"), "epsilon=0.7"),
    ],
)
def test_usage_errors_without_a_traceback(run, args, message):
    result = run(*args)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_impossibility_prints_the_enumeration(run):
    result = run("impossibility", "--epsilon", "0.1")
    assert result.exit_code == 0, result.output
    assert lines_fit(result.stdout)
    assert "16 known/novel rules: mean risk over A and B from 1/2 to 1/2." in result.stdout
    assert "81 three-class rules: mean risk over A and B from 1/2 to 1." in result.stdout
    assert "4/45" in result.stdout


@pytest.mark.parametrize("command", ["sweep", "check", "impossibility"])
def test_help_has_examples(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"openset theory {command}" in result.stdout


def test_the_commands_import_nothing_heavy():
    heavy = "{'matplotlib', 'numpy', 'scipy', 'sklearn', 'torch'}"
    code = f"import sys, openset.commands.theory; sys.exit(str({heavy} & set(sys.modules) or '') or None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
