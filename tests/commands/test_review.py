from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from command_line import call
from openset.review.session import Session

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from serving import Serving


@pytest.fixture
def run(problem_files, tmp_path):
    shutil.copytree(problem_files / "run", tmp_path / "run")
    return tmp_path / "run"


def test_rows_are_exported_labelled_elsewhere_and_imported(run, tmp_path):
    exported = call("review", run, "--export", tmp_path / "rows.csv", "--rows", 20)
    assert exported.exit_code == 0 and "Exported 40 rows" in exported.output, exported.output
    rows = pd.read_csv(tmp_path / "rows.csv").assign(label="kettle")[["id", "label"]]
    rows.to_csv(tmp_path / "labels.csv", index=False)
    done = call("review", run, "--import", tmp_path / "labels.csv", "--json")
    assert json.loads(done.stdout)["imported"] == 40
    assert Session(run).state.names == {"kettle": 40}


def test_an_address_for_others_needs_a_flag(run):
    refused = call("review", run, "--host", "0.0.0.0")
    assert refused.exit_code == 2 and "--allow-remote" in refused.output


def test_the_page_is_served_until_interrupted(run):
    with Serving(run) as serving:
        assert serving.url.startswith("http://127.0.0.1:") and len(serving.token) >= 32
        assert serving.interrupt() == 0


def test_no_run_is_an_error_with_advice(tmp_path):
    found = call("review", tmp_path)
    assert found.exit_code == 2 and "is no run" in found.output


def test_a_run_with_answers_is_not_replaced_by_a_new_fit(run, problem_files):
    Session(run).new(1)
    from command_line import fit

    refused = fit(problem_files, run, "--overwrite")
    assert refused.exit_code == 2 and "review.sqlite" in refused.output


def test_the_end_says_what_was_answered_and_what_comes_next(run):
    from openset.commands.review import _farewell, _invitation
    from openset.review.server import Address

    session = Session(run)
    session.new(1, "kettle")
    said = _farewell(session, run)
    assert "Answers: 1." in said and "kettle (1)" in said and f"openset promote {run}" in said
    address = Address("10.0.0.2", 80, "secret")
    assert "Warning" in _invitation(address, session, "10.0.0.2")
    assert "Warning" not in _invitation(address, session, "127.0.0.1")
