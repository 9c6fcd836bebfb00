from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openset.review.queues import REASONS, REST_FOR_ONE, estimate_order, explore, make_list


@given(st.integers(0, 40), st.integers(0, 90), st.integers(0, 5))
def test_estimate_asks_for_every_row_once_and_for_the_strata_in_turn(n_listed, n_rest, seed):
    listed = np.arange(n_listed + n_rest) < n_listed
    order = estimate_order(listed, seed)
    assert sorted(order) == list(range(n_listed + n_rest))
    both = min(n_listed, n_rest // REST_FOR_ONE)
    turns = listed[order][: both * (REST_FOR_ONE + 1)].reshape(-1, REST_FOR_ONE + 1)
    assert turns[:, 0].all() and not turns[:, 1:].any()


def test_within_a_stratum_every_row_is_as_likely_to_come_first():
    listed = np.arange(12) < 4
    first = [estimate_order(listed, seed)[0] for seed in range(400)]
    assert np.bincount(first, minlength=12)[4:].sum() == 0
    assert np.bincount(first)[:4].min() > 70


def test_too_few_rows_called_new_make_no_list():
    score = np.arange(400.0)
    assert make_list(score, 100.0).sum() == 299
    assert make_list(score, 395.0).sum() == 20
    assert make_list(score, np.inf)[-20:].all()


def explored(n_rows=40, turns=10, medoids=(7,)):
    random = np.random.default_rng(0)
    logit, points, answered = (
        random.normal(size=n_rows) * 3,
        random.normal(size=(n_rows, 2)),
        np.zeros(n_rows, bool),
    )
    found = []
    for turn in range(turns):
        suggestion = explore(logit, points, answered, medoids, turn)
        if suggestion is None:
            break
        assert not answered[suggestion.row]
        answered[suggestion.row] = True
        found.append(suggestion)
    return found, logit, points


def test_explore_begins_with_a_group_and_asks_for_every_kind_of_row():
    found, logit, _ = explored()
    assert found[0].row == 7
    assert {suggestion.reason for suggestion in found} == set(REASONS.values())
    assert found[1].row == logit.argmax()


def test_explore_asks_for_every_row_once_and_then_for_none():
    found, _, _ = explored(turns=60)
    assert sorted(suggestion.row for suggestion in found) == list(range(40))


def test_far_rows_are_far_from_those_answered():
    logit, points = np.zeros(50), np.zeros((50, 1))
    points[:, 0] = np.arange(50)
    answered = np.arange(50) < 10
    assert explore(logit, points, answered, (), 6).row == 49
