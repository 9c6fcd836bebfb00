"""Holes that an attack found in writing, each closed: inputs destroyed, runs lost at a kill, two writers.

Nothing but the kills at every step uses what was added to close them.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import openset
from attack.faults import kills
from command_line import COMMAND, QUICK, call, fit
from openset._utils.files import is_temporary
from openset.pipeline.result import read_summary


@pytest.fixture
def files(problem_files, tmp_path):
    shutil.copytree(problem_files, tmp_path / "files")
    return tmp_path / "files"


def digest(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("inside", ["result.json", "model/model.json", "scored_target.parquet"])
@pytest.mark.parametrize("through", ["run", "link"])
def test_scores_do_not_replace_a_part_of_their_run(files, inside, through):
    (files / "link").symlink_to(files / "run")
    before = digest(files)
    done = call("score", files / "run", files / "target.parquet", "--out", files / through / inside)
    assert done.exit_code == 2 and digest(files) == before, done.output


def test_a_report_does_not_replace_what_it_is_made_from(files):
    assert fit(files, files / "own").exit_code == 0
    before = digest(files)
    for out in (files / "own" / "result.json", files / "source.parquet", files / "target.parquet"):
        assert call("report", files / "own", "--out", out).exit_code == 2
        assert digest(files) == before
    assert call("export", files / "run", "--onnx", files / "run" / "result.json").exit_code == 2
    assert digest(files) == before


def test_a_run_does_not_replace_the_run_that_it_reads_from(files):
    shutil.copy(files / "target.parquet", files / "run" / "scored_target.parquet")
    before = digest(files)
    rows = (files / "source.parquet", files / "run" / "scored_target.parquet", "--label", "kind", *QUICK)
    done = call("fit", *rows, "--out", files / "run", "--overwrite")
    assert done.exit_code == 2 and digest(files) == before, done.output


def test_a_link_given_as_out_is_followed(files):
    (files / "link.csv").symlink_to(files / "real.csv")
    assert call("score", files / "run", files / "target.parquet", "--out", files / "link.csv").exit_code == 0
    assert (files / "link.csv").is_symlink() and len((files / "real.csv").read_text().splitlines()) == 401


def test_two_fits_to_one_new_folder_do_not_both_succeed(files):
    """The second one ends while the first one is at its last step."""
    result = openset.run(files / "source.parquet", files / "target.parquet", label="kind", id="rid",
                         method="mahalanobis", parameters={"validation_fraction": 0.4})  # fmt: skip
    together, outcomes = threading.Barrier(2), []

    class Slow(type(result)):
        def report(self, path, **_):
            together.wait(30)
            super().report(path)

    def save():
        try:
            Slow(**vars(result)).save(files / "new")
            outcomes.append("saved")
        except ValueError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=save) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes)[1] == "saved" and "another process" in sorted(outcomes)[0], outcomes
    assert read_summary(files / "new").called_novel == result.summary.called_novel


SAVE = """
import dataclasses, pickle, sys
from pathlib import Path
import openset
from openset.pipeline.run import load_run
result = load_run({run!r})
summary = dataclasses.replace(result.summary, created="NEW")
result = dataclasses.replace(result, summary=summary)
install()
result.save({out!r}, overwrite=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("exchange", [True, False])
def test_a_run_survives_a_kill_at_every_step_of_replacing_it(files, exchange):
    run, out = str(files / "run"), files / "out"
    shutil.copytree(run, out)
    seen = set()
    for moment in kills(SAVE.format(run=run, out=str(out)), exchange=exchange, every=7):
        summary = read_summary(out)  # recovers, where folders cannot be exchanged
        seen.add(summary.created == "NEW")
        openset.load(out / "model")
        assert moment < 400
    assert read_summary(out).created == "NEW" and False in seen


REPLACE = """
from pathlib import Path
from openset._utils.files import replacing_folder, write_atomically
install()
with replacing_folder(Path({out!r}), overwrite=True) as folder:
    write_atomically(folder / "a", b"new")
    (folder / "b").write_text("new")
"""


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_is_whole_after_a_kill_at_every_step(tmp_path, exchange):
    from openset._utils.files import recover

    out, states = tmp_path / "out", []
    out.mkdir()
    for name in "ab":
        (out / name).write_text("old")
    for _ in kills(REPLACE.format(out=str(out)), exchange=exchange):
        recover(out)
        states.append([(out / name).read_text() for name in "ab"])
        assert states[-1] in (["old", "old"], ["new", "new"])
    assert len(states) > 10 and states[0] == ["old", "old"] and states[-1] == ["new", "new"]
    for leftover in tmp_path.iterdir():
        os.utime(leftover, (0, 0))
    subprocess.run([sys.executable, "-c", REPLACE.replace("install()", "").format(out=str(out))], check=True)
    assert not any(is_temporary(path.name) for path in tmp_path.iterdir()), "what dead writers left is swept"


def test_a_file_is_whole_after_a_kill_at_every_step(tmp_path):
    out = tmp_path / "rows.csv"
    code = f"""
import numpy as np
from pathlib import Path
from openset.data.writer import writing_table
install()
with writing_table(Path({str(out)!r})) as write:
    for start in range(3):
        write({{"n": np.arange(start * 100, start * 100 + 100)}})
"""
    out.write_text("old\n")
    states = {out.read_text()} | {out.read_text() for _ in kills(code)} | {out.read_text()}
    assert len(states) == 2 and "old\n" in states
    assert [row["n"] for row in csv.DictReader(out.read_text().splitlines())] == list(map(str, range(300)))


def test_bench_export_and_figures_are_whole_or_absent(tmp_path, monkeypatch):
    import matplotlib.figure

    from openset.bench.exchange import export

    old = b"key\nold\n"
    (tmp_path / "runs.csv").write_bytes(old)
    rows = [{"key": "a"}, {"key": object()}]

    class Failing(dict):
        def get(self, *_):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        export([*rows, Failing(key="b")], tmp_path / "runs.csv")
    assert (tmp_path / "runs.csv").read_bytes() == old

    from openset.theory import figures

    def half(self, path, **_):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", half)
    (tmp_path / "map.png").write_bytes(b"old")
    from openset.theory.sweep import PAPER_R_ETA, PAPER_THETA, Outcome

    known = {"seed": 0, "auroc": 0.5, "auroc_test": 0.5, "auprc_test": 0.5, "certificate": 0.0}
    outcomes = {
        name: [Outcome(parameter=name, value=v, rule=rule, **known) for v in paper for rule in ("dd", "color")]
        for name, paper in (("r_eta", PAPER_R_ETA), ("theta", PAPER_THETA))
    }
    with pytest.raises(OSError, match="No space"):
        figures.draw_sweeps(outcomes["r_eta"], outcomes["theta"], tmp_path / "map.png", novel_share=0.1)
    assert (tmp_path / "map.png").read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"runs.csv", "map.png"}


