from __future__ import annotations

from dataclasses import asdict

from openset._utils.typed import read_as
from openset.stats.e_process import References, Tally
from openset.watch.records import Count, ModelRecord


def test_counts_and_thresholds_as_the_evidence_takes_them():
    assert Count(2, [1, 4], 100).tally(50) == Tally(50, (1, 4), 100)
    record = ModelRecord(0, 0, ["the run's target"], 10, [2.0, 1.0], 100, 0.01)
    assert record.references == References((2.0, 1.0), 100)


def test_a_record_comes_back_from_its_plain_values():
    record = ModelRecord(1, 4, ["a", "b"], 10, [2.0], 100, 0.01, limit="moved")
    assert read_as(ModelRecord, asdict(record), "a file") == record
