from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.thresholds import conformal_threshold, rank_log_odds, share_above

finite = st.floats(-100, 100).map(lambda v: round(v, 3))


@given(st.lists(finite, min_size=1, max_size=60), st.floats(0.01, 0.5))
def test_the_promise_holds_for_an_exchangeable_row(scores, fpr):
    """Leave each row out in turn: on average at most ``fpr`` of them exceed the threshold of the others."""
    scores = np.array(scores)
    if len(scores) < 2:
        return
    thresholds = [conformal_threshold(np.delete(scores, i), fpr) for i in range(len(scores))]
    exceeded = np.mean([scores[i] > t.value for i, t in enumerate(thresholds)])
    assert exceeded <= max(fpr, thresholds[0].kept) + 1e-9


def test_the_level_is_kept_on_fresh_rows_on_average():
    random = np.random.default_rng(0)
    rates = [
        share_above(random.normal(size=2000), conformal_threshold(random.normal(size=199), 0.05).value)
        for _ in range(400)
    ]
    assert np.mean(rates) == pytest.approx(0.05, abs=0.003)


def test_too_few_rows_give_the_largest_score_and_the_level_kept():
    threshold = conformal_threshold([3.0, 1.0, 2.0], 0.01)
    assert (threshold.value, threshold.kept, threshold.is_met) == (3.0, 0.25, False)
    with pytest.raises(ValueError, match="no held-out source rows"):
        conformal_threshold([], 0.01)


@given(st.lists(finite, min_size=1, max_size=30), st.lists(finite, min_size=2, max_size=30, unique=True))
def test_ranks_keep_the_order_within_and_beyond_the_reference(reference, scores):
    ordered = np.sort(scores)
    ranked = rank_log_odds(reference, ordered)
    assert np.isfinite(ranked).all()
    assert (np.diff(ranked) > 0).all() or len(set(reference)) == 1


def test_ranks_are_log_odds_of_the_share_below():
    reference = np.arange(1, 100)  # 99 rows
    assert rank_log_odds(reference, [50])[0] == pytest.approx(0)
    assert rank_log_odds(reference, [99])[0] == pytest.approx(np.log(99))
