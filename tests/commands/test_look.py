"""``openset report``, ``inspect``, ``compare`` and ``evaluate``."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from command_line import QUICK, call, fit
from product_files import frame, make_rows


@pytest.fixture
def run(problem_files):
    return problem_files / "run"


def test_a_report_is_written_anew(run, tmp_path):
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<!doctype html>" in page[:20].lower() and "Which rows" in page
    again = ("report", run, "--out", tmp_path / "again.html", "--no-examples")
    assert json.loads(call(*again, "--json").stdout) == {"out": str(tmp_path / "again.html")}
    assert call(*again, "--quiet").output == ""
    assert len((tmp_path / "again.html").read_bytes()) < len(page.encode())
    assert f"report: {tmp_path / 'again.html'}" in call(*again).output


def test_inspect_shows_the_answer_the_settings_and_more_with_v(run, problem_files):
    shown = call("inspect", run)
    assert shown.exit_code == 0 and "Verdict: a group stands out" in shown.output
    # a long path is folded in its column
    assert "source.parquet" in "".join(shown.output.split()) and "ignore_target_labels" in shown.output
    more = call("inspect", run, "-v").output
    assert "novel_label" in more and "novel_label" not in shown.output and "threads" in more
    content = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert json.loads(call("inspect", run, "--json").stdout) == content


def test_compare_puts_runs_beside_the_first(run, problem_files, tmp_path):
    assert fit(problem_files, tmp_path / "run").exit_code == 0
    both = json.loads(call("compare", tmp_path / "run", run, "--json").output)
    assert [entry["overlap"] for entry in both] == [1.0, 1.0]
    assert both[1]["rank_correlation"] == pytest.approx(1)
    assert list(both[0]) == [
        "run", "method", "verdict", "low", "called_novel", "rows", "overlap", "rank_correlation",
    ]  # fmt: skip
    table = call("compare", tmp_path / "run", run).output
    assert table.count("mahalanobis") == 2 and table.count("1.0000") == 4


def test_evaluate_measures_a_run(run, problem_files):
    measured = json.loads(call("evaluate", run, problem_files / "labelled.csv", "--json").output)
    assert measured["auroc"] == 1.0 and measured["unk"] == 1.0 and measured["n_novel"] == 30
    table = call("evaluate", run, problem_files / "labelled.csv").output
    assert "auroc" in table and "1.0000" in table and "chance that a novel row scores above" in table
    refused = call("evaluate", run, problem_files / "labelled.csv", "--label", "rid")
    assert refused.exit_code == 2 and "is it the right label column?" in " ".join(refused.output.split())
    assert call("compare", run).exit_code == 2 and "at least two" in call("compare", run).output


def test_a_damaged_run_is_one_message(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["verdict"]["word"] = 3
    path.write_text(json.dumps(content), encoding="utf-8")
    for command in (("inspect", tmp_path / "run"), ("compare", tmp_path / "run", run)):
        done = call(*command)
        assert done.exit_code == 2
        assert done.output == f"error: {path}: verdict.word is a whole number, expected text.\n"


@pytest.mark.parametrize("command", ["score", "inspect", "evaluate", "compare"])
def test_a_folder_that_is_no_run(problem_files, tmp_path, command):
    more = {"score": [problem_files / "target.csv", "--out", tmp_path / "o.csv"],
            "evaluate": [problem_files / "labelled.csv"], "compare": [tmp_path]}.get(command, [])  # fmt: skip
    done = call(command, tmp_path, *more)
    assert done.exit_code == 2 and "is no run" in done.output and "Traceback" not in done.output


def test_labels_that_came_later_are_matched_by_what_they_say(tmp_path):
    random = np.random.default_rng(0)
    X, y = make_rows(random, {"cat": 150, "dog": 150})
    frame(X, kind=np.where(y == "cat", 0, 1)).to_csv(tmp_path / "source.csv")
    frame(make_rows(random, {"cat": 90, "dog": 90, "new": 40})[0]).to_csv(tmp_path / "target.csv")
    run = tmp_path / "run"
    files = (tmp_path / "source.csv", tmp_path / "target.csv")
    done = call("fit", *files, "--label", "kind", *QUICK, "--fpr", "0.05", "--out", run)
    assert done.exit_code == 0 and "row numbers not used: row numbers" in " ".join(done.output.split()), (
        done.output
    )
    X, y = make_rows(random, {"cat": 40, "dog": 40, "new": 30})
    names = {"cat": 0, "dog": 1, "new": "odd"}
    frame(X, kind=[names[kind] for kind in y]).to_csv(tmp_path / "words.csv", index=False)
    numbers = pd.Series([names[kind] if kind != "new" else 9 for kind in y], dtype=float)
    frame(X, kind=numbers).to_parquet(tmp_path / "floats.parquet")
    found = [
        json.loads(call("evaluate", run, tmp_path / name, "--json").output)
        for name in ("words.csv", "floats.parquet")
    ]
    assert found[0] == found[1] and found[0]["n_known"] == 80 and found[0]["top1"] > 0.9
    numbers[::2] = np.nan
    frame(X, kind=numbers).to_parquet(tmp_path / "some.parquet")
    refused = call("evaluate", run, tmp_path / "some.parquet")
    assert refused.exit_code == 2 and "--skip-bad" in refused.output and "skip_bad" not in refused.output
    some = json.loads(call("evaluate", run, tmp_path / "some.parquet", "--skip-bad", "--json").output)
    assert some["n_known"] + some["n_novel"] == 55
