from __future__ import annotations

import numpy as np
import pytest

from openset.stats.mixing import MOST_ROWS, mixing, other_rows


def kinds(seed, shares, n, *, groups=0, spread=0.3):
    """Rows of some kinds; with ``groups``, each row is of a tight group of its domain, such as a person."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(size=(len(shares), 5)) * 3
    rows = centres[random.choice(len(shares), size=n, p=shares)]
    if groups:
        own = random.normal(size=(groups, 5))
        rows = rows + own[random.integers(groups, size=n)]
    return rows + spread * random.normal(size=(n, 5))


@pytest.mark.parametrize("seed", range(3))
def test_kinds_that_became_more_or_less_common_mix(seed):
    source, target = kinds(seed, [0.8, 0.1, 0.1], 900), kinds(seed + 50, [0.1, 0.8, 0.1], 900)
    assert mixing(source, target) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_domains_with_groups_of_their_own_do_not_mix(seed):
    source, target = (kinds(seed + k, [0.4, 0.3, 0.3], 900, groups=40, spread=0.1) for k in (0, 50))
    assert mixing(source, target) < 0.7


def test_a_new_class_lowers_it_in_target_only():
    source = kinds(0, [0.4, 0.3, 0.3], 900)
    target = np.concatenate(
        [kinds(1, [0.4, 0.3, 0.3], 700), np.random.default_rng(2).normal(20, 1, size=(200, 5))]
    )
    assert mixing(source, target) > 0.9


def test_copies_of_a_row_count_once():
    rows = kinds(0, [0.5, 0.5], 400)
    once = mixing(rows[:200], rows[200:])
    assert mixing(np.repeat(rows[:200], 5, axis=0), rows[200:]) == pytest.approx(once, abs=0.15)


def test_domains_that_share_no_place_and_few_rows():
    rows = np.random.default_rng(0).normal(size=(200, 3))
    assert mixing(rows[:100], rows[100:] + 99) == 0
    assert mixing(rows[:5], rows[5:10]) == 1, "too few rows to tell"


def test_many_rows_are_thinned():
    rows = np.random.default_rng(0).normal(size=(2 * MOST_ROWS + 4000, 2))
    assert mixing(rows[: MOST_ROWS + 2000], rows[MOST_ROWS + 2000 :]) == pytest.approx(1, abs=0.05)


def test_the_nearest_other_rows_do_not_have_the_row_itself():
    rows = np.random.default_rng(0).normal(size=(30, 3))
    nearest = other_rows(rows, 10)
    assert nearest.shape == (30, 10) and not (nearest == np.arange(30)[:, None]).any()
    distances = np.linalg.norm(rows[:, None] - rows, axis=2) + np.diag(np.full(30, np.inf))
    np.testing.assert_array_equal(nearest, np.argsort(distances, axis=1)[:, :10])
    assert other_rows(rows[:4], 10).shape == (4, 3)


def test_copies_that_push_a_row_off_its_own_list_leave_as_many_neighbours():
    rows = np.concatenate([np.zeros((19, 2)), [[5.0, 5.0]]])
    nearest = other_rows(rows, 10)
    assert nearest.shape == (len(rows), 10) and not (nearest == np.arange(len(rows))[:, None]).any()
