"""``openset fit`` with right and with wrong input, and what it leaves behind."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import openset
from command_line import COMMAND, QUICK, call, fit
from openset.stats.p_values import benjamini_hochberg
from product_files import NAMES, frame


def test_rows_to_act_on_at_a_false_discovery_rate(problem_files, tmp_path):
    done = fit(problem_files, tmp_path / "run", "--fdr", "0.2", "--max-density-ratio", "2")
    assert done.exit_code == 0, done.output
    marked = pd.read_parquet(tmp_path / "run" / "scored_target.parquet")["novel_at_fdr"]
    assert f"At FDR 0.2      {marked.sum()} rows are listed" in done.output and marked.sum() >= 40
    kept = json.loads((tmp_path / "run" / "result.json").read_text())
    listed = {"fdr": 0.2, "max_density_ratio": 2.0, "rows": int(marked.sum())}
    listed |= {"smallest_fdr": None, "source_rows_needed": None, "why_none": ""}
    assert kept["listed"] == {**listed, "called": kept["called_novel"]}
    assert f"{marked.sum()} rows are listed" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
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


def test_a_counter_is_named_before_the_verdict_and_dropping_it_gives_an_answer(problem_files, tmp_path):
    source, target = (pd.read_parquet(problem_files / f"{name}.parquet") for name in ("source", "target"))
    source.assign(ticket=np.arange(len(source))).to_csv(tmp_path / "known.csv", index=False)
    target.assign(ticket=len(source) + np.arange(len(target))).to_csv(tmp_path / "batch.csv", index=False)
    told = (tmp_path / "known.csv", tmp_path / "batch.csv", "--label", "kind", "--id", "rid", "--method", "knn")
    done = call("fit", *told, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith("Check failed    Column 'ticket' alone separates")
    assert "Verdict: cannot tell" in lines and "--drop ticket" in done.output and "at least" not in done.output
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 80
    summary = json.loads((tmp_path / "run" / "result.json").read_text())
    assert summary["verdict"]["code"] == "cannot_tell" and summary["checks"][0]["state"] == "failed"
    done = call("fit", *told, "--drop", "ticket", "--out", tmp_path / "again")
    assert done.exit_code == 0 and "Check failed" not in done.output and "cannot tell" not in done.output
    assert 'drop = ["ticket"]' in (tmp_path / "again" / "settings.toml").read_text()
    repeated = call(
        "fit", "--settings", tmp_path / "again" / "settings.toml", "--out", tmp_path / "third", "--json"
    )
    features = json.loads(repeated.output)["data"]["features"]
    assert "ticket" not in features and features


def test_following_the_advice_of_the_gate_works_and_until_then_no_row_is_promised(problem_files, tmp_path):
    source, target = (pd.read_parquet(problem_files / f"{name}.parquet") for name in ("source", "target"))
    source.assign(**{"my site": "berlin"}).to_csv(tmp_path / "known.csv", index=False)
    target.assign(**{"my site": "paris"}).to_csv(tmp_path / "batch.csv", index=False)
    told = (tmp_path / "known.csv", tmp_path / "batch.csv", "--label", "kind", "--id", "rid", "--method", "knn",
            "--fdr", "0.2")  # fmt: skip
    done = call("fit", *told, "--out", tmp_path / "run")
    shown = " ".join(done.output.split())
    assert "'my site' is berlin in every source row and in no target row: leave it out with --drop 'my" in shown
    assert shown.count("--drop") == 1 and "X_target" not in shown and "threshold_" not in shown
    assert 'At FDR 0.2 no row is listed: the verdict is "cannot tell", so nothing can be promised' in shown
    marked = pd.read_parquet(tmp_path / "run" / "scored_target.parquet")["novel_at_fdr"]
    assert not marked.any() and json.loads((tmp_path / "run" / "result.json").read_text())["listed"]["rows"] == 0
    again = openset.load_run(tmp_path / "run")
    assert not again.scored.novel_at_fdr.any() and not len(again.novel_rows(0.5))
    done = call("fit", *told, "--drop", "my site", "--out", tmp_path / "again")
    assert done.exit_code == 0 and "Check failed" not in done.output
    assert pd.read_parquet(tmp_path / "again" / "scored_target.parquet")["novel_at_fdr"].any()
    assert len(openset.load_run(tmp_path / "again").novel_rows(0.2))


def test_a_column_to_drop_that_is_none_is_named(problem_files, tmp_path):
    done = fit(problem_files, tmp_path / "run", "--drop", "widht")
    assert done.exit_code == 2 and "--drop widht" in done.output and "Did you mean 'width'" in done.output


def test_align_is_passed_on(problem_files, tmp_path):
    done = fit(problem_files, tmp_path / "run", "--align", "classes")
    assert done.exit_code == 2 and "align" in done.output, "mahalanobis aligns nothing"


@pytest.mark.slow
def test_color_tests_under_the_bound_that_is_told(problem_files, tmp_path):
    quick = ("max_steps=100", "evaluate_every=50", "grid=[0.05, 0.1]", "groups=[[0.3, 0.0, 0.6]]")
    files = (problem_files / "source.parquet", problem_files / "target.parquet")
    told = ("--label", "kind", "--id", "rid", "--max-density-ratio", "3")
    done = call("fit", *files, *told, "--out", tmp_path / "run", *(f"--set={value}" for value in quick))
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Verdict: new class found" in said and "more than 3 times as common" in said and "p = " in said
    answer = done.output.partition("Written to ")[0]  # what follows has the folder's name
    assert max(map(len, answer.splitlines())) <= 80
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
    town = {"name": "town", "kind": "not in target", "became": "not used: not in target", "features": 0}
    used = [{"name": name, "kind": "number", "became": "as it is", "features": 1} for name in NAMES]
    assert first["data"].pop("columns") == [*used, town] and second["data"].pop("columns") == used
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


def null_target_text(folder, source="fine", target=None):
    for name, text in (("source", source), ("target", target)):
        data = pd.read_parquet(folder / f"{name}.parquet")
        data.assign(review=pd.Series([text] * len(data), dtype="str")).to_parquet(folder / f"{name}.parquet")


def missing_value(folder):
    data = pd.read_parquet(folder / "source.parquet")
    data.loc[7, "width"] = np.nan
    data.to_parquet(folder / "source.parquet")


def twice(folder):
    data = pd.read_parquet(folder / "target.parquet")
    data.loc[7, "rid"] = "t3"
    data.to_parquet(folder / "target.parquet")


def labelled_target(folder):
    data = pd.read_parquet(folder / "target.parquet")
    data.assign(kind="cat").to_parquet(folder / "target.parquet")


def null_text(folder):
    null_target_text(folder, None, "fine")


def mixed_widths(folder):
    lists = [[1.0, 2.0]] * 15 + [[1.0]] * 15
    pq.write_table(pa.table({"e": lists, "kind": ["a", "b"] * 15}), folder / "source.parquet")
    pq.write_table(pa.table({"e": lists}), folder / "target.parquet")


def one_town(folder):
    data = pd.read_parquet(folder / "target.parquet")
    data.assign(town="Rome").to_parquet(folder / "target.parquet")


def no_shared_column(folder):
    pd.DataFrame({"other": range(40)}).to_parquet(folder / "target.parquet")


def narrower_target(folder):
    pq.write_table(
        pa.table({"e": [[1.0, 2.0, i] for i in range(40)], "kind": ["a", "b"] * 20}), folder / "source.parquet"
    )
    pq.write_table(pa.table({"e": [[1.0, float(i)] for i in range(40)]}), folder / "target.parquet")


def novel_source(folder):
    data = pd.read_parquet(folder / "source.parquet")
    data.assign(kind=data.kind.str.replace("cat", "novel")).to_parquet(folder / "source.parquet")


def misspelt_settings(folder):
    (folder / "s.toml").write_text('methd = "knn"')


def mistyped_settings(folder):
    (folder / "s.toml").write_text('fpr = "0.1"')


@pytest.mark.parametrize(
    ("spoil", "arguments", "words"),
    [
        (None, ["nowhere.parquet", "target.parquet", "--label", "kind"], "nowhere.parquet does not exist"),
        (None, ["source.parquet", "target.parquet", "--label", "kinds"], "Did you mean 'kind'?"),
        (None, ["source.parquet", "target.parquet"], "no label column is named: pass --label COL, the column"),
        (None, ["source.parquet"], "two files are needed"),
        (three_rows, ["source.csv", "target.parquet", "--label", "kind"], "has 3 rows to use, too few"),
        (None, ["source.parquet", "nowhere.csv", "--label", "kind"], "nowhere.csv does not exist"),
        (three_target_rows, ["source.parquet", "target.csv", "--label", "kind"], "the target needs at least 20"),
        (None, ["source.parquet", "target.parquet"], "Likely ones: 'kind'"),
        (None, ["target.parquet", "source.parquet", "--label", "kind"], "source and target seem to be swapped."),
        (null_target_text, [*GIVEN, "--text", "review"], "target.parquet: every text in column 'review' is bl"),
        (twice, [*GIVEN, "--id", "rid"], "row 7: id t3 in column 'rid' came before"),
        (twice, [*GIVEN, "--id", "rid"], "skip them with --skip-bad."),
        (labelled_target, [*GIVEN], "pass --ignore-target-labels; to measure a fitted run against them, use"),
        (null_text, [*GIVEN, "--text", "review"], "source.parquet: every text in column 'review' is blank"),
        (mixed_widths, [*GIVEN], "holds 1 numbers where"),
        (narrower_target, [*GIVEN], "X has 3 features but X_target has 2"),
        (None, [*GIVEN, "--features", "town"], "target.parquet has no column 'town'; it has width, height,"),
        (one_town, [*GIVEN, "--features", "town"], "no column can be a feature: "),
        (one_town, [*GIVEN, "--features", "town", "--as", "town=number"],
         "column 'town' cannot be a number: most of its values are no numbers: the first is 'Rome'."),
        (no_shared_column, [*GIVEN], "no column of source.parquet is in the target: it lacks 'width', "),
        (None, [*GIVEN, "--as", "width=catgory"], "Did you mean 'category'?"),
        (None, [*GIVEN, "--as", "width"], "--as width is not valid: write --as COL=KIND, such as zip=category."),
        (None, [*GIVEN, "--as", "widht=number"], "Did you mean 'width'?"),
        (None, [*GIVEN, "--as", "rid=id", "--id", "width"], " contradicts --id width."),
        (None, [*GIVEN, "--carry", "width,heigth"], "--carry heigth is no column of target.parquet. Did"),
        (None, [*GIVEN, "--drop", "*"], " leaves no feature."),
        (None, [*GIVEN, "--method", "colour"], "--method colour is not valid: expected one of 'color'"),
        (None, [*GIVEN, "--method", "colour"], "Did you mean 'color'?"),
        (None, [*GIVEN, "--method", "zoc"], "openset.ZOC in Python"),
        (None, [*GIVEN, "--set", "hiden=3"], "Did you mean 'hidden'?"),
        (None, [*GIVEN, "--fpr", "2"], "--fpr 2.0 is not valid"),
        (None, [*GIVEN, "--set", "steps"], "write NAME=VALUE"),
        (None, [*GIVEN, "--fdr", "1.5"], "--fdr 1.5 is not valid"),
        (None, [*GIVEN, "--set", "max_density_ratio=3"], "use --max-density-ratio of the run instead"),
        (None, [*GIVEN, "--method", "knn", "--max-density-ratio", "3"],
         "makes no use of --max-density-ratio: leave it out, list rows with --fdr 0.1, or"),
        (None, [*GIVEN, "--settings", "no.toml"], "no.toml does not exist"),
        (novel_source, [*GIVEN], "pass another --set novel_label=..., or remove"),
        (None, [*GIVEN, "--set", "hidden=0"], "--set hidden=0 is not valid: expected an integer of at least 1"),
        (None, [*GIVEN, "--features", "width", "--encoder", "x"], "a column with --text COL or --image COL."),
        (misspelt_settings, [*GIVEN, "--settings", "s.toml"], "s.toml: 'methd' is unknown. Did you mean"),
        (mistyped_settings, [*GIVEN, "--settings", "s.toml"], "s.toml: fpr is text, expected a number."),
        (None, [*GIVEN, "--text", "town", "--features", "width"], "target.parquet has no column 'town'"),
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
    twice(tmp_path)
    labelled_target(tmp_path)
    done = fit(tmp_path, tmp_path / "run", "--ignore-target-labels", "--skip-bad")
    assert done.exit_code == 0, done.output
    assert (
        "Skipped 1 target rows that could not be used." in done.output and "source rows that" not in done.output
    )
    assert pd.read_parquet(tmp_path / "run" / "scored_target.parquet")["rid"].tolist() == [
        f"t{row}" for row in range(400) if row != 7
    ]


def test_missing_values_are_filled_in_and_flagged_and_every_target_row_is_scored(problem_files, tmp_path):
    for name in ("source.parquet", "target.parquet"):
        (tmp_path / name).write_bytes((problem_files / name).read_bytes())
    missing_value(tmp_path)
    target, source = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("target", "source"))
    target.loc[::20, "height"] = np.nan
    target.loc[3, list(NAMES)] = np.nan
    target.to_parquet(tmp_path / "target.parquet")
    source.loc[[0, 1], "kind"] = None
    source.to_parquet(tmp_path / "source.parquet")
    done = fit(tmp_path, tmp_path / "run", "--carry", "height")
    assert done.exit_code == 0, done.output
    assert "Skipped 2 source rows that could not be used or have no label." in done.output
    scored = pd.read_parquet(tmp_path / "run" / "scored_target.parquet")
    assert scored["rid"].tolist() == [f"t{row}" for row in range(400)]
    assert np.isfinite(scored["novelty_score"]).all() and sorted(scored["rank"]) == list(range(1, 401))
    pd.testing.assert_series_equal(scored["height"], target["height"])
    data = json.loads((tmp_path / "run" / "result.json").read_text())["data"]
    assert (data["source"]["rows"], data["source"]["skipped"], data["target"]["rows"]) == (598, 2, 400)
    assert {use["name"]: (use["kind"], use["became"], use["features"]) for use in data["columns"]} == {
        "width": ("number", "as it is; 0.167 % missing (target 0.25 %): median and a flag", 2),
        "height": ("number", "as it is; 0 % missing (target 5.25 %): median and a flag", 2),
        "weight": ("number", "as it is; 0 % missing (target 0.25 %): median and a flag", 2),
        "town": ("not in target", "not used: not in target", 0),
    }
    shown = " ".join(done.output.split())
    assert all(f"{use['name']} {use['kind']}" in shown and use["became"] in shown for use in data["columns"])


@pytest.mark.slow
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


def test_columns_that_are_ignored_are_named_and_json_is_the_summary(problem_files, tmp_path):
    done = fit(problem_files, tmp_path / "run", "-v")
    assert done.exit_code == 0, done.output
    assert "Verdict: a group stands out, not proved" in done.output  # a method without a test of its own
    told = done.output.partition("What became of the columns\n")[2].split("\n\n")[0].splitlines()
    assert [" ".join(line.split()) for line in told] == [
        "town not in target not used: not in target", "3 more columns of numbers, as they are"
    ]  # fmt: skip
    assert "3: width, height, weight" in done.output and "Seconds: read " in done.output
    assert max(map(len, done.output.split("Seconds: ")[0].splitlines())) <= 80
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "features.json", "model", "profile.safetensors", "report.html", "result.json", "scored_target.parquet",
        "settings.toml",
    ]  # fmt: skip
    again = fit(problem_files, tmp_path / "again", "--json", "-q")
    assert json.loads(again.stdout) == json.loads((tmp_path / "again" / "result.json").read_text())


def test_a_fit_on_a_sample_says_so_and_all_rows_are_in_the_table(large_files, tmp_path):
    files = (large_files / "source", large_files / "target", "--label", "kind", "--id", "rid", *QUICK)
    done = call("fit", *files, "--fit-rows", "500", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert "and 500 of 2000 target rows, drawn by a hash of the id, because" in text
    assert max(len(line) for line in done.output.splitlines() if str(tmp_path) not in line) <= 80
    assert pd.read_parquet(tmp_path / "run" / "scored_target.parquet")["rid"].tolist() == [
        f"t{i}" for i in range(2000)
    ]
    shown = call("inspect", tmp_path / "run")
    assert shown.exit_code == 0 and "500 of 2000 target rows" in " ".join(shown.output.split())
    again = call("fit", "--settings", tmp_path / "run" / "settings.toml", "--fit-rows", "all", "--out",
                 tmp_path / "all")  # fmt: skip
    assert again.exit_code == 0 and "Sample " not in again.output
    assert "on 3000 source rows" in again.output


@pytest.mark.parametrize("given", ["5", "many", "-100"])
def test_rows_to_fit_on_that_are_no_number(problem_files, tmp_path, given):
    done = fit(problem_files, tmp_path / "run", f"--fit-rows={given}")
    assert done.exit_code == 2 and f"--fit-rows {given}" in done.output and "or 'all'" in done.output
