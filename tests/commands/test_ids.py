"""``openset ids``: exit codes, and what is printed."""

from __future__ import annotations

import json

import pandas as pd

from command_line import call


def test_ids_of_parts(problem_files, tmp_path):
    (tmp_path / "in").mkdir()
    target = pd.read_parquet(problem_files / "target.parquet")
    target[:200].to_parquet(tmp_path / "in" / "a.parquet")
    target[200:].to_parquet(tmp_path / "in" / "b.parquet")
    out = f"{tmp_path}/out/"
    assert call("score", problem_files / "run", tmp_path / "in", "--out", out, "-q").exit_code == 0
    done = call("ids", out)
    assert done.exit_code == 0 and done.output == "400 ids in 2 parts, all different.\n"
    target[199:].to_parquet(tmp_path / "in" / "b.parquet")
    again = f"{tmp_path}/again/"
    assert call("score", problem_files / "run", tmp_path / "in", "--out", again, "-q").exit_code == 0
    done = call("ids", again)
    assert done.exit_code == 2 and "1 of them more than once: 't199' (a.parquet, b.parquet)" in done.output
    done = call("ids", again, "--json")
    assert done.exit_code == 2 and json.loads(done.stdout)["repeated"][0]["parts"] == ["a.parquet", "b.parquet"]
    assert call("ids", tmp_path).exit_code == 2
