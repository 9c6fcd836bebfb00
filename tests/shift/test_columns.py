from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset.errors import ManifestError
from openset.shift.columns import as_array, as_columns, as_values, matches, open_set_labels, require, same_columns
from openset.shift.manifest import column_checksum


def test_columns_are_arrays_of_one_length_and_none_is_left_out():
    columns = as_columns(label=["a", "b"], subtype=None, score=np.array([1, 2], np.int8))
    assert list(columns) == ["label", "score"]
    assert columns["label"].tolist() == ["a", "b"] and columns["score"].dtype == np.int8


def test_bytes_become_texts_and_objects_stay_objects():
    columns = as_columns(raw=np.array([b"a", b"b"]), mixed=np.array([1, 2.5], dtype=object))
    assert columns["raw"].tolist() == ["a", "b"] and columns["raw"].dtype.kind == "U"
    assert columns["mixed"].tolist() == [1, 2.5] and columns["mixed"].dtype == object


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"label": ["a"], "score": [1, 2]},
            "differ in length: label has 1, score has 2. Each needs one value per row",
        ),
        ({"label": []}, "label is empty"),
        ({"label": [["a", "b"]]}, "label has shape .1, 2.: expected one value per row"),
        ({"label": ["a", 3]}, "label holds int, str: expected texts in all rows, or numbers in all rows"),
        ({"label": [{}, {}]}, "label holds dict: expected texts"),
        ({"label": ["a", None, None]}, "label has 2 missing values"),
        ({"score": [1.0, np.nan, np.inf]}, "score has 2 missing values"),
    ],
)
def test_bad_columns_are_named(columns, message):
    with pytest.raises(ValueError, match=message):
        as_columns(**columns)


def test_a_number_among_texts_stays_a_number():
    assert as_array(["a", 3]).tolist() == ["a", 3]
    assert as_array([1, 2]).dtype.kind == "i"


def test_a_number_never_equals_its_text():
    texts, numbers = np.array(["1", "2"]), np.array([1, 2])
    assert np.isin(texts, as_values(texts, [1])).tolist() == [False, False]
    assert np.isin(numbers, as_values(numbers, ["1"])).tolist() == [False, False]
    assert np.isin(numbers, as_values(numbers, [2.0])).tolist() == [False, True]
    assert np.isin(texts, as_values(texts, ["2"])).tolist() == [False, True]
    assert len(as_values(numbers, [])) == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), min_size=1, max_size=20))
def test_a_row_matches_where_every_column_has_a_listed_value(rows):
    letters, digits = (np.array(values) for values in zip(*rows, strict=True))
    found = matches({"letter": letters, "digit": digits}, {"letter": ["a", "c"], "digit": [0, 2]})
    assert found.tolist() == [letter in "ac" and digit in (0, 2) for letter, digit in rows]


def test_required_values_come_back_plain_and_missing_ones_are_named():
    found = require("digit", np.array([1, 2, 3]), [np.int64(2)])
    assert found == [2] and type(found[0]) is int
    with pytest.raises(ValueError, match="digit has no rows of 4, 5: it holds 1, 2, 3"):
        require("digit", np.array([1, 2, 3]), [4, 2, 5])
    with pytest.raises(ValueError, match="it holds 0, 1, 10, 11, .*, …"):
        require("digit", np.arange(20), [99])


def test_the_novel_label_follows_the_classes_and_must_not_be_one_of_them():
    is_novel = np.array([False, False, True])
    labels, novel = open_set_labels(np.array(["a", "bb", "c"]), is_novel, None)
    assert labels.tolist() == ["a", "bb", "novel"] and novel == "novel"
    labels, novel = open_set_labels(np.array([4, 5, 6]), is_novel, None)
    assert labels.tolist() == [4, 5, -1] and novel == -1
    assert open_set_labels(np.array(["a", "b", "c"]), is_novel, "c")[0].tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="novel_label='a' is one of the classes"):
        open_set_labels(np.array(["a", "b", "c"]), is_novel, "a")


def test_columns_are_compared_by_name_and_checksum():
    columns = {"label": np.array(["a", "b"])}
    checksums = {"label": column_checksum(["a", "b"])}
    same_columns(columns, checksums)
    with pytest.raises(ManifestError, match="column label is not the one the manifest was made from"):
        same_columns({"label": np.array(["b", "a"])}, checksums)
    with pytest.raises(ManifestError, match="made from the columns label, but got none"):
        same_columns({}, checksums)
