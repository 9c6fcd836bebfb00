"""Scored rows as a table."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openset
from openset.pipeline.scored_table import assumed_ratio, class_columns, predictions
from openset.stats.bounded_shift import Counts
from openset.stats.novelty import NoveltyTest
from product_files import make_rows


def test_a_closed_set_model_scores_no_table():
    X, y = make_rows(np.random.default_rng(0), {"cat": 60, "dog": 60})
    with pytest.raises(ValueError, match="without a target"):
        predictions(openset.KNN().fit(X, y), X)


@given(st.lists(st.sampled_from(["a", "value", "value_", "novel", "", "0"]), max_size=8))
def test_columns_of_classes_are_never_those_of_the_table(labels):
    names = class_columns(labels)
    assert len(set(names)) == len(names) == len(labels)
    assert not {"p_value", "p_novel"} & set(names)
    assert all(name.startswith(f"p_{label}") for name, label in zip(names, labels, strict=True))


def test_rows_are_taken_in_the_order_asked_for(result):
    taken = result.scored.take(np.array([7, 3]))
    assert taken.id.tolist() == ["t7", "t3"] and taken.probabilities.shape == (2, 3)
    assert taken.to_frame("polars")["novelty_score"].to_list() == result.scored.novelty_score[[7, 3]].tolist()
    with pytest.raises(ValueError, match="backend='r'"):
        taken.to_frame("r")


def test_the_ratio_is_as_told_else_the_methods_else_one():
    fitted = SimpleNamespace(max_density_ratio="auto", novelty_test_=NoveltyTest(1.0, 5.2, Counts(0, 9, 0, 9)))
    assert assumed_ratio(fitted, 3) == 3.0 and assumed_ratio(fitted, None) == 5.2
    assert assumed_ratio(openset.PaperCoLOR(), None) == 12.0
    assert assumed_ratio(openset.KNN(), None) == 1.0
