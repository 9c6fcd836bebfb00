from __future__ import annotations

import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from official_files import random_resnet
from openset.bench.problems import get_source
from openset.bench.provenance import code_version
from openset.bench.runs import RunResult
from openset.bench.spec import load_spec
from openset.bench.store import Store
from openset.cli import app
from openset.commands.bench import _readiness

TEN_ROWS = """
[[problem]]
dataset = "synthetic"
settings = ["shift"]
seeds = [0]
options = { n_source = 60, n_target = 60, n_test = 40, n_features = 4 }
[[method]]
name = "knn"
[[method]]
name = "mahalanobis"
"""


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"COLUMNS": "80", "NO_COLOR": "1"})


def one_line(text):
    return " ".join(text.split())


def fits_80_columns(text):
    return max(map(len, text.splitlines())) <= 80 and "…" not in text


def test_list_names_experiments_and_datasets():
    listed = run("list")
    assert listed.exit_code == 0 and fits_80_columns(listed.stdout)
    for word in ("quick", "yes, ", "digits", "synthetic-subtypes"):
        assert word in listed.stdout


def test_list_names_the_files_that_are_missing_beside_those_that_are_there(tmp_path):
    spec = load_spec("table-amazon")
    (tmp_path / "amazon_reviews").mkdir()
    for name in get_source("amazon-fdu-mtl").files:
        (tmp_path / name).touch()
    assert _readiness(spec, tmp_path).endswith("on stand-ins (amazon by amazon-fdu-mtl)")
    first, *others = get_source("amazon").novel
    for category in others:
        (tmp_path / "amazon_reviews" / f"{category}_5.json.gz").touch()
    listed = _readiness(spec, tmp_path)
    assert f"(amazon by amazon-fdu-mtl; amazon lacks amazon_reviews/{first}*.json* or " in listed
    assert not any(category in listed for category in others)


