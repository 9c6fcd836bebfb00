from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openset.review.queues import REST_FOR_ONE, estimate_order, make_list


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