def test_unchanged_is_said_only_where_it_is_true(tmp_path, capsys):
    import typer

    from openset._utils.files import write_atomically
    from openset.commands.console import helpful_errors

    def fail(*written):
        with helpful_errors(verbose=False):
            for name in written:
                write_atomically(tmp_path / name, b"1")
            raise OSError(28, "No space left on device")

    for written in ((), ("first.csv",)):
        with pytest.raises(typer.Exit):
            fail(*written)
        message = " ".join(capsys.readouterr().err.split())
        assert ("unchanged" in message) is not written and ("first.csv" in message) is bool(written)


def test_class_names_of_any_length(files):
    import pandas as pd

    source = pd.read_parquet(files / "source.parquet")
    names = {"cat": "=cat,\n\"'" + "x" * 70_000, "dog": "y" * 3000 + "/../"}
    source.assign(kind=source["kind"].map(names)).to_parquet(files / "source.parquet")
    done = fit(files, files / "named")
    assert done.exit_code == 0, done.output
    assert json.loads((files / "named" / "result.json").read_text())["classes"] == sorted(names.values())
    for out, code in (("scored.parquet", 0), ("scored.csv", 0), ("scored.npz", 2)):  # a zip archive has a limit
        assert call("score", files / "named", files / "target.parquet", "--out", files / out).exit_code == code
    assert call("inspect", files / "named").exit_code == 0


def test_csv_safe_escapes_what_a_spreadsheet_would_run(files):
    import pandas as pd

    target = pd.read_csv(files / "target.csv")
    odd = ["=1+1", "+1", "-1", "@a", "\tx", "plain", "3"]
    target["rid"] = odd + target["rid"].tolist()[len(odd) :]
    target.to_csv(files / "target.csv", index=False)
    scored = {}
    for more in ((), ("--csv-safe",)):
        done = call("score", files / "run", files / "target.csv", "--out", files / "out.csv", *more)
        assert done.exit_code == 0, done.output
        scored[more] = pd.read_csv(files / "out.csv", dtype=str).iloc[: len(odd), 0].tolist()
    assert scored[()] == odd
    assert scored[("--csv-safe",)] == ["'=1+1", "'+1", "'-1", "'@a", "'\tx", "plain", "3"]


def test_two_processes_that_score_to_one_file_leave_one_whole_file(files):
    rows = ("score", files / "run", files / "target.parquet", "--out", files / "out.csv", "--quiet")
    running = [subprocess.Popen([*COMMAND, *map(str, rows)]) for _ in range(2)]
    assert [process.wait(120) for process in running] == [0, 0]
    assert len((files / "out.csv").read_text().splitlines()) == 401
    assert not any(is_temporary(path.name) for path in files.iterdir())
