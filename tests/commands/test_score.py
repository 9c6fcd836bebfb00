"""``openset score``: every format, the rows to act on, the answer, its exit codes, and wrong input."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from command_line import call
from openset.stats.p_values import benjamini_hochberg


def test_every_format_gives_the_rows_that_the_fit_scored(problem_files, tmp_path):
    fitted = pd.read_parquet(problem_files / "run" / "scored_target.parquet")
    fitted = fitted.drop(columns=["rank", "group"])  # which take all rows together
    for name in ("target.parquet", "target.csv", "target.npz"):
        done = call("score", problem_files / "run", problem_files / name, "--out", tmp_path / "scored.parquet")
        assert done.exit_code == 0 and done.output.endswith(f"400 rows written to {tmp_path}/scored.parquet.\n")
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "scored.parquet"), fitted)
    out = tmp_path / "scored.csv"
    done = call("score", problem_files / "run", problem_files / "target.csv", "--out", out, "--json", "-q")
    answer = json.loads(done.stdout)
    assert answer["rows"] == 400 and answer["out"] == str(out) and not answer["failed"]
    assert call("score", problem_files / "run", problem_files / "target.csv", "--out", out, "-q").output == ""


def test_rows_are_marked_at_a_false_discovery_rate(problem_files, tmp_path):
    for options, ratio in (((), 1), (("--max-density-ratio", "30"), 30)):
        done = call("score", problem_files / "run", problem_files / "target.csv", "--fdr", "0.2", *options,
                    "--out", tmp_path / "scored.csv", "-q")  # fmt: skip
        assert done.exit_code == 0 and done.output == ""
        scored = pd.read_csv(tmp_path / "scored.csv")
        expected = benjamini_hochberg(scored["p_value"], 0.2, max_density_ratio=ratio)
        assert scored["novel_at_fdr"].tolist() == expected.tolist()


def test_wrong_input_gives_one_message_and_no_file(problem_files, tmp_path):
    run, data = problem_files / "run", problem_files / "target.csv"
    bad = pd.read_csv(data)
    bad.loc[3, "rid"] = "t1"
    bad.to_csv(tmp_path / "bad.csv", index=False)
    pd.read_csv(data).assign(height="tall").to_csv(tmp_path / "words.csv", index=False)
    pd.read_csv(data).drop(columns="height").to_csv(tmp_path / "less.csv", index=False)
    for arguments, words in [
        ((data, "--out", tmp_path / "x.npy"), "write .npz"),
        ((data, "--out", tmp_path / "x.xls"), "'.xls' is unknown"),
        ((data, "--out", tmp_path / "no" / "x.csv"), "there is no folder"),
        ((tmp_path / "bad.csv", "--out", tmp_path / "x.csv"), "row 3: id t1 in column 'rid' came before"),
        (
            (tmp_path / "bad.csv", "--out", tmp_path / "x.csv"),
            "Every row must be scored: fix them first.",
        ),
        (
            (tmp_path / "words.csv", "--out", tmp_path / "x.csv"),
            "column 'height' holds numbers in the fit, and now categories, such as 'tall': correct it.",
        ),
        ((tmp_path / "less.csv", "--out", tmp_path / "x.csv"), "no column 'height'; it has width, weight, rid."),
        ((data, "--out", tmp_path / "x.csv", "--carry", "heigth"), "--carry heigth is no column of"),
        ((data, "--out", tmp_path / "x.csv", "--fdr", "0"), "error: --fdr 0.0 is not valid"),
        ((data, "--out", tmp_path / "x.csv", "--id", "ird"), "no column 'ird'"),
        (
            (data, "--out", tmp_path / "x.csv", "--fail-if-novel", "5"),
            "error: --fail-if-novel 5.0 is not valid: expected a number in [0, 1]",
        ),
        (
            (data, "--out", tmp_path / "x.csv", "--max-density-ratio", "2"),
            "error: --max-density-ratio 2.0 does nothing without --fdr: give both.",
        ),
    ]:
        done = call("score", run, *arguments)
        assert done.exit_code == 2, done.output
        assert words in " ".join(done.output.split()), done.output
        assert "skip" not in done.output and "Traceback" not in done.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv", "less.csv", "words.csv"]


def test_missing_cells_are_filled_in_and_told_and_columns_are_carried(problem_files, tmp_path):
    batch = pd.read_csv(problem_files / "target.csv").assign(note=[f"row {i}" for i in range(400)])
    whole, out = tmp_path / "whole.csv", tmp_path / "o.parquet"
    batch = batch.astype({"height": object})
    batch.loc[[3, 5], "height"] = None
    batch.loc[7, "height"] = "tall"
    batch.to_csv(tmp_path / "gaps.csv", index=False)
    source = pd.read_parquet(problem_files / "source.parquet")
    batch.loc[[3, 5, 7], "height"] = source["height"].median()
    batch.to_csv(whole, index=False)
    done = call("score", problem_files / "run", tmp_path / "gaps.csv", "--out", out, "--carry", "note,height")
    assert done.exit_code == 0, done.output
    shown = " ".join(done.stdout.split())
    assert "Cells 1 value of column 'height' cannot be read as in source: taken as missing." in shown
    assert "2 values missing in column 'height', which was complete in the fit: the source's median" in shown
    scored = pd.read_parquet(out)
    assert scored["note"].tolist() == batch["note"].tolist() and scored["rid"].tolist() == batch["rid"].tolist()
    assert scored["height"][7] == "tall" and list(scored.columns)[-2:] == ["note", "height"]
    assert call("score", problem_files / "run", whole, "--out", tmp_path / "w.parquet").exit_code == 0
    filled = pd.read_parquet(tmp_path / "w.parquet")
    pd.testing.assert_frame_equal(scored.drop(columns=["note", "height"]), filled)


@pytest.fixture
def spoilt(problem_files, tmp_path):
    """A batch with a column out of range, a new column, and 40 new rows of 400."""
    batch = pd.read_csv(problem_files / "target.csv")
    batch.loc[:11, "width"] = -999
    batch.assign(zip=1).to_csv(tmp_path / "batch.csv", index=False)
    return tmp_path / "batch.csv"


def test_the_answer_is_printed_in_80_columns_and_json_has_the_same(problem_files, spoilt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("score", problem_files / "run", spoilt, "--out", "o.csv")
    done, answer = call(*asked), json.loads(call(*asked, "--json").stdout)
    text = done.stdout.partition("Called new")[1] + done.stdout.partition("Called new")[2]
    assert done.exit_code == 0 and max(map(len, text.splitlines())) <= 80
    shown = " ".join(text.split())
    called = (pd.read_csv("o.csv")["predicted"] == "novel").sum()
    assert answer["called_novel"] == called > 40
    share, low, high = (100 * answer["called_share"][name] for name in ("value", "low", "high"))
    assert f"Called new {called} of 400 rows, {share:.1f} % ({low:.1f} to {high:.1f} %); " in shown
    assert f"{100 * answer['called_share_at_fit']:.1f} % when the run was fitted" in shown
    assert answer["called_share"]["confidence"] == 0.95
    assert f"Moved {answer['moved']['answer']}. {answer['moved']['sentence']}" in shown
    (width,) = answer["out_of_range"]
    assert width["column"] == "width" and width["rows"] == 12 and width["share"] == 0.03 and width["low"] == -999
    assert f"Out of range {width['sentence']}" in shown and "12 of 400 rows (3.0 %)" in width["sentence"]
    assert answer["new_columns"] == ["zip"] and "New columns zip: not in the fit's data, so not used" in shown
    assert text.endswith("\n\n400 rows written to o.csv.\n")
    assert (answer["out"], answer["fail_if_novel"], answer["failed"]) == ("o.csv", None, False)


@pytest.mark.parametrize(("limit", "code"), [("0.05", 3), ("0", 3), ("0.5", 0), ("1", 0)])
def test_too_many_new_rows_have_an_exit_code_of_their_own(problem_files, tmp_path, limit, code):
    out = tmp_path / "o.csv"
    asked = ("score", problem_files / "run", problem_files / "target.csv", "--out", out, "--fail-if-novel", limit)
    done = call(*asked)
    assert done.exit_code == code and "400 rows written to" in done.stdout
    assert len(pd.read_csv(out)) == 400  # written all the same
    called = int((pd.read_csv(out)["predicted"] == "novel").sum())
    reason = (
        f"too many new rows: {called} of 400 rows are called new, more than --fail-if-novel {float(limit):g}."
    )
    assert (reason in " ".join(done.stderr.split())) == (code == 3)
    quiet = call(*asked, "-q")
    assert quiet.exit_code == code and quiet.stdout == "" and bool(quiet.stderr) == (code == 3)
    machine = call(*asked, "-q", "--json")
    answer = json.loads(machine.stdout)
    assert (
        machine.exit_code == code and answer["failed"] == (code == 3) and answer["fail_if_novel"] == float(limit)
    )


def test_a_share_as_large_as_allowed_does_not_fail(problem_files, tmp_path):
    out = tmp_path / "o.csv"
    asked = ("score", problem_files / "run", problem_files / "target.csv", "--out", out, "-q", "--fail-if-novel")
    share = np.mean(pd.read_parquet(problem_files / "run" / "scored_target.parquet")["predicted"] == "novel")
    assert call(*asked, share).exit_code == 0 and call(*asked, share - 1e-9).exit_code == 3


def test_the_help_tells_the_exit_code():
    shown = " ".join(call("score", "--help").output.split())
    assert (
        "Exit codes: 0 done, 3 too many rows called new, 4 cannot tell (both only with --fail-if-novel)" in shown
    )


@pytest.mark.parametrize("limit", ["0.05", "1"])
def test_a_batch_that_cannot_be_judged_has_an_exit_code_of_its_own(problem_files, tmp_path, limit):
    """A scheduler must not see green where the answer is not to be trusted."""
    out, moved = tmp_path / "o.csv", pd.read_csv(problem_files / "target.csv")
    for name in ("height", "width", "weight"):
        moved[name] += 100
    moved.to_csv(tmp_path / "moved.csv", index=False)
    asked = ("score", problem_files / "run", tmp_path / "moved.csv", "--out", out, "--fail-if-novel", limit)
    done = call(*asked)
    assert done.exit_code == 4 and len(pd.read_csv(out)) == 400
    assert "cannot tell if there are too many new rows: the batch moved" in " ".join(done.stderr.split())
    answer = json.loads(call(*asked, "--json").stdout)
    assert answer["failed"] and answer["exit_code"] == 4 and answer["cannot_tell"].startswith("the batch moved")
    assert call(*asked[:-2]).exit_code == 0, "without the option it is scored and told"


def test_a_run_that_could_not_tell_says_so_when_it_scores(problem_files, tmp_path):
    source, target = (pd.read_parquet(problem_files / f"{name}.parquet") for name in ("source", "target"))
    source.assign(no=np.arange(len(source))).to_csv(tmp_path / "known.csv", index=False)
    target.assign(no=len(source) + np.arange(len(target))).to_csv(tmp_path / "batch.csv", index=False)
    files = (tmp_path / "known.csv", tmp_path / "batch.csv", "--label", "kind", "--id", "rid")
    call("fit", *files, "--method", "knn", "--out", tmp_path / "run", "-q")
    asked = ("score", tmp_path / "run", tmp_path / "batch.csv", "--out", tmp_path / "o.csv", "--fdr", "0.2")
    shown = " ".join(call(*asked).stdout.split())
    assert "Run its verdict was \"cannot tell\": Column 'no' alone separates" in shown
    assert 'At FDR 0.2 no row is listed: the verdict of the run was "cannot tell"' in shown
    answer = json.loads(call(*asked, "--json").stdout)
    assert answer["fit_verdict"]["code"] == "cannot_tell" and "'no'" in answer["fit_verdict"]["reason"]
    assert answer["listed"]["rows"] == 0 and not pd.read_csv(tmp_path / "o.csv")["novel_at_fdr"].any()
    assert call(*asked, "--fail-if-novel", "1").exit_code == 4


def test_the_list_is_told_with_its_count(problem_files, tmp_path):
    asked = ("score", problem_files / "run", problem_files / "target.csv", "--out", tmp_path / "o.csv", "--fdr")
    marked = int(pd.read_csv(tmp_path / "o.csv")["novel_at_fdr"].sum()) if call(*asked, "0.2").stdout else 0
    assert f"At FDR 0.2      {marked} rows are listed" in call(*asked, "0.2").stdout and marked
    assert json.loads(call(*asked, "0.2", "--json").stdout)["listed"]["rows"] == marked
    none = call(*asked, "0.01", "--max-density-ratio", "3")
    assert "At FDR 0.01     no row can be listed" in none.stdout
