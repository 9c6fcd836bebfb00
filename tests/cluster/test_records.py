"""Records: what is written is read again, facts add up, and damage is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from openset.cluster.records import File, Record, joined_facts
from openset.features.table.apply import TableNotes
from openset.pipeline.batch_facts import BatchFacts
from openset.stats.ranges import Outside
from openset.stats.row_sample import draw_sample


def make_record(number, rows=100, size=40):
    random = np.random.default_rng(number)
    X = random.normal(size=(rows, 3)).astype(np.float16)
    outside = Outside(random.integers(0, 9, 3), X.min(axis=0).astype(float), X.max(axis=0).astype(float), rows)
    notes = TableNotes({"town": Counter({"Ulm": number})}, Counter({"a": 1}), Counter())
    facts = BatchFacts(rows, number, outside, draw_sample(X, np.arange(rows), size, seed=number + 1), notes)
    return Record("run", "id x", "rid", {"a": "number"}, True, File(3, "d", 7), File(4, "e"), facts), X


def test_a_record_is_read_as_it_was_written():
    record, _ = make_record(2)
    found = Record.from_bytes(record.to_bytes(), "here")
    assert found.to_bytes() == record.to_bytes()
    assert (found.id, found.input, found.output, found.kinds) == (
        "rid",
        File(3, "d", 7),
        File(4, "e"),
        {"a": "number"},
    )
    assert found.facts.notes == record.facts.notes and found.facts.sample.size == 40
    np.testing.assert_array_equal(found.facts.sample.rows, record.facts.sample.rows)
    assert found.facts.sample.rows.dtype == np.float16


def test_facts_of_parts_add_up():
    records, rows = zip(*(make_record(number, 50 * number, 20 + number) for number in (1, 2, 3)), strict=True)
    facts = joined_facts(records)
    assert (facts.rows, facts.called_novel) == (300, 6) and facts.outside.n_rows == 300
    assert facts.notes.unseen["town"]["Ulm"] == 6 and facts.notes.unusable["a"] == 3
    np.testing.assert_array_equal(facts.outside.high, np.concatenate(rows).max(axis=0))
    last = min(record.facts.sample.last_key for record in records)
    whole = [draw_sample(X, np.arange(len(X)), 500, seed=number + 1) for number, X in enumerate(rows, 1)]
    expected = sorted(key for sample in whole for key in sample.keys.tolist() if key <= last)
    assert facts.sample.keys.tolist() == expected  # every row whose key is small enough, and no other


def test_without_a_profile_there_is_no_sample():
    record, _ = make_record(1)
    plain = replace(record, facts=BatchFacts(5, 1))
    found = Record.from_bytes(plain.to_bytes(), "here")
    assert found.facts.outside is None and joined_facts([found, found]).sample is None


@pytest.mark.parametrize("cut", [0, 5, 200])
def test_damage_is_told(cut):
    content = make_record(1)[0].to_bytes()[:cut]
    with pytest.raises(ValueError, match="here is damaged .*delete it and the part"):
        Record.from_bytes(content, "here")
