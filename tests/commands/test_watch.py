"""``openset watch`` as typed: table, JSON, exit codes, resuming, and wrong input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from command_line import COMMAND, call
from watch_files import write_weeks


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watch")
    write_weeks(folder)
    return folder


@pytest.fixture
def run(folder, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    return tmp_path / "run"


def weeks(folder, *numbers):
    return [folder / f"week-{number}.parquet" for number in numbers]


def test_quiet_weeks_then_noticed_then_moved(run, folder):
    done = call("watch", run, *weeks(folder, 1, 2, 3))
    assert done.exit_code == 0 and "nothing new noticed" in done.output
    assert max(map(len, done.stdout.splitlines()[:4])) <= 80 and (run / "watch.sqlite").exists()
    done = call("watch", run, *weeks(folder, 1, 2, 3, 4, 5, 6))
    assert done.exit_code == 3 and "new class noticed" in done.output and "Page:" in done.output
    done = call("watch", run, *weeks(folder, 8), "--json", "-q")
    answer = json.loads(done.stdout)
    assert done.exit_code == 3 and len(answer["batches"]) == 7 and answer["page"] == str(run / "watch.html")
    assert call("watch", run, "-q").output == "" and "<canvas" in (run / "watch.html").read_text("utf-8")


def test_a_moved_batch_has_a_code_of_its_own(run, folder, tmp_path):
    places = ("--state", tmp_path / "s.sqlite", "--page", tmp_path / "p.html")
    done = call("watch", run, *weeks(folder, 8), *places)
    assert done.exit_code == 4 and "cannot tell" in done.output
    assert (tmp_path / "p.html").exists() and not (run / "watch.sqlite").exists()
    assert call("watch", run, "--state", tmp_path / "none.sqlite").exit_code == 0, "no batch, nothing to tell"


def test_wrong_input_is_one_message(run, folder, tmp_path):
    (tmp_path / "empty.csv").write_text("width,height,weight,rid\n")
    (tmp_path / "less.csv").write_text("width,rid\n1,a\n")
    for arguments, words in [
        ((run, tmp_path / "gone.parquet"), "gone.parquet"),
        ((run, tmp_path / "empty.csv"), "no rows"),
        ((run, tmp_path / "less.csv"), "height"),
        ((folder, *weeks(folder, 1)), "is no run"),
        ((run, *weeks(folder, 1), "--refit", "weekly"), "--refit weekly"),
        ((run, *weeks(folder, 1), "--max-density-ratio", "0"), "--max-density-ratio"),
        ((run, *weeks(folder, 1), "--page", run / "result.json"), "result.json"),
    ]:
        done = call("watch", *arguments)
        assert done.exit_code == 2 and words in done.stderr and "Traceback" not in done.stderr, arguments
    call("watch", run, *weeks(folder, 1))
    done = call("watch", run, *weeks(folder, 2, 1))
    assert done.exit_code == 2 and "given before" in done.stderr


@pytest.mark.slow
def test_killed_and_called_again_it_counts_every_batch_once(run, folder):
    command = [
        *COMMAND,
        "watch",
        str(run),
        *map(str, weeks(folder, 1, 2, 3, 4, 5, 6, 7)),
        "--refit",
        "each",
        "-q",
    ]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL)
    for _ in range(1200):  # until something is stored
        if (run / "watch.sqlite").exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    answer = json.loads(call("watch", run, "--json").stdout)
    assert [batch["name"] for batch in answer["batches"]] == [f"week-{n}.parquet" for n in range(1, 8)]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        again.returncode == 3 and json.loads(call("watch", run, "--json").stdout)["batches"] == answer["batches"]
    )
