from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.stats.column_checks import SEPARATED, largest_difference, odd_columns, powers_of_ten


def one(source, target):
    return odd_columns(np.asarray(source, float)[:, None], np.asarray(target, float)[:, None], ["c"])


def test_a_running_number_is_told_from_other_ranges():
    assert [c.kind for c in one(np.arange(300), np.arange(300, 500))] == ["number"]
    random = np.random.default_rng(0)
    assert [c.kind for c in one(random.normal(size=300), random.normal(40, 1, size=200))] == ["range"]
    codes = random.integers(5, size=300)
    assert [c.kind for c in one(codes, codes + 100)] == ["range"], "whole numbers that repeat are no ids"


def test_a_constant_that_changed():
    (found,) = one(np.full(50, 1.0), np.full(40, 2.0))
    assert (found.kind, found.source, found.target) == ("constant", (1, 1), (2, 2))
    assert one(np.full(50, 1.0), np.full(40, 1.0)) == []


@pytest.mark.parametrize("power", [-3, -1, 1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(5))
def test_another_unit_is_told_by_its_power(power, seed):
    random = np.random.default_rng(seed)
    for draw in (random.normal, random.standard_exponential, random.random):
        (found,) = one(draw(size=800), 10.0**power * draw(size=600))
        assert (found.kind, found.power) == ("unit", power)


@pytest.mark.parametrize("seed", range(5))
def test_a_shift_of_kinds_and_a_new_class_pass(seed):
    """A known kind that became 12 times as common, and 30 % of new rows far away."""
    random = np.random.default_rng(seed)
    source = np.concatenate([random.normal(size=920), random.normal(6, 1, size=80)])
    target = np.concatenate(
        [random.normal(size=30), random.normal(6, 1, size=670), random.normal(30, 1, size=300)]
    )
    assert one(source, target) == []


def test_heavy_tails_are_no_unit():
    random = np.random.default_rng(0)
    assert one(np.exp(2 * random.normal(size=900)), np.exp(2.5 * random.normal(size=900))) == []
    assert one(np.r_[np.zeros(900), 5, 7], np.r_[np.zeros(900), 5000, 9000]) == []


def test_the_largest_difference_is_that_of_scipy():
    from scipy.stats import ks_2samp

    random = np.random.default_rng(0)
    a, b = np.sort(random.integers(9, size=70) * 1.0), np.sort(random.integers(12, size=40) * 1.0)
    assert largest_difference(a, b) == pytest.approx(ks_2samp(a, b).statistic)


def test_a_column_without_spread_has_no_power():
    assert powers_of_ten(np.zeros((9, 1)), np.ones((9, 1))).tolist() == [0]


@given(st.integers(1, 80), st.integers(1, 80), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_the_quick_look_misses_no_column(n_source, n_target, digits, seed):
    """Columns of rounded numbers at random distances, against the difference of every column."""
    random = np.random.default_rng(seed)
    source = np.round(random.normal(size=(n_source, 6)), digits)
    target = np.round(random.normal(size=(n_target, 6)) + random.normal(scale=3, size=6), digits)
    found = odd_columns(source, target, [str(index) for index in range(6)])
    units = {column.name for column in found if column.kind == "unit"}
    apart = {
        str(index)
        for index in range(6)
        if largest_difference(np.sort(source[:, index]), np.sort(target[:, index])) >= SEPARATED
    }
    assert {column.name for column in found} - units == apart - units