@pytest.mark.slow
def test_run_table_figure_and_export(tmp_path):
    spec, store = tmp_path / "mine.toml", ("--store", tmp_path / "runs.sqlite")
    spec.write_text(TEN_ROWS)
    ran = run("run", spec, *store)
    assert ran.exit_code == 0, ran.output
    assert "knn" in ran.stdout and "AUROC" in ran.stdout and "Paired tests need a method labelled" in ran.stdout
    assert "2 runs in" in ran.stderr and fits_80_columns(ran.stdout)
    assert "2 already stored" in run("run", spec, *store).stderr

    printed = run("table", spec, *store).stdout
    assert printed.split() == ran.stdout.split()
    assert run("table", spec, *store, "--format", "markdown").stdout.count("| knn |") == 1
    assert r"\begin{tabular}" in run("table", spec, *store, "--format", "latex").stdout
    run("table", spec, *store, "--format", "csv", "--output", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().startswith("problem,x,setting,")
    (tmp_path / "t.html").write_text("mine")
    refused = run("table", spec, *store, "--output", tmp_path / "t.html")
    assert refused.exit_code == 2
    assert "has no known suffix: use one of .md, .csv, .tex, .txt, or give --format" in one_line(refused.stderr)
    assert (tmp_path / "t.html").read_text() == "mine"
    run("table", spec, *store, "--output", tmp_path / "t.txt")
    assert "mahalanobis" in (tmp_path / "t.txt").read_text()

    assert run("figure", spec, *store, "--output", tmp_path / "f.svg").exit_code == 0
    assert b"<svg" in (tmp_path / "f.svg").read_bytes()
    exported = run("export", *store, "--output", tmp_path / "runs.csv")
    assert "2 rows" in exported.stderr and (tmp_path / "runs.csv").read_text().count("\n") == 3
    assert "0 rows" in run("export", *store, "--what", "heads", "--output", tmp_path / "heads.csv").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "nonsense"), "spec='nonsense'"),
        (("table", "quick", "--store", "none.sqlite"), "no result store 'none.sqlite'"),
        (("export", "--store", "none.sqlite", "--output", "x.csv"), "no result store"),
        (
            ("run", "quick", "--store", "none/s.sqlite"),
            "no folder none: create it, or give another path with --store",
        ),
        (("run", "quick", "--store", "."), ". is a folder: give a file with --store"),
        (("run", "quick", "--store", "damaged"), "damaged cannot be used (file is not a database)"),
        (("table", "quick", "--store", "damaged"), "damaged cannot be used (file is not a database)"),
        (("table", "quick", "--out", "none/x.md"), "there is no folder none: create it"),
        (("table", "quick", "--out", "."), ". is a folder: give a file with --output"),
        (("figure", "quick", "--out", "none/x.svg"), "there is no folder none: create it"),
        (("figure", "quick", "--out", "."), ". is a folder: give a file with --output"),
        (("export", "--output", "none/x.csv"), "there is no folder none: create it"),
        (("export", "--output", "."), ". is a folder: give a file with --output"),
        (("run", "bad.toml"), "bad.toml, method 1 is text, expected a table of names"),
        (("run", "table-msp", "--data", "."), "sun to stand in for sun397"),
        (
            ("run", "misspelt.toml"),
            "misspelt, color: CoLOR has no parameter 'max_step'. Did you mean 'max_steps'",
        ),
        (("run", "seeded.toml"), "random_state is the split's seed: set seeds in [[problem]]"),
    ],
)
def test_usage_errors_without_a_traceback(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged").write_bytes(b"SQLite format 3" + b"?" * 5000)
    (tmp_path / "bad.toml").write_text("method = ['dd']\n[[problem]]\ndataset = 'digits'")
    for name, parameter in (("misspelt", "max_step"), ("seeded", "random_state")):
        method = f"[[method]]\nname = 'color'\nlabel = 'color'\nparameters = {{ {parameter} = 1 }}"
        (tmp_path / f"{name}.toml").write_text(f"[[problem]]\ndataset = 'digits'\n{method}")
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output and isinstance(result.exception, SystemExit)


@pytest.mark.slow
def test_stored_failures_are_counted_and_the_way_to_try_again_named(tmp_path):
    spec, store = tmp_path / "mine.toml", ("--store", tmp_path / "runs.sqlite")
    spec.write_text(TEN_ROWS.replace('"knn"', '"knn"\nparameters = { fpr = 7 }'))
    first = run("run", spec, *store)
    assert "0 already stored, 1 failed;" in first.stderr and "mahalanobis" in first.stdout
    again = run("run", spec, *store)
    assert "2 already stored (1 of them failed: --retry-failed tries again), 0 failed;" in again.stderr
    assert first.exit_code == again.exit_code == 1  # a script must not take the table for whole
    assert "1 already stored, 1 failed;" in run("run", spec, *store, "--retry-failed").stderr


def test_a_stand_in_is_named_before_the_sweep(tmp_path, monkeypatch):
    from openset.bench.problems import sources

    moon = replace(sources.get_source("synthetic"), name="moon", files=("moon.npy",), stand_in="synthetic")
    monkeypatch.setitem(sources._SOURCES, "moon", moon)
    monkeypatch.setattr(
        "openset.bench.sweep._results", lambda on, runs, *rest: ((run, RunResult()) for run in runs)
    )
    monkeypatch.setattr("openset.commands.bench._print", lambda results: None)
    spec = tmp_path / "mine.toml"
    spec.write_text(TEN_ROWS.replace('"synthetic"', '"moon"'))
    result = run("run", spec, "--data", tmp_path, "--store", tmp_path / "runs.sqlite")
    assert result.stderr.startswith(f"moon is not in {tmp_path}: using synthetic instead.\n"), result.output
    monkeypatch.setitem(sources._SOURCES, "moon", replace(moon, files=("moon.npy", "sun.npy")))
    (tmp_path / "moon.npy").touch()
    told = run("run", spec, "--data", tmp_path, "--store", tmp_path / "runs.sqlite").stderr
    assert told.startswith(f"{tmp_path} lacks sun.npy of moon: using synthetic instead.\n"), told
    spec.write_text(TEN_ROWS)
    assert "instead" not in run("run", spec, "--data", tmp_path, "--store", tmp_path / "runs.sqlite").stderr


def test_an_encoder_may_be_downloaded_or_put_into_the_data_folder(tmp_path, monkeypatch):
    """The hub's cache is empty, and a download is what is asked for: nothing is loaded."""
    asked = []

    def download(name, *, local_files_only, **options):
        asked.append(local_files_only)
        raise OSError("no network in tests")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    write_tiny_clinc(tmp_path)
    spec = tmp_path / "mine.toml"
    spec.write_text('[[problem]]\ndataset = "clinc150"\nencoder = "nobody/nothing"\n[[method]]\nname = "knn"')
    arguments = ("run", spec, "--data", tmp_path, "--store", tmp_path / "runs.sqlite")
    refused = run(*arguments)
    assert refused.exit_code == 2 and "Traceback" not in refused.output
    message = one_line(refused.stderr).replace(" ", "")
    assert f"putitsfolderat{tmp_path}/encoders/nothing,orpass--allow-downloadtodownloadit." in message
    assert Store(tmp_path / "runs.sqlite").all() == [] and asked == [True]
    tried = run(*arguments, "--allow-download")
    assert tried.exit_code == 2 and "loading it from the hub failed (no network in tests)" in one_line(
        tried.stderr
    )
    assert asked == [True, False]


def write_tiny_clinc(folder):
    (folder / "clinc150").mkdir()
    n = 40
    columns = {"text": [f"query {i}" for i in range(n)], "intent": ["a", "b"] * (n // 2)}
    table = pa.table({**columns, "domain": ["banking"] * n, "split": ["train"] * n})
    pq.write_table(table, folder / "clinc150" / "queries.parquet")


@pytest.mark.slow
def test_tables_can_be_read_while_another_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("openset.bench.store.WAIT", 0.05)
    spec, path = tmp_path / "mine.toml", tmp_path / "runs.sqlite"
    spec.write_text(TEN_ROWS)
    store = ("--store", path)
    assert run("run", spec, *store).exit_code == 0
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "mahalanobis" in run("table", spec, *store).stdout
        assert "2 rows" in run("export", *store, "--output", tmp_path / "runs.csv").stderr
        refused = run("run", spec, *store)
    assert refused.exit_code == 2 and "another process is writing to it" in refused.stderr


@pytest.mark.slow
def test_a_sweep_continues_from_exported_runs(tmp_path):
    spec, runs = tmp_path / "mine.toml", tmp_path / "runs.parquet"
    spec.write_text(TEN_ROWS)
    here, there = ("--store", tmp_path / "here.sqlite"), ("--store", tmp_path / "there.sqlite")
    assert run("run", spec, *here).exit_code == 0
    assert run("export", *here, "--output", runs).exit_code == 0
    imported = run("import", runs, *there)
    assert imported.exit_code == 0 and "2 runs added" in imported.stderr
    assert "0 runs added" in run("import", runs, *there).stderr
    continued = run("run", spec, *there)
    assert "0 runs in" in continued.stderr and "2 already stored" in continued.stderr
    assert continued.stdout == run("table", spec, *here).stdout
    refused = run("import", spec, *there)
    assert refused.exit_code == 2 and "must end in .csv or .parquet" in refused.stderr


@pytest.mark.slow
def test_the_commands_on_a_page_make_it_again(tmp_path):
    spec, page = tmp_path / "my spec.toml", tmp_path / "my page.md"
    spec.write_text(TEN_ROWS + "[figure]\nkind = 'bars'\n")
    store = ("--store", tmp_path / "my runs.sqlite")
    assert run("run", spec, *store).exit_code == 0
    assert run("table", spec, *store, "--code", code_version(), "--out", page).exit_code == 0
    before = page.read_text()
    page.unlink()
    commands = [shlex.split(line) for line in before.splitlines() if line.startswith("    openset bench ")]
    assert [command[2] for command in commands] == ["run", "table", "figure"]
    assert all(command[command.index("--store") + 1] == str(store[1]) for command in commands)
    for command in commands:
        ended = run(*command[2:])
        assert ended.exit_code == 0, ended.output
    assert page.read_text() == before and (tmp_path / "my page.svg").exists()


def test_an_interrupted_run_says_how_to_continue(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("openset.bench.sweep.sweep", interrupted)
    result = run("run", "quick", "--store", tmp_path / "runs.sqlite")
    assert result.exit_code == 130 and "the same command continues" in result.stderr


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    spec = tmp_path / "mine.toml"
    spec.write_text(TEN_ROWS)
    result = run("run", spec, "--on", "ray", "--store", tmp_path / "runs.sqlite")
    assert result.exit_code == 2 and "openset[ray]" in result.output


@pytest.mark.parametrize("command", ["list", "run", "table", "figure", "export"])
def test_help_has_an_example(command):
    result = run(command, "--help")
    assert result.exit_code == 0 and f"openset bench {command}" in result.stdout


def test_the_commands_import_nothing_heavy():
    heavy = "{'matplotlib', 'numpy', 'scipy', 'sklearn', 'torch', 'ray', 'pyarrow'}"
    code = f"import sys, openset.commands.bench; sys.exit(str({heavy} & set(sys.modules) or '') or None)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_encoder_of_torchvisions_weights_is_found_under_its_name(tmp_path):
    import torch

    from openset.bench.problems.loading import encoder_path
    from openset.features import ImageEncoder

    torch.save(random_resnet("basic", (1, 1, 1, 1)), tmp_path / "resnet18-tiny.pth")
    for options, name in (((), "resnet18-tiny"), (("--name", "resnet-50"), "microsoft/resnet-50")):
        result = run("encoder", tmp_path / "resnet18-tiny.pth", "--data", tmp_path, *options)
        assert result.exit_code == 0, result.output
        assert f'encoder = "{name.rpartition("/")[2]}"' in one_line(result.output)
        assert ImageEncoder(encoder_path(name, tmp_path)).dimension == 64
    again = run("encoder", tmp_path / "resnet18-tiny.pth", "--data", tmp_path)
    assert again.exit_code != 0 and "exists already: remove it" in one_line(again.output)
