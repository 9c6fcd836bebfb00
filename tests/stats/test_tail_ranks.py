from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.tail_ranks import _POINTS, fit_tail_rank

SCORES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=80)


def by_counting(reference, scores):
    """Minus the log share of reference rows that score at least as high."""
    return np.array([-np.log(np.mean(np.asarray(reference) >= score)) for score in scores])


def test_a_rank_by_hand():
    rank = fit_tail_rank([1.0, 2.0, 2.0, 4.0])
    np.testing.assert_allclose(rank.apply([1, 2, 4]), -np.log([1, 3 / 4, 1 / 4]))
    halfway = (np.log(4 / 3) + np.log(4)) / 2
    np.testing.assert_allclose(rank.apply([3.0, -9.0]), [halfway, 0.0])
    assert rank.slope == pytest.approx(1 / np.std([1, 2, 2, 4]))
    assert rank.apply(6.0) == pytest.approx(np.log(4) + 2 * rank.slope)


@given(SCORES)
def test_at_the_reference_rows_it_is_the_share_that_scores_as_high(scores):
    found = fit_tail_rank(scores).apply(scores)
    np.testing.assert_allclose(found, by_counting(scores, scores), atol=1e-9)


@given(SCORES, SCORES)
def test_it_is_monotone_and_not_negative(reference, scores):
    ordered = np.sort(scores)
    ranks = fit_tail_rank(reference).apply(ordered)
    assert (ranks >= 0).all() and (np.diff(ranks) >= -1e-12).all()


@given(SCORES)
def test_rows_above_all_reference_rows_are_still_told_apart(reference):
    rank, top = fit_tail_rank(reference), max(reference)
    above = rank.apply(top + max(np.ptp(reference), 1.0) * np.array([0, 1, 2, 3]))
    assert (np.diff(above) > 0).all() and above[0] == pytest.approx(rank.heights[-1])


@given(SCORES, st.floats(0.01, 100), st.floats(-100, 100))
def test_unit_and_zero_of_a_score_do_not_count(reference, unit, zero):
    rows = np.round(np.asarray(reference), 2)
    scaled = fit_tail_rank(unit * rows + zero).apply(unit * rows + zero)
    np.testing.assert_allclose(scaled, fit_tail_rank(rows).apply(rows), atol=1e-9)


def test_many_scores_keep_the_highest_exactly_and_the_rest_nearly():
    scores = np.random.default_rng(0).normal(size=20_000)
    rank, exact = fit_tail_rank(scores), by_counting(np.sort(scores), np.sort(scores)[::50])
    assert len(rank.points) == len(rank.heights) <= _POINTS
    assert rank.points[[0, -1]].tolist() == [scores.min(), scores.max()]
    highest = np.sort(scores)[-_POINTS // 2 :]
    np.testing.assert_allclose(rank.apply(highest), by_counting(scores, highest), rtol=1e-12)
    np.testing.assert_allclose(rank.apply(np.sort(scores)[::50]), exact, atol=0.02)


def test_equal_scores_rank_alike_and_no_scores_are_refused():
    rank = fit_tail_rank([3.0, 3.0, 3.0])
    assert rank.apply([2.0, 3.0, 4.0]).tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="no scores to rank among"):
        fit_tail_rank([])


def test_a_missing_score_stays_missing():
    assert np.isnan(fit_tail_rank([1.0, 2.0]).apply([np.nan, 1.0])).tolist() == [True, False]
