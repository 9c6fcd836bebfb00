from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from openset.stats.thresholds import (
    conformal_threshold,
    rows_for_threshold_after_choice,
    share_above,
    threshold_after_choice,
)

finite = st.floats(-100, 100).map(lambda v: round(v, 3))


@given(st.lists(finite, min_size=1, max_size=60), st.floats(0.01, 0.5))
def test_the_rate_holds_for_an_exchangeable_row(scores, fpr):
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


@pytest.mark.parametrize("threshold", [conformal_threshold, threshold_after_choice])
def test_no_rows_are_refused(threshold):
    with pytest.raises(ValueError, match="no source validation rows: a threshold needs at least one"):
        threshold([], 0.1)


def test_the_share_above_is_strict():
    assert share_above([1.0, 2.0, 2.0, 3.0], 2.0) == 0.25
    assert np.isnan(share_above([], 0.0))


@given(st.integers(1, 400), st.floats(0.01, 0.4), st.integers(1, 10))
def test_the_threshold_is_the_smallest_that_clopper_pearson_allows(n, fpr, heads):
    found = threshold_after_choice(np.arange(n), fpr, n_compared=heads)

    def limit(above):
        return binomtest(above, n).proportion_ci(1 - 2 * 0.05 / heads, method="exact").high

    above = int((np.arange(n) > found.value).sum())
    if found.is_met:
        assert limit(above) <= fpr + 1e-9
        assert above + 1 == n or limit(above + 1) > fpr - 1e-9
    else:
        assert above == 0 and found.kept == pytest.approx(limit(0)) and found.kept > fpr


def test_the_rate_holds_for_the_head_that_looked_best():
    random, n, heads, fpr = np.random.default_rng(2), 1000, 10, 0.05
    broken = 0
    for _ in range(200):
        scores = random.random((n, heads))  # the true rate above t is 1 − t
        lowest = min(threshold_after_choice(scores[:, h], fpr, n_compared=heads).value for h in range(heads))
        broken += 1 - lowest > fpr
    assert broken <= 18  # level .05 of 200: more has a chance of 1 in 200


@pytest.mark.parametrize(("fpr", "heads"), [(0.01, 360), (0.05, 1), (0.2, 40)])
def test_the_fewest_rows_keep_the_rate_and_one_less_does_not(fpr, heads):
    n = rows_for_threshold_after_choice(fpr, n_compared=heads)
    enough, fewer = (threshold_after_choice(range(rows), fpr, n_compared=heads) for rows in (n, n - 1))
    assert enough.is_met and not fewer.is_met


@pytest.mark.parametrize(("option", "bad"), [("n_compared", 0), ("confidence", 1.0)])
def test_bad_options_are_named(option, bad):
    with pytest.raises(ValueError, match=f"{option}={bad}"):
        threshold_after_choice([1.0], 0.1, **{option: bad})
