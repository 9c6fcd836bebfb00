from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from openset.shift import content as module
from openset.shift import content_keys
from openset.shift.content import first_of_each


@given(arrays(np.int8, st.tuples(st.integers(0, 30), st.integers(1, 3)), elements=st.integers(0, 2)))
def test_keys_are_equal_exactly_where_rows_are(rows):
    keys = content_keys(rows)
    equal = (rows[:, None] == rows[None]).all(axis=2)
    assert np.array_equal(keys[:, None] == keys[None], equal)


@given(st.lists(st.text(max_size=3), max_size=20))
def test_keys_of_texts(texts):
    keys = content_keys(np.array(texts, dtype=object))
    assert [[a == b for b in keys] for a in keys] == [[a == b for b in texts] for a in texts]


def test_blocks_change_nothing(monkeypatch, tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 4, 2)).astype(np.float32)
    whole = content_keys(X)
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr(module, "_CELLS", 24)
    assert np.array_equal(content_keys(np.load(tmp_path / "x.npy", mmap_mode="r")), whole)
    assert np.array_equal(content_keys(X.astype(">f4")), whole)


def test_signed_zeros_are_equal():
    a, b = content_keys(np.array([[0.0, 1.0], [-0.0, 1.0]]))
    assert a == b


@pytest.mark.parametrize("wrong", [np.arange(3), ["a", None], ["a", 1], np.array([["a"]]), 3])
def test_what_has_no_content_is_refused(wrong):
    with pytest.raises(ValueError, match="X "):
        content_keys(wrong)


def test_the_first_usable_row_stays_and_later_ones_give_way():
    content = np.array(["a", "a", "b", "b", "c", "c"])
    usable = np.array([0, 1, 1, 1, 1, 0], bool)
    later = np.array([0, 0, 1, 0, 1, 0], bool)
    assert first_of_each(content, usable, later).tolist() == [False, True, False, True, True, False]
