"""Scoring files: every row once, in order, with its id, never half a file; and what is said of the batch."""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

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


def row_by_row(result):
    """The scored target without what takes all rows together."""
    return result.to_frame().drop(columns=["rank", "group"])


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
    answer = openset.score(
        problem_files / "run", folder / f"in.{into}", folder / f"out.{out}", batch_rows=batch_rows
    )
    assert answer.rows == int(answer) == len(X)
    found = read_table(folder / f"out.{out}", id="rid", label="predicted", features=["novelty_score", "p_novel"])
    model = openset.load(problem_files / "run" / "model")
    assert found.ids.tolist() == ids
    assert found.y.astype(str).tolist() == model.predict(X).tolist()
    assert answer.called_novel == found.y.astype(str).tolist().count("novel") >= 2
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
    scored = row_by_row(result)
    seen, outputs = [], SourceOnly._outputs

    def noting(self, rows):
        seen.append((torch.get_num_threads(), len(rows)))
        return outputs(self, rows)

    monkeypatch.setattr(SourceOnly, "_outputs", noting)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for batch_rows in (7, 8192):
            out = tmp_path / f"{batch_rows}.parquet"
            openset.score(tmp_path / "run", target, out, batch_rows=batch_rows)
            pd.testing.assert_frame_equal(pd.read_parquet(out), scored)  # bit for bit
        assert [rows for threads, rows in seen if threads != 1] == [1, 1], "a trial when the model is loaded"
        assert sum(rows for threads, rows in seen if threads == 1) == 2 * 400 and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_without_an_id_column_rows_are_numbered(problem_files, tmp_path):
    source, target = problem_files / "source.parquet", problem_files / "target.parquet"
    result = openset.run(source, target, label="kind", features=list(NAMES), method="knn", fpr=0.1)
    result.save(tmp_path / "run")
    openset.score(tmp_path / "run", problem_files / "target.csv", tmp_path / "o.parquet", batch_rows=37)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "o.parquet"), row_by_row(result))
    assert result.to_frame()["id"].tolist() == list(range(400))


def test_a_broken_row_group_leaves_the_old_output(problem_files, tmp_path):
    path = large_rows(tmp_path)
    content = bytearray(path.read_bytes())
    place = pq.ParquetFile(path).metadata.row_group(5).column(0).data_page_offset
    content[place : place + 2000] = b"\xff" * 2000
    path.write_bytes(content)
    (tmp_path / "out.parquet").write_text("old")
    with pytest.raises(ValueError, match="beyond row"):
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
    assert len(read_table(out, id="rid", features="p_value")) == 20_000


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
    with pytest.raises(ValueError, match="is read too, and would be lost"):
        openset.score(run, data, tmp_path / "." / "next.csv")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        openset.score(run, data, tmp_path / "none" / "scored.csv", fdr=0.1)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        openset.score(run, data, tmp_path / "folder.csv")
    with pytest.raises(ValueError, match="does nothing without fdr"):
        openset.score(run, data, tmp_path / "scored.csv", max_density_ratio=2)
    assert data.read_bytes() == (problem_files / "target.csv").read_bytes()


def write_batch(folder, counts, *, seed=7, change=None, suffix="parquet", **columns):
    """A file of rows like those of the fit, after ``change``; and the rows."""
    X, _ = make_rows(np.random.default_rng(seed), counts)
    if change is not None:
        change(X)
    table = frame(X, rid=[f"b{i}" for i in range(len(X))], **columns)
    path = folder / f"batch.{suffix}"
    table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False)
    return path, X


LIKE_THE_TARGET = {"cat": 300, "dog": 600, "new": 100}


def test_the_answer_of_a_batch_like_the_target(problem_files, tmp_path):
    path, _ = write_batch(tmp_path, LIKE_THE_TARGET)
    answer = openset.score(problem_files / "run", path, tmp_path / "out.parquet")
    called = pd.read_parquet(tmp_path / "out.parquet")["predicted"].value_counts()["novel"]
    interval = binomtest(int(called), 1000).proportion_ci(0.95, method="exact")
    assert answer.called_novel == called and 95 <= called <= 130
    assert answer.called_share.value == called / 1000
    np.testing.assert_allclose([answer.called_share.low, answer.called_share.high], interval, rtol=1e-9)
    fitted = pd.read_parquet(problem_files / "run" / "scored_target.parquet")["predicted"]
    assert answer.called_share_at_fit == (fitted == "novel").mean()
    assert answer.moved.answer == "no" and 0.35 < answer.moved.overlap < 0.65
    assert answer.ranges_compared and answer.out_of_range == [] and not answer.not_compared
    assert answer.new_columns == [] and answer.changed_columns == []


