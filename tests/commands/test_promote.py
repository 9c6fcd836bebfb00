from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest

from command_line import call
from openset.review.session import Session


@pytest.fixture
def run(problem_files, tmp_path):
    shutil.copytree(problem_files / "run", tmp_path / "run")
    return tmp_path / "run"


def answer(run, n=60):
    """Rows far from both known kinds are the new one."""
    session = Session(run, seed=0)
    heights = pd.read_parquet(session.result.summary.data.target.path)["height"]
    for i in range(n):
        row = session.next("explore" if i % 2 else "estimate").row
        session.new(row, "kettle") if heights[row] > 5 else session.known(row)


def test_before_and_after_are_shown_and_written(run, tmp_path):
    answer(run)
    done = call("promote", run)
    assert done.exit_code == 0, done.output
    assert "Promoted: kettle" in done.output and "right on check rows" in done.output
    assert sorted(path.name for path in (tmp_path / "run-promoted").iterdir()) == [
        "labelled.parquet", "run", "target.parquet"
    ]  # fmt: skip
    again = call("promote", run)
    assert again.exit_code == 2 and "--out" in again.output
    found = json.loads(call("promote", run, "--out", tmp_path / "two", "--check", 0, "--json").stdout)
    assert found["check_rows"] == 0 and found["after"]["classes"] == 3


def test_a_class_with_few_rows_is_left_out(run, tmp_path):
    answer(run, 6)
    refused = call("promote", run, "--out", tmp_path / "out")
    assert refused.exit_code == 2 and "answer more rows" in refused.output
    assert not (tmp_path / "out").exists()
