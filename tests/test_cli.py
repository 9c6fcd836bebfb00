"""The command line as a user types it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import openset
from openset.cli import app

COMMAND = [sys.executable, "-m", "openset.cli"]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "NO_COLOR": "1"})


def test_help_lists_the_commands_and_fits_80_columns():
    for arguments in (["--help"], ["demo", "--help"], ["methods", "--help"]):
        result = run(*arguments)
        assert result.exit_code == 0
        assert max(map(len, result.output.splitlines())) <= 80
    assert "demo" in run("--help").output and "methods" in run("--help").output
    assert "Example: openset demo" in run("demo", "--help").output


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
    table = run("methods").output
    assert max(map(len, table.splitlines())) <= 80
    listed = json.loads(run("methods", "--json").output)
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
    shown = " ".join(run("--help").output.split())
    for words in ("0 done", "2 wrong input", "130 interrupted", "NO_COLOR"):
        assert words in shown


def test_a_wrong_command_exits_with_2():
    assert run("nonsense").exit_code == 2
    assert run("demo", "--seeds", "0").exit_code == 2
