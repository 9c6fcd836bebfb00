from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.data.readers.records import Records
from openset.features.maker import MadeFeatures
from openset.features.table.apply import TableNotes
from openset.pipeline.batch_facts import FactCounter
from openset.pipeline.fit_profile import make_profile
from openset.problem import Predictions

RNG = np.random.default_rng(0)
FIT, ROWS = RNG.normal(size=(60, 3)), RNG.normal(size=(1500, 3)) * 2
NOVEL = RNG.random(1500) < 0.2
RECORDS = Records(np.arange(60))


def made(X, names=("a", "b", "c"), **notes):
    """Features as a table has them; those without names were encoded."""
    return MadeFeatures(X, X if names else None, names, TableNotes(**notes))


def predicted(is_novel):
    index = np.where(is_novel, 2, 0)
    scores = np.zeros(len(index))
    return Predictions(np.array(["cat", "dog", "novel"]), index, index, scores, scores[:, None])


def counted(cuts, *, names=("a", "b", "c")):
    counter = FactCounter(make_profile(made(FIT, names), made(FIT, names), RECORDS, RECORDS))
    for part in np.split(np.arange(len(ROWS)), cuts):
        if len(part):
            counter.add(counter.facts_of(made(ROWS[part], names), predicted(NOVEL[part]), part))
    return counter.facts


def test_rows_calls_and_rows_outside_are_counted():
    facts = counted([])
    assert (facts.rows, facts.called_novel) == (1500, NOVEL.sum())
    is_outside = (FIT.min(axis=0) > ROWS) | (FIT.max(axis=0) < ROWS)
    np.testing.assert_array_equal(facts.outside.counts, is_outside.sum(axis=0))
    assert len(facts.sample.rows) == 500
    assert counted([], names=()).outside is None and counted([], names=()).sample is not None


@given(st.lists(st.integers(0, 1500), max_size=6))
def test_facts_do_not_depend_on_how_the_batch_is_cut(cuts):
    whole, parts = counted([]), counted(sorted(cuts))
    assert (parts.rows, parts.called_novel) == (whole.rows, whole.called_novel)
    np.testing.assert_array_equal(parts.outside.counts, whole.outside.counts)
    np.testing.assert_array_equal(
        [parts.outside.low, parts.outside.high], [whole.outside.low, whole.outside.high]
    )
    np.testing.assert_array_equal(parts.sample.rows, whole.sample.rows)


def test_facts_that_were_found_in_threads_before_others_were_added_are_the_same():
    counter, parts = (
        FactCounter(make_profile(made(FIT), made(FIT), RECORDS, RECORDS)),
        np.split(np.arange(1500), 6),
    )
    found = [counter.facts_of(made(ROWS[part]), predicted(NOVEL[part]), part) for part in parts]
    for facts in found:
        counter.add(facts)
    np.testing.assert_array_equal(counter.facts.sample.rows, counted([]).sample.rows)


def test_without_a_profile_rows_and_calls_are_counted():
    counter = FactCounter(None)
    for part in (slice(0, 700), slice(700, 1500)):
        counter.add(counter.facts_of(made(ROWS[part]), predicted(NOVEL[part]), np.arange(1500)[part]))
    assert (counter.facts.rows, counter.facts.called_novel) == (1500, NOVEL.sum())
    assert counter.facts.outside is None and counter.facts.sample is None


def test_values_are_compared_in_their_own_units_and_samples_are_features():
    scaled, values = (FIT - 5) * 10, FIT * 1000
    fit = MadeFeatures(scaled, values, ("a", "b", "c"))
    counter = FactCounter(make_profile(fit, fit, RECORDS, RECORDS))
    batch = MadeFeatures(scaled[:5], np.where(np.arange(5)[:, None] == 3, 9999.0, values[:5]), fit.names)
    facts = counter.facts_of(batch, predicted(NOVEL[:5]), np.arange(5))
    assert facts.outside.counts.tolist() == [1, 1, 1] and facts.outside.high.tolist() == [9999.0] * 3
    np.testing.assert_array_equal(np.sort(facts.sample.rows, axis=0), np.sort(scaled[:5], axis=0))


@pytest.mark.parametrize("profile", [None, make_profile(made(FIT), made(FIT), RECORDS, RECORDS)])
def test_the_notes_of_all_parts_are_joined(profile):
    counter = FactCounter(profile)
    for part, notes in (
        (slice(0, 700), {"unseen": {"town": Counter(Ulm=2)}, "missing": Counter(a=1)}),
        (slice(700, 1500), {"unseen": {"town": Counter(Ulm=1, Bonn=5)}, "unusable": Counter(b=4)}),
    ):
        rows = made(ROWS[part], **notes)
        counter.add(counter.facts_of(rows, predicted(NOVEL[part]), np.arange(1500)[part]))
    notes = counter.facts.notes
    assert notes.unseen == {"town": Counter(Ulm=3, Bonn=5)}
    assert (notes.unusable, notes.missing) == (Counter(b=4), Counter(a=1))


def test_without_a_row_there_are_no_facts():
    with pytest.raises(AssertionError):
        _ = FactCounter(None).facts
