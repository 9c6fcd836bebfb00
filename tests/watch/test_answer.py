"""What is said: one line a batch at 80 columns, words, and plain values."""

from __future__ import annotations

import json

from openset.watch.answer import VERDICTS, evidence_text, finite, groups_over_time


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


def test_groups_without_batches():
    assert groups_over_time([], {}) == []
