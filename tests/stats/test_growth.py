from __future__ import annotations

import warnings

import numpy as np
import pytest

from openset.stats.growth import largest_growth

KINDS = 8 * np.eye(5)


def rows(seed, shares, n=1500):
    random = np.random.default_rng(seed)
    return KINDS[random.choice(5, size=n, p=shares)] + random.normal(size=(n, 5))


EVEN = [0.2] * 5


@pytest.mark.parametrize("seed", range(3))
def test_rows_drawn_alike_show_little_growth(seed):
    assert largest_growth(rows(seed, EVEN), rows(seed + 10, EVEN)) < 2.5


@pytest.mark.parametrize("seed", range(3))
def test_a_kind_that_became_ten_times_as_common_is_seen(seed):
    source, target = rows(seed, [0.04, 0.24, 0.24, 0.24, 0.24]), rows(seed + 10, [0.4, 0.15, 0.15, 0.15, 0.15])
    assert 6 < largest_growth(source, target) < 14


def test_new_rows_far_from_source_do_not_count():
    target = np.concatenate([rows(1, EVEN, 700), np.full((700, 5), 20.0)])
    assert largest_growth(rows(0, EVEN), target) < 2


def test_fewer_distinct_rows_than_clusters_are_no_reason_to_warn():
    levels = np.random.default_rng(0).integers(0, 2, (1500, 2)).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert largest_growth(levels, levels[::-1]) == pytest.approx(1, abs=0.1)


def test_few_rows_are_one_cluster():
    assert largest_growth(rows(0, EVEN, 20), rows(1, EVEN, 20)) == pytest.approx(1, abs=0.3)
    assert largest_growth(rows(0, EVEN, 4), rows(1, EVEN, 20)) == 1, "too few to tell"
