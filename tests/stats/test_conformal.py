from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, false_discovery_control

from openset.stats.conformal import (
    benjamini_hochberg,
    cross_conformal_p_values,
    largest_p_value,
    rows_for_threshold_after_choice,
    threshold_after_choice,
)
from openset.stats.thresholds import conformal_p_values


def test_one_member_is_plain_conformal():
    random = np.random.default_rng(0)
    held, scores = random.normal(size=50), random.normal(size=20)
    assert np.array_equal(cross_conformal_p_values([held], scores[None]), conformal_p_values(held, scores))


def test_cross_conformal_p_values_are_hardly_ever_too_small():
    """Members that differ in scale, fitted on rows: the mean of four fifths, as in a cross-fit."""
    random, seen = np.random.default_rng(1), []
    for _ in range(300):
        rows, fresh = random.normal(size=(100, 3)), random.normal(size=(20, 3))
        folds = np.arange(100) % 5
        centres = [rows[folds != k].mean(axis=0) for k in range(5)]

        def score(x, k, centres=centres):
            return (1 + k) * np.linalg.norm(x - centres[k], axis=1)

        held = [score(rows[folds == k], k) for k in range(5)]
        seen.append(cross_conformal_p_values(held, np.stack([score(fresh, k) for k in range(5)])))
    p = np.concatenate(seen)
    for level in (0.05, 0.1, 0.3):
        assert (p <= level).mean() <= level * 1.15


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


def test_the_false_discovery_rate_holds_without_shift_and_with_it_if_it_is_told():
    random = np.random.default_rng(3)
    wrong = {(1, 1): [], (12, 1): [], (12, 12): []}
    for _ in range(200):
        for true, told in wrong:
            rare = 0.02
            held = random.normal(size=1000) + 3 * (random.random(1000) < rare)
            known = random.normal(size=270) + 3 * (random.random(270) < true * rare)
            p = conformal_p_values(held, np.append(known, random.normal(6, 1, size=30)))
            found = benjamini_hochberg(p, 0.2, max_density_ratio=told)
            wrong[true, told].append(found[:270].sum() / max(found.sum(), 1))
    means = {key: np.mean(values) for key, values in wrong.items()}
    assert means[1, 1] < 0.2 and means[12, 12] < 0.2 < means[12, 1]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=80), st.sampled_from([0.05, 0.1, 0.3]))
def test_the_limit_from_counts_is_benjamini_and_hochbergs(ranks, fdr):
    p = np.array(ranks) / 50
    for ratio in (1, 3):
        expected = false_discovery_control(np.minimum(1, ratio * p)) <= fdr * (1 + 1e-12)
        values, counts = np.unique(p, return_counts=True)
        limit = largest_p_value(values[::-1], counts[::-1], fdr * (1 + 1e-12), max_density_ratio=ratio)
        assert ((p <= limit) == expected).all()
        assert (benjamini_hochberg(p, fdr * (1 + 1e-12), max_density_ratio=ratio) == expected).all()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="expected \\(members, rows\\)"):
        cross_conformal_p_values([[1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="at least one"):
        threshold_after_choice([], 0.1)
    with pytest.raises(ValueError, match="fdr"):
        benjamini_hochberg([0.1], 1.5)
    assert len(benjamini_hochberg([], 0.1)) == 0


@pytest.mark.parametrize(("fpr", "heads"), [(0.01, 360), (0.05, 1), (0.2, 40)])
def test_as_many_rows_as_are_said_keep_the_rate_and_one_less_does_not(fpr, heads):
    n = rows_for_threshold_after_choice(fpr, n_compared=heads)
    enough, fewer = (threshold_after_choice(range(rows), fpr, n_compared=heads) for rows in (n, n - 1))
    assert enough.is_met and not fewer.is_met
