"""``openset sample`` as a user types it, and what it tells to type next."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from command_line import call
from doc_blocks import ROOT
from openset.cli import app
from openset.commands.sample import _sample_names, typed
from openset.shift.samples import SAMPLES


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def commands_in(text):
    lines = text.replace(" \\\n", " ").splitlines()  # as a shell reads them
    return [shlex.split(line)[1:] for line in lines if line.startswith("  openset ")]


def test_it_writes_two_files_and_the_truth_and_prints_what_to_type(tmp_path):
    done = call("sample", "digits", "demo")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == ["batch.csv", "known.csv", "truth.csv"]
    for words in (
        "Digit 9 is new",
        "1059 labelled rows of 9 known classes",
        "738 unlabelled rows; 180 of them are",
    ):
        assert words in done.stdout
    expected = "openset fit demo/known.csv demo/batch.csv --label digit --id id --out demo/run"
    assert expected in done.stdout and "demo/run/report.html" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_readme_and_quickstart_show_what_it_prints():
    shown = call("sample", "digits", "demo").stdout.strip()
    for page in ("README.md", "docs/quickstart.md"):
        assert f"```text\n{shown}\n" in (ROOT / page).read_text(encoding="utf-8"), page


@pytest.mark.slow
def test_readme_shows_what_the_fit_prints(tmp_path):
    """Word by word and to a tenth: another processor may round the last digit of a figure differently."""
    call("sample", "digits", "demo")
    done = call("fit", "demo/known.csv", "demo/batch.csv", "--label", "digit", "--id", "id", "--out", "demo/run")
    assert done.exit_code == 0, done.output
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = [block for block in page.split("```") if block.startswith("text\nVerdict: ")]
    left_out = r"(?s)Top novel rows.*?\n\n|p = \S+"
    printed, shown = (re.sub(left_out, "", text).split() for text in (done.stdout, shown[5:]))
    assert [re.sub(r"\d", "", word) for word in printed] == [re.sub(r"\d", "", word) for word in shown]
    figures = [[float(found) for found in re.findall(r"\d+\.?\d*", " ".join(text))] for text in (printed, shown)]
    np.testing.assert_allclose(*figures, rtol=0.1)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_commands_that_it_prints_run_as_they_are_typed(name, tmp_path):
    shown = call("sample", name, "my folder").stdout
    printed = commands_in(shown)
    assert max(map(len, shown.splitlines())) <= 80
    assert [command[0] for command in printed][:2] == ["fit", "inspect"]
    assert ("evaluate" in [command[0] for command in printed]) == (name != "digits-known")
    for command in printed:
        quick = ["--method", "knn"] if command[0] == "fit" else []
        done = call(*command, *quick)
        assert done.exit_code == 0, done.output
    run = tmp_path / "my folder" / "run"
    assert (run / "report.html").exists() and json.loads((run / "result.json").read_text())["data"]["id"] == "id"


def test_json_has_paths_counts_and_the_next_commands():
    done = call("sample", "wine", "demo", "--json")
    found = json.loads(done.stdout)
    fit = "openset fit demo/known.csv demo/batch.csv --label cultivar --id id --out demo/run"
    assert found["next"] == [fit, "openset inspect demo/run", "openset evaluate demo/run demo/truth.csv"]
    assert {key: found[key] for key in ("name", "known", "label", "known_rows", "batch_rows", "new_rows")} == {
        "name": "wine", "known": "demo/known.csv", "label": "cultivar", "known_rows": 77, "batch_rows": 73,
        "new_rows": 20,
    }  # fmt: skip
    assert found["known_classes"] == ["class_0", "class_1"] and found["new_classes"] == ["class_2"]
    assert call("sample", "wine", "demo", "-q").output == ""


def test_wrong_input_is_one_message_and_exit_code_2(tmp_path):
    for arguments, words in (
        (("digit", "demo"), "Did you mean 'digits'?"),
        (("zzz", "demo"), "choose one of digits, digits-known, breast-cancer, wine."),
        (("wine", "file"), "file is a file"),
        (("wine", "mine"), "mine/known.csv is there already"),
        (("wine", "mine"), "replace what is there with --overwrite."),
    ):
        (tmp_path / "file").write_text("dear")
        (tmp_path / "mine").mkdir(exist_ok=True)
        (tmp_path / "mine" / "known.csv").write_text("dear")
        done = call("sample", *arguments)
        assert done.exit_code == 2 and words in done.stderr, done.output
        assert done.stderr.count("error: ") == 1 and "Traceback" not in done.stderr
    assert not (tmp_path / "demo").exists() and (tmp_path / "mine" / "known.csv").read_text() == "dear"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["known.csv"]
    assert call("sample", "wine", "mine", "--overwrite", "-q").exit_code == 0
    assert call("sample", "wine").exit_code == 2


def test_without_pyarrow_it_writes_and_says_what_fit_needs(monkeypatch):
    find = importlib.util.find_spec
    with monkeypatch.context() as patch:  # undoing all would leave the empty folder that tests run in
        patch.setattr(importlib.util, "find_spec", lambda name, *rest: name != "pyarrow" and find(name, *rest))
        assert "pip install 'openset[data]'" in call("sample", "wine", "demo").stdout
    code = (
        "import sys; sys.modules.update(pyarrow=None, pandas=None)\n"
        "from openset.shift.samples import make_sample, write_sample; from pathlib import Path\n"
        "write_sample(make_sample('wine'), Path(sys.argv[1])); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, "base"], check=False).returncode == 0


def test_the_help_has_examples_and_names_every_sample():
    shown = call("sample", "--help").output
    assert "Example: openset sample digits demo" in shown and max(map(len, shown.splitlines())) <= 80
    for name in SAMPLES:
        assert f"{name}: " in shown


def test_the_shell_completes_names():
    assert _sample_names("dig") == ["digits", "digits-known"] and _sample_names("zzz") == []
    asked = {"_OPENSET_COMPLETE": "complete_bash", "COMP_WORDS": "openset sample wi", "COMP_CWORD": "2"}
    assert CliRunner().invoke(app, prog_name="openset", env=asked).stdout.split() == ["wine"]


def test_a_command_is_quoted_where_the_shell_needs_it():
    assert typed(["inspect", "a b/run"]) == "openset inspect 'a b/run'"


def test_the_command_imports_nothing_heavy():
    heavy = "{'numpy', 'scipy', 'sklearn', 'torch', 'pyarrow'}"
    code = f"import sys, openset.commands.sample; sys.exit(str({heavy} & set(sys.modules) or '') or None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