def test_a_batch_that_moved_is_noticed_and_the_column_named(problem_files, tmp_path):
    def move(X):
        X[:, 0] = 100 * X[:, 0] + 700

    path, _ = write_batch(tmp_path, LIKE_THE_TARGET, change=move, suffix="csv")
    answer = openset.score(problem_files / "run", path, tmp_path / "out.csv")
    assert answer.moved.answer == "yes" and answer.moved.overlap == 0 and answer.moved.columns == ["width"]
    (width,) = answer.out_of_range
    assert (width.column, width.rows, width.share) == ("width", 1000, 1.0)


def test_a_column_out_of_range_is_named_with_the_count(problem_files, tmp_path):
    def spoil(X):
        X[5:12, 1] = -999  # of 1000 rows
        X[:, 2] = np.clip(X[:, 2], -0.5, 8)  # within its range

    path, X = write_batch(tmp_path, LIKE_THE_TARGET, change=spoil)
    answer = openset.score(problem_files / "run", path, tmp_path / "out.parquet", batch_rows=64)
    fit = pd.concat(pd.read_parquet(problem_files / f"{role}.parquet") for role in ("source", "target"))["height"]
    (height,) = answer.out_of_range
    assert height.rows == ((X[:, 1] < fit.min()) | (X[:, 1] > fit.max())).sum() >= 7
    assert (height.fit_low, height.fit_high) == (fit.min(), fit.max())
    assert (height.column, height.low, height.high) == ("height", -999, X[:, 1].max())
    assert "a code for missing values" in height.sentence and answer.moved.answer == "no"


@pytest.mark.parametrize("batch_rows", [37, 500, 699])
def test_the_answer_does_not_depend_on_the_size_of_batches(problem_files, tmp_path, batch_rows):
    def spoil(X):
        X[::50, 0] += 30

    path, _ = write_batch(tmp_path, {"cat": 300, "new": 400}, change=spoil)  # more rows than are sampled
    whole = openset.score(problem_files / "run", path, tmp_path / "whole.parquet")
    assert openset.score(problem_files / "run", path, tmp_path / "o.parquet", batch_rows=batch_rows) == whole
    assert len(whole.out_of_range) == 1 and 0 < whole.moved.overlap < 1


def test_with_a_false_discovery_rate_the_answer_has_the_list_too(problem_files, tmp_path):
    path, _ = write_batch(tmp_path, LIKE_THE_TARGET)
    given = (problem_files / "run", path, tmp_path / "out.parquet")
    listed = openset.score(*given, fdr=0.2)
    marked = pd.read_parquet(given[-1])["novel_at_fdr"]
    assert replace(listed, listed=None) == openset.score(*given)
    assert listed.listed.rows == marked.sum() > 0 and listed.listed.called == listed.called_novel
    none = openset.score(*given, fdr=0.01, max_density_ratio=5)
    assert none.listed.rows == 0 and not pd.read_parquet(given[-1])["novel_at_fdr"].any()
    if none.listed.smallest_fdr is not None:
        needed = openset.load_run(problem_files / "run").model.n_source_ * none.listed.smallest_fdr / 0.01
        assert none.listed.source_rows_needed == math.ceil(needed)


def test_no_row_of_a_batch_that_moved_is_listed(problem_files, tmp_path):
    def move(X):
        X += 50

    path, _ = write_batch(tmp_path, LIKE_THE_TARGET, change=move)
    answer = openset.score(problem_files / "run", path, tmp_path / "out.parquet", fdr=0.2)
    assert answer.moved.answer == "yes" and answer.listed.rows == 0
    assert "the batch moved" in answer.listed.text and "nothing can be promised" in answer.listed.text
    assert not pd.read_parquet(tmp_path / "out.parquet")["novel_at_fdr"].any()


def test_new_columns_and_columns_that_changed(problem_files, tmp_path):
    path, _ = write_batch(tmp_path, LIKE_THE_TARGET, town="Rome", zip=range(1000), kind="cat")
    answer = openset.score(problem_files / "run", path, tmp_path / "out.parquet")
    assert answer.new_columns == ["zip"]  # the source had a town and a kind
    frame_ = pd.read_parquet(path).assign(rid=range(1000))
    changed = openset.score(problem_files / "run", frame_, tmp_path / "out.parquet").changed_columns
    assert [(entry.column, entry.at_fit, entry.now) for entry in changed] == [("rid", "other", "number")]
    assert openset.score(problem_files / "run", frame_, tmp_path / "out.parquet", id="zip").new_columns == []


