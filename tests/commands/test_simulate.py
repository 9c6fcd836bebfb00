"""``openset simulate`` as a user types it."""

from __future__ import annotations

import json

import pytest

from command_line import QUICK, call


def simulate(folder, *more):
    files = (folder / "source.parquet", folder / "target.parquet")
    return call("simulate", *files, "--label", "kind", "--id", "rid", *more)


def test_a_table_of_classes_and_shares(problem_files):
    done = simulate(problem_files, *QUICK, "--alpha", "0.1", "--alpha", "0.2")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    shown = {(line[0], line[1]) for line in lines if line and line[0] in ("cat", "dog")}
    assert {("cat", "none"), ("dog", "none")} <= shown and len(shown) == 6
    # the new rows look like cats and leave the target with them; else the control finds them
    assert "Detectable, cat: from a share of 0.1." in done.stdout
    assert "Detectable, dog: cannot be told, see below." in done.stdout
    assert "a new class of its own" in done.stdout and "promise too much" in done.stdout


def test_json_and_quiet(problem_files):
    done = simulate(problem_files, *QUICK, "--alpha", "0.1", "--json")
    found = json.loads(done.stdout)
    assert [(row["novel_class"], row["novel_fraction"]) for row in found["table"]] == [("cat", 0.1), ("dog", 0.1)]
    assert all(0 <= row["auprc"] <= 1 for row in found["table"])
    assert {row["auprc"] for row in found["controls"]} == {None}
    assert simulate(problem_files, *QUICK, "--alpha", "0.1", "-q").output == ""


def test_color_with_few_steps(problem_files):
    settings = ("max_steps=30", "evaluate_every=15", "hidden=8", "members=2", "groups=[[0.2, 0.0, 0.6]]")
    done = simulate(problem_files, "--alpha", "0.1", "--json", *(part for s in settings for part in ("--set", s)))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found["table"]) == 2 and found["best"] == "as it is"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--alpha", "1.5"), "--alpha entry=1.5"),
        (("--alpha", "0.001"), "Use larger --alpha"),
        (("--method", "nothing"), "nothing"),
        (("--set", "depth=3"), "no parameter 'depth'"),
        (("--features", "town"), "has no column 'town'; it has width, height"),
        (("--set", "fpr=0.1"), "parameters has fpr: use --fpr of the run instead"),
        (("--set", "max_density_ratio=3"), "use --max-density-ratio of the run instead"),
    ],
)
def test_wrong_input_is_one_message_and_exit_code_2(problem_files, more, message):
    done = simulate(problem_files, *QUICK, *more)
    assert done.exit_code == 2
    assert message in done.stderr and "Traceback" not in done.stderr


def test_missing_files_and_labels(problem_files, tmp_path):
    done = call("simulate", tmp_path / "none.csv", problem_files / "target.csv", "--label", "kind")
    assert done.exit_code == 2 and "none.csv" in done.stderr
    done = call("simulate", problem_files / "source.parquet", problem_files / "target.parquet")
    assert done.exit_code == 2 and "--label" in done.stderr
