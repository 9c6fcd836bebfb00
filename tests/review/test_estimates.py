from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openset.review.estimates as module
from openset.review.estimates import Tally, _cost, estimate, new_class_evidence, purity_bound


@st.composite
def tallies(draw, most=14):
    size = draw(st.integers(1, most))
    answers = draw(st.integers(0, size))
    new = draw(st.integers(0, answers))
    unclear = draw(st.integers(0, answers - new))
    return Tally(size, new, answers - new - unclear, unclear, draw(st.sampled_from([0.01, 0.3, 0.8])))


def probability(tally, count):
    """Of the answers in their order, if ``count`` rows are new: row by row."""
    new, known, p = count, tally.size - count, 1.0
    for i in range(tally.new):
        p *= max(new - i, 0) / (tally.size - i)
    for i in range(tally.known):
        p *= max(known - i, 0) / (tally.size - tally.new - i)
    return p


def brute_force(listed, rest, level=0.05):
    """All pairs of counts whose e-values multiply to less than 1 / level."""

    def log_e(tally, count):
        p = probability(tally, count)
        return math.inf if p == 0 else module._mixture(tally.new, tally.known, tally.guess) - math.log(p)

    return [
        (a, b)
        for a, b in itertools.product(range(listed.size + 1), range(rest.size + 1))
        if log_e(listed, a) + log_e(rest, b) <= math.log(1 / level) + 1e-9
    ]


@given(tallies(), tallies())
def test_intervals_are_those_of_all_pairs_of_counts(listed, rest):
    listed, rest = (Tally(t.size, t.new, t.known, 0, t.guess) for t in (listed, rest))
    pairs, found = brute_force(listed, rest), estimate(listed, rest)
    totals = [a + b for a, b in pairs]
    size = listed.size + rest.size
    assert found.share.low == pytest.approx(min(totals) / size)
    assert found.share.high == pytest.approx(max(totals) / size)
    recalls = [a / (a + b) for a, b in pairs if a + b] or [1.0]
    assert found.recall.low == pytest.approx(min(recalls))
    assert found.recall.high == pytest.approx(max(recalls + [1.0] * ((0, 0) in pairs)))


@given(tallies(), tallies())
def test_a_row_without_an_answer_may_be_either(listed, rest):
    """Whatever the unclear rows are, the interval holds that of the answers they would have had."""
    found = estimate(listed, rest)
    for a, b in itertools.product(range(listed.unclear + 1), range(rest.unclear + 1)):
        clear = estimate(
            Tally(listed.size, listed.new + a, listed.known + listed.unclear - a, 0, listed.guess),
            Tally(rest.size, rest.new + b, rest.known + rest.unclear - b, 0, rest.guess),
        )
        for wide, narrow in (
            (found.share, clear.share),
            (found.precision, clear.precision),
            (found.recall, clear.recall),
        ):
            assert wide.low <= narrow.low + 1e-12 and narrow.high <= wide.high + 1e-12


@given(tallies(), tallies())
def test_an_interval_is_one(listed, rest):
    found = estimate(listed, rest)
    for interval in (found.share, found.precision, found.recall):
        assert 0 <= interval.low <= interval.value <= interval.high <= 1


def test_all_rows_labelled_leave_nothing_open():
    found = estimate(Tally(10, 8, 2), Tally(90, 2, 88))
    assert (found.share.low, found.share.high) == (0.1, 0.1)
    assert (found.precision.low, found.recall.high) == (0.8, 0.8)


def test_without_a_list_only_the_share_is_estimated():
    found = estimate(Tally(0), Tally(400, 20, 180))
    assert found.precision is None and found.recall is None
    assert 0.05 < found.share.low < 0.1 < found.share.high < 0.2


def test_of_many_rows_counts_are_spaced_and_rounded_outwards(monkeypatch):
    listed, rest = Tally(3000, 30, 9, 0, 0.8), Tally(16000, 2, 60, 0, 0.01)
    coarse = estimate(listed, rest)
    monkeypatch.setattr(module, "_MOST_COUNTS", 10**6)
    module._region.cache_clear()
    exact = estimate(listed, rest)
    module._region.cache_clear()
    for name in ("share", "precision", "recall"):
        wide, narrow = getattr(coarse, name), getattr(exact, name)
        assert narrow.low - 0.002 < wide.low <= narrow.low + 1e-12
        assert narrow.high - 1e-12 <= wide.high < narrow.high + 0.002


def test_the_e_value_of_the_truth_is_one_on_average():
    """Over all orders of drawing, exactly: so it exceeds 20 in at most one session of twenty (Ville)."""
    size, count, n = 9, 3, 5
    answers = [
        [row < count for row in order]
        for order in itertools.permutations(range(size), n)
    ]  # fmt: skip
    values = [
        math.exp(_cost(Tally(size, sum(a), n - sum(a), guess=0.2), np.array([float(count)]))[0]) for a in answers
    ]
    # sequences that are impossible for this count carry the rest of the mixture's probability
    assert 0.5 < np.mean(values) <= 1 + 1e-9


def test_sessions_miss_at_any_look_at_most_as_often_as_allowed():
    random, missed = np.random.default_rng(0), 0
    for _ in range(200):
        listed, rest = np.arange(60) < 40, np.arange(540) < 8
        random.shuffle(listed)
        random.shuffle(rest)
        outside = False
        for n in range(5, 60, 5):
            a, b = int(listed[:n].sum()), int(rest[:n].sum())
            share = estimate(Tally(60, a, n - a, 0, 0.8), Tally(540, b, n - b, 0, 0.01)).share
            outside |= not share.low <= 48 / 600 <= share.high
        missed += outside
    assert missed <= 10


def test_evidence_for_a_new_class_grows_with_new_rows_and_falls_with_known_ones():
    assert new_class_evidence(4, 6) > new_class_evidence(3, 7) > new_class_evidence(3, 30)
    assert new_class_evidence(20, 0, error_rate=0.1) < new_class_evidence(20, 0, error_rate=0.02)
    assert math.isfinite(new_class_evidence(10**5, 0))


@pytest.mark.parametrize("rate", [0.01, 0.02, 0.1])
def test_evidence_is_at_most_one_on_average_if_every_new_is_a_mistake(rate):
    n = 12
    mean = sum(
        math.comb(n, s) * rate**s * (1 - rate) ** (n - s) * new_class_evidence(s, n - s, rate)
        for s in range(n + 1)
    )
    assert mean == pytest.approx(1)


def test_purity_is_bounded_by_the_audit():
    assert purity_bound(12, 12, 60) > purity_bound(6, 6, 60) > purity_bound(6, 8, 60)
    assert purity_bound(60, 60, 60) == 1
