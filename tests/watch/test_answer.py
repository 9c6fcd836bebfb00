"""What is said: one line a batch at 80 columns, words, and plain values."""

from __future__ import annotations

import json
from dataclasses import replace

from openset.pipeline.batch_answer import CalledShare
from openset.watch.answer import VERDICTS, Batch, evidence_text, finite, groups_over_time
from openset.watch.page import timeline_of


def test_one_line_a_batch_at_80_columns(watched):
    lines = watched.answer().table().splitlines()
    assert len(lines) == 9 and max(map(len, lines)) <= 80
    assert lines[0].split() == ["batch", "rows", "moved", "called", "new", "evidence", "groups"]
    assert lines[-1].startswith("week-8.parquet       400 yes ") and lines[-1].endswith("–  –")
    assert " !  1" in lines[7] and sum(line.endswith(" +1") for line in lines) == 1


def test_the_words_name_verdict_group_and_next_step(watched):
    text = watched.answer()()
    assert text.startswith("Verdict   new class noticed. The evidence reached 20 at week-")
    assert "Group     group 1:" in text and "Next      week-8.parquet moved." in text
    prose = [line for line in text.splitlines() if "openset fit" not in line]
    assert max(map(len, prose)) <= 80


def test_plain_values_for_programs(watched):
    content = json.loads(json.dumps(watched.answer().to_dict(), allow_nan=False))
    assert content["code"] in VERDICTS and content["word"] == "new class noticed"
    assert content["limit"] == 20 and content["error"] == 0.05 and len(content["batches"]) == 8
    assert content["batches"][5]["called_share"]["low"] < content["batches"][5]["called_share"]["high"]
    assert {"evidence", "moved", "counts", "groups", "cannot_tell"} <= content["batches"][0].keys()
    assert content["advice"]["command"].startswith("openset fit") and content["models"][0]["after"] == 0


def test_numbers():
    assert [evidence_text(value) for value in (0, 0.003, 5.55, 1234.0, 1e9)] == [
        "0",
        "0.003",
        "5.5",
        "1234",
        "1.0e+09",
    ]
    assert finite(float("inf")) < float("inf")


def test_a_group_has_its_share_of_the_rows_that_were_looked_at(watched):
    """A batch of 100 000 rows is fitted alone on 5000 of them, of which 500 are a group: a tenth."""
    record = watched.store.batches()[6]
    group = replace(record.groups[0], size=500, share=CalledShare(0.1, 0.09, 0.11, 0.95))
    large = Batch(replace(record, number=1, rows=100_000, groups=[group]), 1.0)
    groups = groups_over_time([large.record], {})
    answer = replace(watched.answer(), batches=[large], groups=groups, noticed_at=1)
    assert "group 1: 10.0 % of the rows (batch 1)" in answer()
    assert timeline_of(answer).groups[0].shares == (0.1,) and answer.to_dict()["groups"][0]["shares"] == {1: 0.1}


def test_no_cell_loses_what_it_says(watched):
    batch = watched.answer().batches[6]
    large = replace(batch, record=replace(batch.record, rows=12_345_678), evidence=1e250)
    line = replace(watched.answer(), batches=[large]).table().splitlines()[1]
    assert " 12M " in line and ">1e+99 !  1" in line and len(line) <= 80


def test_groups_without_batches():
    assert groups_over_time([], {}) == []
