"""The command line as a user types it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import openset
from command_line import COMMAND, QUICK, call


def test_help_lists_the_commands_and_fits_80_columns():
    for arguments in (["--help"], ["demo", "--help"], ["methods", "--help"]):
        result = call(*arguments)
        assert result.exit_code == 0
        assert max(map(len, result.output.splitlines())) <= 80
    assert "demo" in call("--help").output and "methods" in call("--help").output
    assert "Example: openset demo" in call("demo", "--help").output


def test_version():
    result = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"openset {openset.__version__}"


@pytest.mark.parametrize(
    "code",
    [
        "import openset",
        "import openset; dir(openset); openset.ModelFormatError",
        "import openset.registry as r; r.methods()",
        "from typer.testing import CliRunner; from openset.cli import app; CliRunner().invoke(app, ['--help'])",
    ],
)
def test_light_things_do_not_import_torch(code):
    check = f"import sys; {code}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_help_imports_nothing_heavy():
    code = "from typer.testing import CliRunner; from openset.cli import app; CliRunner().invoke(app, ['--help'])"
    check = f"import sys; {code}; print([m for m in ('torch', 'sklearn', 'scipy', 'numpy') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_methods_as_a_table_and_as_json():
    table = call("methods").output
    assert max(map(len, table.splitlines())) <= 80
    listed = json.loads(call("methods", "--json").output)
    assert [m["name"] for m in listed][:1] == ["color"]
    for method in listed:
        assert method["name"] in table
        assert method["assumes"]


def complete(words):
    environment = {**os.environ, "_OPENSET_COMPLETE": "complete_bash", "COMP_WORDS": words,
                   "COMP_CWORD": str(len(words.split(" ")) - 1)}  # fmt: skip
    program = "import sys; sys.argv = ['openset']; from openset.cli import app; app(prog_name='openset')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout.split()


def test_the_shell_completes_commands_options_and_methods():
    assert complete("openset ev") == ["evaluate"]
    assert complete("openset fit --me") == ["--method"]
    assert complete("openset fit --method co") == ["color", "color_paper", "conop"]


def test_no_color_leaves_no_colour_even_on_a_terminal():
    command = [*COMMAND, "inspect", "nowhere"]
    environment = {**os.environ, "FORCE_COLOR": "1", "NO_COLOR": ""}
    coloured = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    plain = subprocess.run(
        command, capture_output=True, text=True, env={**environment, "NO_COLOR": "1"}, check=False
    )
    assert re.search("\x1b\\[[0-9;]*3[0-7]m", coloured.stderr) and coloured.returncode == 2
    assert not re.search("\x1b\\[[0-9;]*3[0-7]m", plain.stderr) and "is no run" in plain.stderr


def test_help_tells_the_exit_codes():
    shown = " ".join(call("--help").output.split())
    for words in ("0 done", "2 wrong input", "130 interrupted", "NO_COLOR"):
        assert words in shown


def test_a_wrong_command_exits_with_2():
    assert call("nonsense").exit_code == 2
    assert call("demo", "--seeds", "0").exit_code == 2


@pytest.mark.slow
def test_a_real_process_from_fit_to_evaluate(problem_files, tmp_path):
    environment = {**os.environ, "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}

    def run(*arguments):
        return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path,
                              env=environment, check=False)  # fmt: skip

    done = run("fit", problem_files / "source.parquet", problem_files / "target.csv", "--label", "kind", *QUICK,
               "--id", "rid", "--out", "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout and done.stdout.startswith("Verdict: ")
    done = run("score", "run", problem_files / "target.npz", "--out", "scored.jsonl", "--json")
    answer = json.loads(done.stdout)
    assert (answer["rows"], answer["out"], answer["moved"]["answer"]) == (400, "scored.jsonl", "no")
    again = ("score", "run", problem_files / "target.npz", "--out", "again.jsonl", "-q")
    done = run(*again, "--fail-if-novel", "0.05")
    assert done.returncode == 3 and done.stdout == "" and done.stderr.startswith("too many new rows: ")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "scored.jsonl").read_bytes()
    assert run("evaluate", "run", problem_files / "labelled.csv").returncode == 0
    failed = run("inspect", "nothing")
    assert failed.returncode == 2 and failed.stderr.startswith("error: ") and failed.stdout == ""
