from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.shift.draw import (
    Cell,
    Pools,
    Recipe,
    divide_all,
    divide_truncated,
    draw,
    generator,
    json_parameters,
    known_classes,
    make_pools,
)


def recipe(**changes):
    columns = {"label": np.repeat(["a", "b", "c"], 40), "subtype": np.tile(["x", "y"], 60)}
    given = {"columns": columns, "known": ["a", "b"], "novel": {"label": ["c"]}, "subtype": "subtype"}
    return Recipe(**{"name": "test", "seed": 0, "parameters": {}, "label": "label", **given, **changes})


@given(st.integers(0, 60), st.floats(0, 1), st.integers(0, 5))
def test_a_share_of_the_rows_is_rounded_and_no_row_is_lost(n, share, seed):
    rows = np.arange(100, 100 + n)
    first, second = divide_all(rows, share, generator(seed))
    assert len(first) == round(n * share)
    assert sorted([*first, *second]) == rows.tolist()


@given(st.integers(0, 60), st.integers(0, 100), st.integers(0, 5))
def test_truncation_loses_at_most_a_row(n, percent, seed):
    share = percent / 100
    first, second = divide_truncated(np.arange(n), share, generator(seed))
    assert (len(first), len(second)) == (int(n * share), int(n * (1 - share)))
    assert len({*first, *second}) == len(first) + len(second) >= n - 1


def test_pools_sort_rows_by_class_and_subtype():
    pools = make_pools(recipe(), test_fraction=0.25, random=generator(0))
    assert [(cell.label, cell.subtype) for cell in pools.known] == [(c, s) for c in "ab" for s in "xy"]
    first = pools.known[0]
    assert (len(first.train), len(first.test)) == (15, 5)
    assert sorted([*first.train, *first.test]) == list(range(0, 40, 2))
    assert (len(pools.novel.train), len(pools.novel.test)) == (30, 10)
    assert pools.duplicates == {"left_out": 0, "under_several_labels": 0}
    assert str(first) == "'x' of 'a'" and str(Cell("a", None, first.train, first.test)) == "'a'"


def test_of_equal_rows_one_stays_and_training_rows_come_first():
    columns = {
        "label": np.array(["a", "a", "a", "c", "c"]),
        "split": np.array(["test", "train", "train", "train", "test"]),
        "content": np.array([1, 1, 2, 3, 2]),
    }
    made = recipe(columns=columns, known=["a"], subtype=None)
    pools = make_pools(made, test_fraction=0.0, random=generator(0))
    (known,) = pools.known
    assert (known.train.tolist(), known.test.tolist()) == ([1, 2], [])
    assert (pools.novel.train.tolist(), pools.novel.test.tolist()) == ([3], [])
    assert pools.duplicates == {"left_out": 2, "under_several_labels": 1}


def test_every_cell_is_divided_by_its_share_and_novel_rows_are_added():
    made = recipe()
    pools = make_pools(made, test_fraction=0.5, random=generator(0))
    split = draw(made, pools, [0.2, 0.5, 0.7, 1.0], novel_size=lambda n, part: n // 2, random=generator(1))
    assert [cell["source"] for cell in split.manifest.proportions] == [2, 5, 7, 10]
    assert [cell["target"] for cell in split.manifest.proportions] == [8, 5, 3, 0]
    assert [cell["test_source"] for cell in split.manifest.proportions] == [2, 5, 7, 10]
    assert (split.label[split.target] == "novel").sum() == (split.label[split.test_target] == "novel").sum() == 10
    assert split.novel_fraction == 10 / 26 == split.manifest.test_novel_fraction


def test_the_number_of_novel_rows_follows_from_their_share():
    made = recipe(novel_fraction=0.2)
    pools = make_pools(made, test_fraction=0.0, random=generator(0))
    split = draw(made, pools, [0.5] * 4, novel_size=lambda n, part: n, random=generator(1))
    assert split.novel_fraction == 10 / 50 and split.manifest.test_novel_fraction is None
    with pytest.raises(
        ValueError, match="needs 60 novel rows beside the 40 known ones of target, but there are 40"
    ):
        draw(recipe(novel_fraction=0.6), pools, [0.5] * 4, novel_size=lambda n, part: n, random=generator(1))


@pytest.mark.parametrize(
    ("shares", "message"),
    [([0, 0, 0.5, 0.5], "no row of 'a' is in source"), ([1] * 4, "no known row is in target")],
)
def test_every_class_needs_source_rows_and_target_needs_known_rows(shares, message):
    made = recipe()
    pools = make_pools(made, test_fraction=0.0, random=generator(0))
    with pytest.raises(ValueError, match=message):
        draw(made, pools, shares, novel_size=lambda n, part: n, random=generator(1))


def test_known_classes_are_those_given_or_all_that_are_not_new():
    column = np.array(["b", "a", "c"])
    assert known_classes("label", column, None, ["c"]) == ["a", "b"]
    assert known_classes("label", column, ["b"], ["c"]) == ["b"]
    with pytest.raises(ValueError, match="'c' cannot be both known and novel"):
        known_classes("label", column, ["b", "c"], ["c"])
    with pytest.raises(ValueError, match="no class beside the novel one"):
        known_classes("label", column, [], ["c"])


@pytest.mark.parametrize("wrong", [{"test_fraction": 1.0}, {"test_fraction": -0.1}])
def test_a_test_fraction_out_of_range_is_named(wrong):
    with pytest.raises(ValueError, match="test_fraction="):
        make_pools(recipe(), **wrong, random=generator(0))


def test_a_split_column_has_train_and_test_only():
    columns = {**recipe().columns, "split": np.array(["train", "dev"] * 60)}
    with pytest.raises(ValueError, match="split holds 'dev': expected 'train' or 'test'"):
        make_pools(recipe(columns=columns), test_fraction=0.0, random=generator(0))


@pytest.mark.parametrize("wrong", [None, -1, 1.5, np.random.default_rng(0)])
def test_the_seed_is_an_integer(wrong):
    with pytest.raises(ValueError, match="random_state="):
        generator(wrong)


def test_parameters_become_json_data():
    given = {"a": np.float64(0.5), "b": (1, np.arange(2)), "c": {("x", "y"): 0.1}, "d": None}
    assert json_parameters(given) == {"a": 0.5, "b": [1, [0, 1]], "c": [[["x", "y"], 0.1]], "d": None}


def test_pools_without_known_cells_draw_nothing_known():
    made = recipe(known=[])
    novel = make_pools(recipe(), test_fraction=0.0, random=generator(0)).novel
    with pytest.raises(ValueError, match="no known row is in target"):
        draw(made, Pools([], novel, {}), [], novel_size=lambda n, part: n, random=generator(0))
