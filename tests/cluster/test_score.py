"""Parts: the same bytes in one run, in shards and on S3; each once; what is not ours is refused."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pandas as pd
import pyarrow.parquet as pq
import pytest

import openset
from openset.cluster.ids import check_ids
from openset.cluster.part_scorer import PartScorer
from openset.cluster.records import record_name
from openset.cluster.score import _Existing, score_parts


def files_of(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def scored(monkeypatch):
    """The parts that are scored from now on, by name."""
    names, call = [], PartScorer.__call__
    monkeypatch.setattr(PartScorer, "__call__", lambda self, part: (names.append(part.name), call(self, part))[1])
    return names


def test_the_answer_is_that_of_all_rows_together(problem_files, parts, tmp_path):
    run = problem_files / "run"
    found = score_parts(run, parts, tmp_path / "out")
    together = openset.score(run, f"{parts}/*.parquet", tmp_path / "one.parquet")
    assert (found.parts, found.there, found.scored, found.skipped, found.is_complete) == (5, 5, 5, 0, True)
    assert found.answer.called_share == together.called_share and found.answer.rows == together.rows == 300
    assert (
        found.answer.out_of_range == together.out_of_range and found.answer.moved.answer == together.moved.answer
    )
    rows = pd.concat(pd.read_parquet(tmp_path / "out" / f"part-{i}.parquet") for i in range(5))
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), pd.read_parquet(tmp_path / "one.parquet"))
    told = json.loads((tmp_path / "out" / "_SUCCESS").read_text())
    assert (told["parts"], told["rows"], told["called_novel"]) == (5, 300, together.called_novel)
    assert "5 of 5 parts are there: 5 scored now, 0 found done; _SUCCESS is written." in found()
    assert found.to_dict()["parts"]["complete"] and found.to_dict()["rows"] == 300


def test_shards_write_the_same_bytes_and_the_last_one_ends_it(problem_files, parts, tmp_path):
    run = problem_files / "run"
    score_parts(run, parts, tmp_path / "whole")
    first = score_parts(run, parts, tmp_path / "out", shard="1/2")
    assert (first.there, first.scored, first.answer.rows) == (2, 2, 120)
    assert not (tmp_path / "out" / "_SUCCESS").exists() and "score the rest" in first()
    none = score_parts(run, parts, tmp_path / "empty", shard="7/9")
    assert (none.answer, none.there) == (None, 0) and none().startswith("0 of 5 parts are there")
    last = score_parts(run, parts, tmp_path / "out", shard="0/2")
    assert (last.there, last.scored, last.answer.rows) == (5, 3, 300)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def test_parts_that_are_there_are_skipped_and_a_new_one_is_added(problem_files, parts, tmp_path, scored):
    run, out = problem_files / "run", tmp_path / "out"
    score_parts(run, parts, out)
    before = files_of(out)
    (out / "part-1.parquet").unlink()  # killed before it was renamed
    (out / "part-3.parquet").write_bytes(before["part-3.parquet"][:100])  # an upload that was cut short
    scored.clear()
    again = score_parts(run, parts, out)
    assert scored == ["part-1.parquet", "part-3.parquet"] and (again.scored, again.skipped) == (2, 3)
    assert files_of(out) == before and again.answer.rows == 300
    shutil.copy(parts / "part-4.parquet", parts / "part-9.parquet")
    scored.clear()
    more = score_parts(run, parts, out)
    assert scored == ["part-9.parquet"] and more.answer.rows == 360 and more.is_complete


def test_success_goes_before_a_part_is_missing_for_long(problem_files, parts, tmp_path, monkeypatch):
    run, out = problem_files / "run", tmp_path / "out"
    score_parts(run, parts, out)
    (out / "part-1.parquet").unlink()

    def fail(self, part):
        raise ValueError("no")

    monkeypatch.setattr(PartScorer, "__call__", fail)
    with pytest.raises(ValueError, match="^no$"):
        score_parts(run, parts, out)
    assert not (out / "_SUCCESS").exists() and (out / "part-0.parquet").exists()


def test_what_is_not_ours_is_refused(problem_files, parts, tmp_path):
    run, out = problem_files / "run", tmp_path / "out"
    score_parts(run, parts, out)
    again = "Choose another folder, or delete the part to score it again."
    result = openset.run(
        problem_files / "source.parquet", problem_files / "target.parquet", label="kind", id="rid", method="knn"
    )
    result.save(tmp_path / "other")
    with pytest.raises(ValueError, match=f"part-0.parquet was scored by another run. {again}"):
        score_parts(tmp_path / "other", parts, out)
    with pytest.raises(ValueError, match="other options .*carried columns: none; .*carried columns: width"):
        score_parts(run, parts, out, carry="width")
    (out / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds files that are no parts of the data: notes.txt. Choose another"):
        score_parts(run, parts, out)
    (out / "notes.txt").unlink()
    (out / record_name("part-2.parquet")).unlink()
    with pytest.raises(ValueError, match="part-2.parquet was not written by openset score"):
        score_parts(run, parts, out)
    (tmp_path / "link").symlink_to(parts)
    relative = os.path.relpath(parts)
    for wrong in (parts, parts / "scored", tmp_path, relative, tmp_path / "link", f"file://{parts}/scored"):
        with pytest.raises(ValueError, match="holds data that is read, or is a part of it"):
            score_parts(run, parts, wrong)
    with pytest.raises(ValueError, match="is a file: parts are written to a folder"):
        score_parts(run, parts, problem_files / "target.csv")


def test_success_is_for_parts_that_belong_together(problem_files, parts, tmp_path):
    run, out = problem_files / "run", tmp_path / "out"
    score_parts(run, parts, out, shard="0/2")
    with pytest.raises(ValueError, match="part-0.parquet was scored with other options"):
        score_parts(run, parts, out, shard="1/2", carry="width")
    shutil.copy(parts / "part-1.parquet", parts / "part-0.parquet")  # of the other shard
    with pytest.raises(ValueError, match="part-0.parquet changed since it was scored"):
        score_parts(run, parts, out, shard="1/2")
    assert not (out / "_SUCCESS").exists() and not (out / "part-1.parquet").exists()


def test_success_goes_when_a_part_of_another_shard_is_missing(problem_files, parts, tmp_path):
    run, out = problem_files / "run", tmp_path / "out"
    score_parts(run, parts, out)
    (out / "part-1.parquet").unlink()
    found = score_parts(run, parts, out, shard="0/2")
    assert (found.there, found.scored, found.is_complete) == (4, 0, False)
    assert not (out / "_SUCCESS").exists()


def test_success_of_another_shard_that_ends_meanwhile_stays(problem_files, parts, tmp_path, monkeypatch):
    run, out = problem_files / "run", tmp_path / "out"
    score_parts(run, parts, out, shard="0/2")
    looked = _Existing.records

    def look(self):
        found = looked(self)
        monkeypatch.setattr(_Existing, "records", looked)
        score_parts(run, parts, out, shard="1/2")  # another machine, after this one looked
        return found

    monkeypatch.setattr(_Existing, "records", look)
    assert score_parts(run, parts, out, shard="0/2").is_complete and (out / "_SUCCESS").exists()


def test_a_part_without_rows_gives_a_part_without_rows(problem_files, parts, tmp_path):
    """Spark and others write such parts; they must not hold up the rest."""
    run, out = problem_files / "run", tmp_path / "out"
    expected = score_parts(run, parts, tmp_path / "full").answer
    (parts / "part-0.parquet").rename(parts / "part-6.parquet")  # the first part has the columns
    pd.read_parquet(parts / "part-1.parquet")[:0].to_parquet(parts / "part-0.parquet")
    found = score_parts(run, parts, out)
    assert (found.there, found.is_complete) == (6, True) and (out / "_SUCCESS").exists()
    assert found.answer.rows == 300 and found.answer.called_novel == expected.called_novel
    assert found.answer.moved.answer == expected.moved.answer and found.answer.ranges_compared
    empty, full = (pq.read_schema(out / f"part-{i}.parquet") for i in (0, 1))
    assert empty.equals(full) and pq.read_metadata(out / "part-0.parquet").num_rows == 0
    assert score_parts(run, parts, out).skipped == 6 and check_ids(out).rows == 300
    with pytest.raises(ValueError, match="part-0.parquet is empty: it has columns but no rows"):
        score_parts(run, parts, tmp_path / "lines", format="jsonl")
    alone = score_parts(run, parts / "part-0.parquet", tmp_path / "alone")
    assert alone.answer is None and json.loads((tmp_path / "alone" / "_SUCCESS").read_text())["rows"] == 0
    assert "1 of 1 part" in alone()


def test_an_input_that_changed_is_told_and_a_copy_is_not(problem_files, parts, tmp_path, scored):
    run, out = problem_files / "run", tmp_path / "out"
    score_parts(run, parts, out)
    scored.clear()
    os.utime(parts / "part-1.parquet", (1, 1))  # the same bytes with another time
    assert score_parts(run, parts, out).skipped == 5 and scored == []
    content = bytearray((parts / "part-1.parquet").read_bytes())
    content[50] ^= 1
    (parts / "part-1.parquet").write_bytes(content)
    with pytest.raises(ValueError, match="part-1.parquet changed since it was scored into .*delete the part"):
        score_parts(run, parts, out)


def test_ids_are_checked_in_a_part(problem_files, parts, tmp_path):
    table = pd.read_parquet(parts / "part-2.parquet")
    table.loc[3, "rid"] = table.loc[1, "rid"]
    table.to_parquet(parts / "part-2.parquet")
    with pytest.raises(
        ValueError, match="part-2.parquet has rows that cannot be used: row 3: id p2-1 .* came before"
    ):
        score_parts(problem_files / "run", parts, tmp_path / "out")
    assert sorted(files_of(tmp_path / "out"))[2:] == ["part-0.parquet", "part-1.parquet"]  # which stay


def test_the_same_bytes_on_a_store(problem_files, parts, on_s3, tmp_path, scored):
    score_parts(problem_files / "run", parts, tmp_path / "out")
    expected = files_of(tmp_path / "out")
    found = score_parts("s3://bucket/run", "s3://bucket/in/*.parquet", "s3://bucket/out/", shard="0/2")
    assert found.there == 3
    scored.clear()
    found = score_parts("s3://bucket/run", "s3://bucket/in/*.parquet", "s3://bucket/out/")
    assert len(scored) == 2 and found.is_complete and found.answer.rows == 300
    there = {key.removeprefix("out/"): c for key, c in on_s3.buckets["bucket"].items() if key.startswith("out/")}
    for name in ("_SUCCESS", *(f"part-{i}.parquet" for i in range(5))):
        assert there[name] == expected[name]
    assert there.keys() == expected.keys()
    on_s3.put("bucket", "in/part-0.parquet", on_s3.buckets["bucket"]["in/part-1.parquet"] + b"more")
    with pytest.raises(
        ValueError, match="s3://bucket/in/part-0.parquet changed since it was scored into s3://bucket"
    ):
        score_parts("s3://bucket/run", "s3://bucket/in/*.parquet", "s3://bucket/out/")


def test_csv_parts_stay_csv_unless_a_format_is_named(problem_files, parts, tmp_path):
    folder = tmp_path / "csv"
    folder.mkdir()
    pd.read_parquet(parts / "part-0.parquet").to_csv(folder / "a.csv", index=False)
    score_parts(problem_files / "run", folder, tmp_path / "one", csv_safe=True)
    assert pd.read_csv(tmp_path / "one" / "a.csv")["rid"].tolist()[0] == "p0-0"
    score_parts(problem_files / "run", folder, tmp_path / "two", format="parquet")
    assert len(pd.read_parquet(tmp_path / "two" / "a.parquet")) == 60
    with pytest.raises(ValueError, match="is for CSV files"):
        score_parts(problem_files / "run", parts, tmp_path / "three", csv_safe=True)


def test_a_full_disk_keeps_the_parts_that_are_whole(problem_files, parts, tmp_path):
    for number in range(2, 5):
        (parts / f"part-{number}.parquet").unlink()
    big = pd.concat([pd.read_parquet(parts / "part-1.parquet")] * 400, ignore_index=True)
    big.assign(rid=range(len(big))).to_parquet(parts / "part-1.parquet")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, before[1]))
        with pytest.raises(OSError, match="(?i)too large"):
            score_parts(problem_files / "run", parts, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert sorted(files_of(tmp_path / "out")) == [record_name("part-0.parquet"), "part-0.parquet"]
    assert score_parts(problem_files / "run", parts, tmp_path / "out").scored == 1


@pytest.mark.slow
def test_killed_and_started_again_nothing_is_scored_twice_and_nothing_lost(problem_files, parts, tmp_path):
    run, out = problem_files / "run", tmp_path / "out"
    code = (
        "import sys, time\nfrom openset.cluster.part_scorer import PartScorer\n"
        "from openset.cluster.score import _Existing, score_parts\nscore = PartScorer.__call__\n"
        "PartScorer.__call__ = lambda self, part: (time.sleep(0.3), score(self, part))\n"
        "score_parts(*sys.argv[1:])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, run, parts, out])
    while process.poll() is None and len(list(out.glob("part-*"))) < 2:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    before = {path: path.stat().st_mtime_ns for path in out.glob("part-*")}
    found = score_parts(run, parts, out)
    assert (found.skipped, found.scored) == (len(before), 5 - len(before)) and 2 <= len(before) < 5
    assert found.is_complete and found.answer.rows == 300
    assert {path: path.stat().st_mtime_ns for path in before} == before
