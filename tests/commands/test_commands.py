"""The product's commands as a user types them, with right and with wrong input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from openset.cli import app
from openset.stats.p_values import benjamini_hochberg
from product_files import frame, make_rows

COMMAND = [sys.executable, "-m", "openset.cli"]
QUICK = ("--method", "mahalanobis", "--set", "validation_fraction=0.4")


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "80", "NO_COLOR": "1"})


def fit(folder, out, *more):
    files = (folder / "source.parquet", folder / "target.parquet")
    return call("fit", *files, "--label", "kind", "--id", "rid", *QUICK, "--out", out, *more)


def test_fit_score_inspect_compare_and_evaluate(problem_files, tmp_path):
    done = fit(problem_files, tmp_path / "run")
    assert done.exit_code == 0, done.output
    assert "Verdict: likely" in done.output  # at most, for a method without a test of its own
    assert "Ignored non-numeric columns: town" in done.output
    assert "3: width, height, weight" in done.output
    assert max(map(len, done.output.splitlines()[:-1])) <= 80
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "model", "report.html", "result.json", "scored_target.parquet", "settings.toml",
    ]  # fmt: skip

    fitted = pq.read_table(tmp_path / "run" / "scored_target.parquet").to_pandas()
    for name in ("target.parquet", "target.csv", "target.npz"):
        done = call("score", tmp_path / "run", problem_files / name, "--out", tmp_path / "scored.parquet")
        assert done.exit_code == 0, done.output
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "scored.parquet"), fitted)

    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "<!doctype html>" in page[:20].lower() and "Which rows" in page
    again = ("report", tmp_path / "run", "--out", tmp_path / "again.html", "--no-examples")
    assert json.loads(call(*again, "--json").stdout) == {"out": str(tmp_path / "again.html")}
    assert call(*again, "--quiet").output == ""
    assert len((tmp_path / "again.html").read_bytes()) < len(page.encode())

    shown = call("inspect", tmp_path / "run", "-v")
    assert shown.exit_code == 0 and "Verdict: " in shown.output and "validation_fraction" in shown.output
    measured = json.loads(call("evaluate", tmp_path / "run", problem_files / "labelled.csv", "--json").output)
    assert measured["auroc"] == 1.0 and measured["unk"] == 1.0 and measured["n_novel"] == 30
    both = json.loads(call("compare", tmp_path / "run", problem_files / "run", "--json").output)
    assert [entry["overlap"] for entry in both] == [1.0, 1.0]
    assert both[1]["rank_correlation"] == pytest.approx(1)
    assert "mahalanobis" in call("compare", tmp_path / "run", problem_files / "run").output


def test_rows_to_act_on_at_a_false_discovery_rate(problem_files, tmp_path):
    done = fit(problem_files, tmp_path / "run", "--fdr", "0.2", "--max-density-ratio", "2")
    assert done.exit_code == 0, done.output
    marked = pd.read_parquet(tmp_path / "run" / "scored_target.parquet")["novel_at_fdr"]
    assert f"At FDR 0.2      {marked.sum()} rows are listed" in done.output and marked.sum() >= 40
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert kept["listed"] == {"fdr": 0.2, "max_density_ratio": 2.0, "rows": int(marked.sum())}
    assert f"{marked.sum()} are marked novel_at_fdr" in (tmp_path / "run" / "report.html").read_text(
        encoding="utf-8"
    )
    shown = call("inspect", tmp_path / "run")
    assert "At FDR 0.2" in shown.output
    for options, ratio in (((), 2), (("--max-density-ratio", "1"), 1), (("--max-density-ratio", "30"), 30)):
        done = call("score", tmp_path / "run", problem_files / "target.csv", "--fdr", "0.2", *options,
                    "--out", tmp_path / "scored.csv", "-q")  # fmt: skip
        assert done.exit_code == 0 and done.output == ""
        scored = pd.read_csv(tmp_path / "scored.csv")
        expected = benjamini_hochberg(scored["p_value"], 0.2, max_density_ratio=ratio)
        assert scored["novel_at_fdr"].tolist() == expected.tolist()
        assert ratio != 2 or scored["novel_at_fdr"].tolist() == marked.tolist()
    done = call("score", tmp_path / "run", problem_files / "target.csv", "--out", tmp_path / "plain.csv")
    assert done.exit_code == 0 and "novel_at_fdr" not in pd.read_csv(tmp_path / "plain.csv")


def test_color_tests_under_the_bound_that_is_told(problem_files, tmp_path):
    quick = ("max_steps=100", "evaluate_every=50", "grid=[0.05, 0.1]", "groups=[[0.3, 0.0, 0.6]]")
    files = (problem_files / "source.parquet", problem_files / "target.parquet")
    told = ("--label", "kind", "--id", "rid", "--max-density-ratio", "3")
    done = call("fit", *files, *told, "--out", tmp_path / "run", *(f"--set={value}" for value in quick))
    assert done.exit_code == 0, done.output
    assert "Verdict: clear" in done.output and "B = 3" in done.output and "p = " in done.output
    assert max(map(len, done.output.splitlines()[:-1])) <= 80
    assert "max_density_ratio = 3.0" in (tmp_path / "run" / "settings.toml").read_text()


def test_the_run_repeats_from_its_settings(problem_files, tmp_path):
    again = call(
        "fit", "--settings", problem_files / "run" / "settings.toml", "--out", tmp_path / "again", "--json"
    )
    assert again.exit_code == 0, again.output
    first = json.loads((problem_files / "run" / "result.json").read_text())
    second = json.loads(again.stdout)
    assert second == json.loads((tmp_path / "again" / "result.json").read_text())
    assert first["data"].pop("left_out") == ["town"] and second["data"].pop("left_out") == []
    same = set(first) - {"created", "timings"}
    assert {name: first[name] for name in same} == {name: second[name] for name in same}
    one, two = (folder / "scored_target.parquet" for folder in (problem_files / "run", tmp_path / "again"))
    assert pq.read_table(one).equals(pq.read_table(two))


def test_flags_win_over_the_settings_file(problem_files, tmp_path):
    settings = tmp_path / "s.toml"
    settings.write_text('method = "knn"\nlabel = "kind"\nfpr = 0.05\n[parameters]\nn_neighbors = 3\n')
    files = (problem_files / "source.parquet", problem_files / "target.parquet", "--settings", settings)
    features = ("--features", "width", "--features", "height")
    done = call("fit", *files, "--fpr", "0.1", *features, "--out", tmp_path / "run", "-q")
    assert done.exit_code == 0 and done.output == ""
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (kept["method"], kept["fpr"], kept["parameters"]["n_neighbors"]) == ("knn", 0.1, 3)
    assert kept["data"]["features"] == ["width", "height"]


def test_a_run_is_replaced_only_when_told_to(problem_files, tmp_path):
    assert fit(problem_files, tmp_path / "run", "-q").exit_code == 0
    refused = fit(problem_files, tmp_path / "run", "-q")
    assert refused.exit_code == 2 and "--overwrite" in refused.output
    assert fit(problem_files, tmp_path / "run", "-q", "--overwrite").exit_code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "photo.txt").write_text("dear")
    refused = fit(problem_files, tmp_path / "mine", "--overwrite")
    assert refused.exit_code == 2 and "no run" in refused.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "run"]


GIVEN = ("source.parquet", "target.parquet", "--label", "kind")


def three_rows(folder):
    frame(np.eye(3), kind=["a", "b", "a"]).to_csv(folder / "source.csv", index=False)


def three_target_rows(folder):
    frame(np.eye(3), rid=["a", "b", "c"]).to_csv(folder / "target.csv", index=False)


def null_target_text(folder):
    for name, text in (("source", "fine"), ("target", None)):
        data = pd.read_parquet(folder / f"{name}.parquet")
        data.assign(review=pd.Series([text] * len(data), dtype="str")).to_parquet(folder / f"{name}.parquet")


def missing_value(folder):
    data = pd.read_parquet(folder / "source.parquet")
    data.loc[7, "width"] = np.nan
    data.to_parquet(folder / "source.parquet")


def labelled_target(folder):
    data = pd.read_parquet(folder / "target.parquet")
    data.assign(kind="cat").to_parquet(folder / "target.parquet")


def null_text(folder):
    data = pd.read_parquet(folder / "source.parquet")
    data.assign(review=pd.Series([None] * len(data), dtype="str")).to_parquet(folder / "source.parquet")


def mixed_widths(folder):
    lists = [[1.0, 2.0]] * 15 + [[1.0]] * 15
    pq.write_table(pa.table({"e": lists, "kind": ["a", "b"] * 15}), folder / "source.parquet")


def narrower_target(folder):
    pq.write_table(
        pa.table({"e": [[1.0, 2.0, i] for i in range(40)], "kind": ["a", "b"] * 20}), folder / "source.parquet"
    )
    pq.write_table(pa.table({"e": [[1.0, float(i)] for i in range(40)]}), folder / "target.parquet")


@pytest.mark.parametrize(
    ("spoil", "arguments", "words"),
    [
        (None, ["nowhere.parquet", "target.parquet", "--label", "kind"], "nowhere.parquet does not exist"),
        (None, ["source.parquet", "target.parquet", "--label", "kinds"], "Did you mean 'kind'?"),
        (None, ["source.parquet", "target.parquet"], "--label COL"),
        (None, ["source.parquet"], "two files are needed"),
        (three_rows, ["source.csv", "target.parquet", "--label", "kind"], "has 3 rows to use, too few"),
        (None, ["source.parquet", "nowhere.csv", "--label", "kind"], "nowhere.csv does not exist"),
        (three_target_rows, ["source.parquet", "target.csv", "--label", "kind"], "the target needs at least 20"),
        (null_target_text, [*GIVEN, "--text", "review"], "target.parquet"),
        (missing_value, [*GIVEN], "row 7: column 'width' is missing"),
        (missing_value, [*GIVEN], "--skip-bad"),
        (labelled_target, [*GIVEN], "--ignore-target-labels"),
        (null_text, [*GIVEN, "--text", "review"], "'review' is missing"),
        (mixed_widths, [*GIVEN], "holds 1 numbers where"),
        (narrower_target, [*GIVEN], "X has 3 features but X_target has 2"),
        (None, [*GIVEN, "--features", "town"], "holds no numbers"),
        (None, [*GIVEN, "--method", "colour"], "'colour' is not valid"),
        (None, [*GIVEN, "--method", "zoc"], "openset.ZOC in Python"),
        (None, [*GIVEN, "--set", "hiden=3"], "Did you mean 'hidden'?"),
        (None, [*GIVEN, "--fpr", "2"], "fpr=2.0 is not valid"),
        (None, [*GIVEN, "--set", "steps"], "write NAME=VALUE"),
        (None, [*GIVEN, "--fdr", "1.5"], "fdr=1.5 is not valid"),
        (None, [*GIVEN, "--set", "max_density_ratio=3"], "use fpr, max_density_ratio and seed of the run"),
        (None, [*GIVEN, "--method", "knn", "--max-density-ratio", "3"], "makes no use of --max-density-ratio"),
        (None, [*GIVEN, "--settings", "no.toml"], "no.toml does not exist"),
        (None, [*GIVEN, "--text", "town", "--features", "width"],
         "features and text are given together"),
    ],
)  # fmt: skip
def test_wrong_input_gives_one_message_and_exit_code_2(
    problem_files, tmp_path, monkeypatch, spoil, arguments, words
):
    for name in ("source.parquet", "target.parquet"):
        (tmp_path / name).write_bytes((problem_files / name).read_bytes())
    if spoil is not None:
        spoil(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = call("fit", *arguments, "--out", "run")
    assert done.exit_code == 2
    assert words in done.output and done.output.count("error: ") == 1
    assert "Traceback" not in done.output
    assert not (tmp_path / "run").exists() and not list(tmp_path.glob(".writing-*"))


def test_target_labels_can_be_ignored_and_bad_rows_skipped(problem_files, tmp_path):
    for name in ("source.parquet", "target.parquet"):
        (tmp_path / name).write_bytes((problem_files / name).read_bytes())
    labelled_target(tmp_path)
    missing_value(tmp_path)
    done = fit(tmp_path, tmp_path / "run", "--ignore-target-labels", "--skip-bad")
    assert done.exit_code == 0, done.output
    assert "Skipped 1 source rows" in done.output


@pytest.mark.parametrize("command", ["score", "inspect", "evaluate", "compare"])
def test_a_folder_that_is_no_run(problem_files, tmp_path, command):
    more = {"score": [problem_files / "target.csv", "--out", tmp_path / "o.csv"],
            "evaluate": [problem_files / "labelled.csv"], "compare": [tmp_path]}.get(command, [])  # fmt: skip
    done = call(command, tmp_path, *more)
    assert done.exit_code == 2 and "is no run" in done.output and "Traceback" not in done.output


def test_wrong_input_to_the_other_commands(problem_files, tmp_path):
    run = problem_files / "run"
    bad = pd.read_csv(problem_files / "target.csv")
    bad.loc[3, "height"] = None
    bad.to_csv(tmp_path / "bad.csv", index=False)
    for arguments, words in [
        (("score", run, problem_files / "target.csv", "--out", tmp_path / "x.npy"), "write .npz"),
        (("score", run, problem_files / "target.csv", "--out", tmp_path / "x.xls"), "'.xls' is unknown"),
        (("score", run, problem_files / "target.csv", "--out", tmp_path / "no" / "x.csv"), "there is no folder"),
        (("score", run, tmp_path / "bad.csv", "--out", tmp_path / "x.csv"), "row 3"),
        (("score", run, tmp_path / "bad.csv", "--out", tmp_path / "x.csv"), "fix them first"),
        (("evaluate", run, problem_files / "labelled.csv", "--label", "rid"), "is it the right label column?"),
        (("compare", run), "at least two"),
        (
            ("score", run, problem_files / "target.csv", "--out", tmp_path / "x.csv", "--fdr", "0"),
            "fdr=0.0 is not",
        ),
    ]:
        done = call(*arguments)
        assert done.exit_code == 2, done.output
        assert words in " ".join(done.output.split()), done.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv"]


def test_help_has_an_example_and_fits_80_columns():
    for command in ("fit", "score", "report", "inspect", "compare", "evaluate", "export"):
        shown = call(command, "--help").output
        assert f"Example: openset {command}" in shown
        assert max(map(len, shown.splitlines())) <= 80


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
    assert json.loads(done.stdout) == {"rows": 400, "out": "scored.jsonl"}
    assert run("evaluate", "run", problem_files / "labelled.csv").returncode == 0
    failed = run("inspect", "nothing")
    assert failed.returncode == 2 and failed.stderr.startswith("error: ") and failed.stdout == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_leaves_nothing_half_written(problem_files, tmp_path, number, code):
    state = tmp_path / "state"  # a checkpoint, which is there to outlive a kill, tells that training goes on
    arguments = ("fit", problem_files / "source.parquet", problem_files / "target.parquet", "--label", "kind",
                 "--method", "dd", "--set", "max_steps=1000000", "--set", "tol=0", "--set", "evaluate_every=50",
                 "--set", f"checkpoint={state}", "--out", tmp_path / "run")  # fmt: skip
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (state.exists() and any(state.iterdir())) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert b"Traceback" not in errors
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_labels_that_came_later_are_matched_by_what_they_say(tmp_path):
    random = np.random.default_rng(0)
    X, y = make_rows(random, {"cat": 150, "dog": 150})
    frame(X, kind=np.where(y == "cat", 0, 1)).to_csv(tmp_path / "source.csv")
    frame(make_rows(random, {"cat": 90, "dog": 90, "new": 40})[0]).to_csv(tmp_path / "target.csv")
    run = tmp_path / "run"
    files = (tmp_path / "source.csv", tmp_path / "target.csv")
    done = call("fit", *files, "--label", "kind", *QUICK, "--fpr", "0.05", "--out", run)
    assert done.exit_code == 0 and "Ignored columns of row numbers: ''." in done.output, done.output
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


def test_a_reader_that_has_seen_enough_is_no_failure(problem_files, tmp_path):
    assert fit(problem_files, tmp_path / "run").exit_code == 0
    line = f"{sys.executable} -m openset.cli inspect {tmp_path / 'run'} --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == 0 and "refused" not in done.stderr and "Traceback" not in done.stderr


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
