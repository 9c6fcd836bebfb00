"""What commands print: errors in one line with the options of the command, tables, JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Annotated

import pandas as pd
import pytest
import typer

from command_line import COMMAND, QUICK, fit
from openset.commands.console import as_option, helpful_errors, show_json, show_table, show_text
from openset.errors import MissingExtraError, Parameter, ParameterError


def context(**given):
    """A command with an option, a flag, an option that a parameter has another name for, and ``--set``."""

    def command(
        fdr: float = 0.1,
        label: Annotated[str, typer.Option(metavar="COL")] = "",
        skip_bad: Annotated[bool | None, typer.Option("--skip-bad", "-s")] = None,
        alpha: float = 0.1,
        set_: Annotated[list[str] | None, typer.Option("--set")] = None,
    ) -> None: ...

    app = typer.Typer()
    app.command()(command)
    return SimpleNamespace(command=typer.main.get_command(app))


@pytest.mark.parametrize(
    ("parameter", "option"),
    [
        (Parameter("fdr"), "--fdr"),
        (Parameter("fdr", 0.2), "--fdr 0.2"),
        (Parameter("fdr", ...), "--fdr ..."),
        (Parameter("label", ...), "--label COL"),
        (Parameter("label", "a b"), "--label a b"),
        (Parameter("skip_bad", True), "--skip-bad"),
        (Parameter("novel_fractions", 0.3), "--alpha 0.3"),
        (Parameter("hidden", 0), "--set hidden=0"),
        (Parameter("novel_label", ...), "--set novel_label=..."),
        (Parameter("an entry of sweep", 3), "an entry of sweep=3"),
    ],
)
def test_a_parameter_is_written_as_the_option_of_the_command(parameter, option):
    assert as_option(parameter, context(), {"novel_fractions": "alpha"}) == option


def test_without_a_command_a_parameter_is_written_as_in_python():
    assert as_option(Parameter("skip_bad", True), None, {}) == "skip_bad=True"


def raised(error, capsys, **options):
    with pytest.raises(typer.Exit) as caught, helpful_errors(False, **options):
        raise error
    return caught.value.exit_code, capsys.readouterr().err


def test_errors_are_one_line_and_an_exit_code(capsys):
    wrong = ParameterError("skip\n  them with ", Parameter("skip_bad", True), ".")
    assert raised(wrong, capsys, context=context()) == (2, "error: skip them with --skip-bad.\n")
    assert raised(wrong, capsys) == (2, "error: skip them with skip_bad=True.\n")
    assert raised(ValueError("[bold]no markup[/bold]"), capsys) == (2, "error: [bold]no markup[/bold]\n")
    assert raised(MissingExtraError("This", "data"), capsys)[0] == 2
    code, message = raised(OSError("no space left"), capsys)
    assert code == 1 and "the system refused: no space left" in message
    assert raised(KeyboardInterrupt(), capsys) == (
        130,
        "error: interrupted. Nothing was written; what was there before is unchanged.\n",
    )
    with pytest.raises(ZeroDivisionError), helpful_errors(False):  # ours: it keeps its traceback
        raise ZeroDivisionError


def test_verbose_shows_where_an_error_arose(capsys):
    with pytest.raises(typer.Exit), helpful_errors(True):
        raise ValueError("wrong")
    shown = capsys.readouterr().err
    assert "Traceback" in shown and shown.endswith("error: wrong\n")


def test_tables_and_text_show_words_as_they_are(capsys):
    show_table(("name", "value"), [("[red]a[/red]", "1")], "A caption.")
    show_text("[b]first[/b]\nsecond")
    shown = capsys.readouterr().out
    assert "[red]a[/red]" in shown and "A caption." in shown and "[b]first[/b]\nsecond" in shown
    show_json({"name": "猫"})
    assert json.loads(capsys.readouterr().out) == {"name": "猫"}
    with pytest.raises(ValueError, match="JSON"):
        show_json({"value": float("nan")})


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_failure(problem_files, tmp_path):
    assert fit(problem_files, tmp_path / "run").exit_code == 0
    line = f"{sys.executable} -m openset.cli inspect {tmp_path / 'run'} --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 0 and "refused" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_names_that_the_terminal_cannot_show(problem_files, tmp_path):
    source = pd.read_parquet(problem_files / "source.parquet")
    source.assign(kind=source.kind.str.replace("cat", "猫")).to_parquet(tmp_path / "source.parquet")
    files = [str(tmp_path / "source.parquet"), str(problem_files / "target.parquet")]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    command = [*COMMAND, "fit", *files, "--label", "kind", *QUICK, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, env=environment)
    assert done.returncode == 0 and rb"\u732b" in done.stdout, done.stderr
    command = [*COMMAND, "inspect", str(tmp_path / "run"), "--json"]
    shown = json.loads(subprocess.run(command, capture_output=True, env=environment, check=True).stdout)
    assert "猫" in shown["classes"]