def test_vectors_are_compared_by_index_and_in_their_precision(tmp_path):
    random = np.random.default_rng(0)

    def write(name, rows, **columns):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.astype(np.float16).ravel()), rows.shape[1])
        pq.write_table(pa.table({"e": vectors, **columns}), tmp_path / name)

    kinds = random.integers(0, 2, 300)
    write("source.parquet", random.normal(size=(300, 4)) + 4 * kinds[:, None], kind=np.where(kinds, "a", "b"))
    batch = random.normal(size=(200, 4))
    write("target.parquet", batch)
    openset.run(
        tmp_path / "source.parquet", tmp_path / "target.parquet", label="kind", features="e", method="mahalanobis"
    ).save(tmp_path / "run")  # fmt: skip
    answer = openset.score(tmp_path / "run", tmp_path / "target.parquet", tmp_path / "out.csv")
    assert answer.out_of_range == [] and answer.moved.answer == "no"
    batch[3:40, 2] = 60
    answer = openset.score(tmp_path / "run", pd.DataFrame({"e": batch.tolist()}), tmp_path / "out.csv")  # float64
    assert [(entry.column, entry.rows) for entry in answer.out_of_range] == [("e[2]", 37)]


def test_a_run_without_a_profile_scores_and_says_that_nothing_is_compared(problem_files, tmp_path):
    shutil.copytree(problem_files / "run", tmp_path / "run")
    (tmp_path / "run" / "profile.safetensors").unlink()
    path, _ = write_batch(tmp_path, LIKE_THE_TARGET, zip=1)
    old = openset.score(tmp_path / "run", path, tmp_path / "out.parquet")
    answer = openset.score(problem_files / "run", path, tmp_path / "again.parquet")
    assert old.called_share == answer.called_share and old.called_share_at_fit == answer.called_share_at_fit
    assert old.not_compared and old.moved.answer == "unknown" and not old.ranges_compared and not old.new_columns
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "out.parquet"), pd.read_parquet(tmp_path / "again.parquet")
    )
    (tmp_path / "run" / "profile.safetensors").write_bytes(b"half")
    with pytest.raises(ValueError, match="profile.safetensors is damaged"):
        openset.score(tmp_path / "run", path, tmp_path / "third.parquet")
    assert not (tmp_path / "third.parquet").exists()


@pytest.mark.parametrize("out", ["parquet", "csv", "jsonl", "arrow"])
@pytest.mark.parametrize(
    "cells",
    [[None] * 20 + ["a"] * 40, [1] * 20 + [1.5] * 40, ["a"] * 60, [None] * 60],
    ids=["gaps", "fractions", "text", "nothing"],
)
def test_carried_columns_do_not_depend_on_the_size_of_batches(problem_files, tmp_path, cells, out):
    batch = pd.read_parquet(problem_files / "target.parquet").head(60)
    rows = [{**row, "c": cell} for row, cell in zip(batch.to_dict("records"), cells, strict=True)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = []
    for batch_rows in (10, 60):
        path = tmp_path / f"{batch_rows}.{out}"
        openset.score(problem_files / "run", tmp_path / "t.jsonl", path, carry="c", batch_rows=batch_rows)
        records = read_table(path, id="rid", features="p_value", cells=["c"])
        assert records.ids.tolist() == batch["rid"].tolist()
        codes, levels = records.table["c"].coded()
        found.append([None if code < 0 else levels[code] for code in codes])
    assert found[0] == found[1] == [None if cell is None else str(cell) for cell in cells]


def test_a_carried_column_never_hides_one_of_the_scored_table(problem_files, tmp_path):
    batch = pd.read_parquet(problem_files / "target.parquet").assign(p_value=7.0, predicted="mine")
    openset.score(problem_files / "run", batch, tmp_path / "o.parquet", carry="all")
    scored = pd.read_parquet(tmp_path / "o.parquet")
    assert scored["p_value_"].eq(7).all() and scored["p_value"].max() <= 1
    assert scored["predicted_"].eq("mine").all() and set(scored["predicted"]) <= {"cat", "dog", "novel"}
    assert list(scored.columns).count("rid") == 1 and scored["rid"].tolist() == batch["rid"].tolist()
    pd.testing.assert_series_equal(scored["width"], batch["width"])


def test_ids_keep_their_name_and_type(problem_files, tmp_path):
    batch = pd.read_parquet(problem_files / "target.parquet").assign(rid=np.arange(400, dtype=np.int32) * 3)
    openset.score(problem_files / "run", batch, tmp_path / "o.parquet")
    ids = pd.read_parquet(tmp_path / "o.parquet")["rid"]
    assert ids.tolist() == batch["rid"].tolist() and ids.dtype.kind == "i"
    openset.score(problem_files / "run", batch.assign(rank=range(400)), tmp_path / "o.parquet", id="rank")
    assert pd.read_parquet(tmp_path / "o.parquet")["id"].tolist() == list(range(400)), "rank is a name of ours"
