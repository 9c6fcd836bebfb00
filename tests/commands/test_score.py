"""``openset score``: every format, the rows to act on, and wrong input."""

from __future__ import annotations

import json

import pandas as pd

from command_line import call
from openset.stats.p_values import benjamini_hochberg


def test_every_format_gives_the_rows_that_the_fit_scored(problem_files, tmp_path):
    fitted = pd.read_parquet(problem_files / "run" / "scored_target.parquet")
    for name in ("target.parquet", "target.csv", "target.npz"):
        done = call("score", problem_files / "run", problem_files / name, "--out", tmp_path / "scored.parquet")
        assert done.exit_code == 0 and done.output.endswith(f"400 rows written to {tmp_path}/scored.parquet.\n")
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "scored.parquet"), fitted)
    out = tmp_path / "scored.csv"
    done = call("score", problem_files / "run", problem_files / "target.csv", "--out", out, "--json", "-q")
    assert json.loads(done.stdout) == {"rows": 400, "out": str(out)}
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
    bad.loc[3, "height"] = None
    bad.to_csv(tmp_path / "bad.csv", index=False)
    for arguments, words in [
        ((data, "--out", tmp_path / "x.npy"), "write .npz"),
        ((data, "--out", tmp_path / "x.xls"), "'.xls' is unknown"),
        ((data, "--out", tmp_path / "no" / "x.csv"), "there is no folder"),
        ((tmp_path / "bad.csv", "--out", tmp_path / "x.csv"), "row 3: column 'height' is missing"),
        (
            (tmp_path / "bad.csv", "--out", tmp_path / "x.csv"),
            "Every row must be scored: fix them first.",
        ),
        ((data, "--out", tmp_path / "x.csv", "--fdr", "0"), "error: --fdr 0.0 is not valid"),
        ((data, "--out", tmp_path / "x.csv", "--id", "ird"), "no column 'ird'"),
        (
            (data, "--out", tmp_path / "x.csv", "--max-density-ratio", "2"),
            "error: --max-density-ratio 2.0 does nothing without --fdr: give both.",
        ),
    ]:
        done = call("score", run, *arguments)
        assert done.exit_code == 2, done.output
        assert words in " ".join(done.output.split()), done.output
        assert "skip" not in done.output and "Traceback" not in done.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv"]
