"""Scoring files: every row once, in order, with its id, and never half a file."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openset
from openset.data import read_table
from openset.data.writer import writing_table
from product_files import NAMES, frame, make_rows

CODE = "import sys, openset; openset.score(*sys.argv[1:])"


def large_rows(folder, rows=40_000):
    X = np.random.default_rng(1).normal(size=(rows, 3))
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame(X, rid=np.arange(rows))), path, row_group_size=5000)
    return path


@settings(max_examples=25)
@given(rows=st.integers(1, 60), batch_rows=st.integers(1, 70), seed=st.integers(0, 99), data=st.data())
def test_every_row_once_in_order_with_its_id(problem_files, tmp_path_factory, rows, batch_rows, seed, data):
    folder = tmp_path_factory.mktemp("stream")
    into, out = (data.draw(st.sampled_from(["parquet", "csv", "jsonl", "arrow", "npz"])) for _ in range(2))
    random = np.random.default_rng(seed)
    X, _ = make_rows(random, {"cat": rows, "new": 2})
    ids = [f"id {i}" for i in random.permutation(len(X))]
    with writing_table(folder / f"in.{into}") as write:
        write({**dict(zip(NAMES, X.T, strict=True)), "rid": np.array(ids, dtype=object)})
    assert openset.score(
        problem_files / "run", folder / f"in.{into}", folder / f"out.{out}", batch_rows=batch_rows
    ) == len(X)
    found = read_table(folder / f"out.{out}", id="id", label="predicted", features=["novelty_score", "p_novel"])
    model = openset.load(problem_files / "run" / "model")
    assert found.ids.tolist() == ids
    assert found.y.astype(str).tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(found.X[:, 0], model.novelty_score(X))
    np.testing.assert_array_equal(found.X[:, 1], model.predict_proba(X)[:, -1])


def test_networks_leave_a_core_to_the_reader_and_scores_do_not_depend_on_the_batch(
    problem_files, tmp_path, monkeypatch
):
    import torch

    from openset import SourceOnly

    source, target = problem_files / "source.parquet", problem_files / "target.parquet"
    parameters = {"max_steps": 50}
    result = openset.run(source, target, label="kind", id="rid", method="source_only", parameters=parameters)
    result.save(tmp_path / "run")
    seen, outputs = [], SourceOnly._outputs
    monkeypatch.setattr(
        SourceOnly, "_outputs", lambda self, rows: (seen.append(torch.get_num_threads()), outputs(self, rows))[1]
    )
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for batch_rows in (7, 8192):
            out = tmp_path / f"{batch_rows}.parquet"
            openset.score(tmp_path / "run", target, out, batch_rows=batch_rows)
            pd.testing.assert_frame_equal(pd.read_parquet(out), result.to_frame())  # bit for bit
        assert set(seen) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_without_an_id_column_rows_are_numbered(problem_files, tmp_path):
    source, target = problem_files / "source.parquet", problem_files / "target.parquet"
    result = openset.run(source, target, label="kind", features=list(NAMES), method="knn", fpr=0.1)
    result.save(tmp_path / "run")
    openset.score(tmp_path / "run", problem_files / "target.csv", tmp_path / "o.parquet", batch_rows=37)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "o.parquet"), result.to_frame())
    assert result.to_frame()["id"].tolist() == list(range(400))


def test_a_broken_row_group_leaves_the_old_output(problem_files, tmp_path):
    path = large_rows(tmp_path)
    content = bytearray(path.read_bytes())
    place = pq.ParquetFile(path).metadata.row_group(5).column(0).data_page_offset
    content[place : place + 2000] = b"\xff" * 2000
    path.write_bytes(content)
    (tmp_path / "out.parquet").write_text("old")
    with pytest.raises(ValueError, match="cannot be read beyond row"):
        openset.score(problem_files / "run", path, tmp_path / "out.parquet", batch_rows=1000)
    assert (tmp_path / "out.parquet").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet", "rows.parquet"]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "npz", "arrow"])
def test_a_full_disk_leaves_the_old_output(problem_files, tmp_path, suffix):
    path = large_rows(tmp_path, 20_000)
    out = tmp_path / f"out.{suffix}"
    out.write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
        with pytest.raises(OSError, match="(?i)too large"):
            openset.score(problem_files / "run", path, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert out.read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == [out.name, "rows.parquet"]
    openset.score(problem_files / "run", path, out)
    assert len(read_table(out, id="id", features="p_value")) == 20_000


@pytest.mark.slow
def test_a_kill_leaves_the_old_output_or_the_new(problem_files, tmp_path):
    path, out = large_rows(tmp_path, 400_000), tmp_path / "out.parquet"
    pq.write_table(pa.table({"old": [1]}), out)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    killed = 0
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, problem_files / "run", path, out], env=environment
        )
        while process.poll() is None and not list(tmp_path.glob(".writing-*")):
            time.sleep(0.01)
        time.sleep(0.1)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        found = pq.read_table(out)
        assert found.num_rows == (1 if "old" in found.column_names else 400_000)
        for leftover in tmp_path.glob(".writing-*"):
            leftover.unlink()
    assert killed  # at least once it was in the middle of writing


def test_duplicates_and_unknown_columns_are_told(problem_files, tmp_path):
    X, _ = make_rows(np.random.default_rng(0), {"cat": 5})
    frame(X, rid=["a"] * 5).to_csv(tmp_path / "twice.csv", index=False)
    frame(X).to_csv(tmp_path / "plain.csv", index=False)
    for name, words in (("twice.csv", "came before"), ("plain.csv", "no column 'rid'")):
        with pytest.raises(ValueError, match=words):
            openset.score(problem_files / "run", tmp_path / name, tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()


def test_the_data_are_never_replaced_by_their_scores(problem_files, tmp_path):
    run = tmp_path / "run"
    openset.run(
        problem_files / "source.parquet", problem_files / "target.parquet", label="kind", method="knn"
    ).save(run)
    data = tmp_path / "next.csv"
    data.write_bytes((problem_files / "target.csv").read_bytes())
    with pytest.raises(ValueError, match="is the data itself"):
        openset.score(run, data, tmp_path / "." / "next.csv")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        openset.score(run, data, tmp_path / "none" / "scored.csv", fdr=0.1)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        openset.score(run, data, tmp_path / "folder.csv")
    with pytest.raises(ValueError, match="does nothing without fdr"):
        openset.score(run, data, tmp_path / "scored.csv", max_density_ratio=2)
    assert data.read_bytes() == (problem_files / "target.csv").read_bytes()
