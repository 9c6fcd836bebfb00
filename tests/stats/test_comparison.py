from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from openset.stats.comparison import holm, shared_wins, signed_rank_test

small_numbers = st.lists(st.integers(-4, 4), min_size=1, max_size=9)


def brute_force(differences):
    """Every assignment of signs to the observed ranks."""
    d = np.array([x for x in differences if x != 0], float)
    if not len(d):
        return 1.0
    ranks = rankdata(np.abs(d))
    observed = ranks[d > 0].sum()
    sums = np.array([(ranks * signs).sum() for signs in product((0, 1), repeat=len(d))])
    return min(1.0, 2 * min((sums <= observed + 1e-9).mean(), (sums >= observed - 1e-9).mean()))


@given(small_numbers)
def test_signed_rank_equals_enumeration_under_ties(differences):
    assert signed_rank_test(differences, np.zeros(len(differences))) == pytest.approx(brute_force(differences))


@pytest.mark.parametrize("n", [3, 10, 30])
def test_signed_rank_equals_scipy_without_ties(n):
    random = np.random.default_rng(n)
    a, b = random.normal(0.3, size=n), random.normal(size=n)
    assert signed_rank_test(a, b) == pytest.approx(wilcoxon(a, b, method="exact").pvalue, rel=1e-12)
    assert signed_rank_test(a, b) == signed_rank_test(b, a)


def test_rounding_of_a_subtraction_makes_no_rank():
    a, b = np.array([0.3, 0.5, 0.9]), np.array([0.2, 0.4, 0.8])  # 0.1 three times, not quite the same in binary
    assert signed_rank_test(a, b) == 0.25


@pytest.mark.parametrize(
    ("a", "b", "message"), [([1, 2], [1], "same length"), ([1, np.nan], [1, 2], "must be finite")]
)
def test_signed_rank_rejects(a, b, message):
    with pytest.raises(ValueError, match=message):
        signed_rank_test(a, b)


def holm_by_definition(p):
    """Adjusted p = the smallest level at which Holm's procedure rejects the hypothesis."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted = [0.0] * len(p)
    for rank, i in enumerate(order):
        adjusted[i] = min(1.0, max((len(p) - k) * p[order[k]] for k in range(rank + 1)))
    return adjusted


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_equals_its_definition(p):
    adjusted = holm(p)
    assert adjusted.tolist() == pytest.approx(holm_by_definition(p))
    assert (adjusted >= np.array(p)).all()


def test_holm_rejects_what_is_no_probability():
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        holm([0.5, 1.5])


@given(st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.3, float("nan")]), min_size=3, max_size=3), max_size=6))
def test_wins_equal_a_plain_count(rows):
    table = np.array(rows).reshape(-1, 3)
    expected = [0, 0, 0]
    for row in rows:
        numbers = [v for v in row if v == v]
        for j, v in enumerate(row):
            expected[j] += v == v and v == max(numbers)
    assert shared_wins(table).tolist() == expected


def test_wins_need_a_table():
    with pytest.raises(ValueError, match="splits × methods"):
        shared_wins([1.0, 2.0])
