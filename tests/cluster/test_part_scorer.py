"""A part: its scores are those of ``openset.score``, its record comes first, and a changed input is refused."""

from __future__ import annotations

import os

import pandas as pd
import pytest

import openset
from openset.cluster.folders import LocalFolder
from openset.cluster.part_scorer import Options, PartScorer
from openset.cluster.plan import make_plan
from openset.cluster.records import Record, record_name


def make_scorer(problem_files, parts, out, options=None):
    return PartScorer(str(problem_files / "run"), str(parts), str(out), options or Options(), 17)


def test_scores_are_those_of_the_file_alone(problem_files, parts, tmp_path):
    out = tmp_path / "out"
    record = make_scorer(problem_files, parts, out, Options(carry=("width",)))(make_plan(parts).parts[2])
    answer = openset.score(
        problem_files / "run", parts / "part-2.parquet", tmp_path / "alone.parquet", carry="width"
    )
    assert (out / "part-2.parquet").read_bytes() == (tmp_path / "alone.parquet").read_bytes()
    assert (record.facts.rows, record.facts.called_novel) == (answer.rows, answer.called_novel)
    stored = Record.from_bytes((out / record_name("part-2.parquet")).read_bytes(), "it")
    assert stored.to_bytes() == record.to_bytes() and record.output.size == os.path.getsize(
        out / "part-2.parquet"
    )


def test_the_record_is_there_before_the_part(problem_files, parts, tmp_path, monkeypatch):
    seen, write = [], LocalFolder.write
    monkeypatch.setattr(
        LocalFolder, "write", lambda self, *given: (seen.append(sorted(self.files())), write(self, *given))
    )
    make_scorer(problem_files, parts, tmp_path / "out")(make_plan(parts).parts[0])
    assert len(seen) == 1 and all(name.startswith(".writing-") for name in seen[0])


def test_an_input_that_changes_while_it_is_scored_is_not_kept(problem_files, parts, tmp_path):
    part = make_plan(parts).parts[0]
    os.utime(parts / part.name, (1, 1))
    with pytest.raises(ValueError, match="part-0.parquet changed while it was scored: its scores are not kept"):
        make_scorer(problem_files, parts, tmp_path / "out")(part)
    assert LocalFolder(tmp_path / "out").files() == {}


def test_values_in_the_names_of_folders_are_columns(problem_files, parts, tmp_path):
    (parts / "town=Ulm").mkdir()
    (parts / "part-0.parquet").rename(parts / "town=Ulm" / "part-0.parquet")
    part = next(part for part in make_plan(parts).parts if "Ulm" in part.name)
    make_scorer(problem_files, parts, tmp_path / "out", Options(carry=("town",)))(part)
    scored = pd.read_parquet(tmp_path / "out" / "town=Ulm" / "part-0.parquet", partitioning=None)
    assert scored["town"].tolist() == ["Ulm"] * len(scored)


def test_an_error_names_the_url_and_not_the_copy(problem_files, on_s3):
    on_s3.put("bucket", "in/part-1.parquet", b"PAR1 is not enough")
    scorer = PartScorer(str(problem_files / "run"), "s3://bucket/in", "s3://bucket/out", Options(), 100)
    with pytest.raises(ValueError, match="s3://bucket/in/part-1.parquet is not a readable Parquet file"):
        scorer(make_plan("s3://bucket/in").parts[1])
    assert not any(key.startswith("out/") for key in on_s3.buckets["bucket"])
