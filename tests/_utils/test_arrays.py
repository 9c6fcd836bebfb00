from __future__ import annotations

import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from openset._utils.arrays import (
    as_labels,
    as_objects,
    as_rows,
    is_missing,
    is_torch_tensor,
    make_records,
    resolve_novel_label,
    with_novel,
)


def test_tensors_become_arrays():
    tensor = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert is_torch_tensor(tensor) and not is_torch_tensor(np.eye(2))
    rows = as_rows(tensor, "X")
    assert isinstance(rows, np.ndarray) and rows.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert as_rows(tensor.bfloat16(), "X").dtype == np.float32  # numpy has no bfloat16


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_numbers_pass_unchanged(make):
    frame = make({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]})
    assert as_rows(frame, "X") is frame
    with pytest.raises(ValueError, match=r"X_target has columns that are not numbers: 'town' \(String\)"):
        as_rows(make({"a": [1, 2], "town": ["Rome", "Oslo"]}), "X_target")


def test_an_object_column_of_numbers_is_a_column_of_numbers():
    frame = pd.DataFrame({"a": np.array([1, 2.5], dtype=object)})
    assert as_rows(frame, "X") is frame
    with pytest.raises(ValueError, match=r"'a' \(Object\)"):
        as_rows(pd.DataFrame({"a": np.array([1, None, [2]], dtype=object)}), "X")


def test_five_columns_are_named_and_the_others_counted():
    frame = pd.DataFrame({f"c{i}": ["x"] for i in range(7)})
    with pytest.raises(ValueError, match=r"'c4' \(String\) and 2 more. Encode them"):
        as_rows(frame, "X")


@pytest.mark.parametrize(
    "y",
    [
        ["a", "b", "a"],
        np.array(["a", "b", "a"]),
        pd.Series(["a", "b", "a"]),
        pd.Series(["a", "b", "a"], dtype="category"),
        pl.Series(["a", "b", "a"]),
        pa.chunked_array([["a", "b"], ["a"]]),
    ],
)
def test_labels_of_every_library_are_an_array(y):
    labels = as_labels(y)
    assert isinstance(labels, np.ndarray) and labels.tolist() == ["a", "b", "a"]


def test_number_labels_keep_their_type():
    assert as_labels(torch.tensor([1, 2, 1])).dtype == np.int64
    assert as_labels([True, False]).dtype == bool
    assert as_labels([1.0, 2.0]).dtype == np.float64


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (["a", None, float("nan")], "y has 2 missing labels"),
        (pd.Series(["a", pd.NA], dtype="string"), "y has 1 missing labels"),
        ([1.0, np.nan], "contains NaN or infinity"),
        (np.array([1, "a"], dtype=object), r"mixes label types \(int, str\)"),
        ([[1, 2], [3, 4]], "1d array"),
        ([0.1, 0.2, 0.3], "continuous"),
    ],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        as_labels(y)


MISSING = [
    None,
    float("nan"),
    np.nan,
    np.float32("nan"),
    decimal.Decimal("NaN"),
    pd.NA,
    pd.NaT,
    np.datetime64("NaT"),
    np.timedelta64("NaT"),
]


@pytest.mark.parametrize("value", MISSING, ids=[f"{type(value).__name__} {value}" for value in MISSING])
def test_missing_values_of_every_library(value):
    assert is_missing(value) is True


@pytest.mark.parametrize(
    "value",
    [0, "", "nan", False, np.inf, [], [np.nan], np.array([1.0, np.nan]), pd.Timestamp(0), np.datetime64(0, "s")],
)
def test_values_that_are_not_missing(value):
    assert is_missing(value) is False


def test_the_novel_label_fits_the_classes():
    assert resolve_novel_label(None, np.array([0, 1])) == -1
    assert resolve_novel_label(None, np.array([0, 2.5], dtype=object)) == -1
    assert resolve_novel_label(None, np.array(["a", "b"])) == "novel"
    assert resolve_novel_label(None, np.array([True, False], dtype=object)) == "novel"
    assert resolve_novel_label(None, np.array([True, False])) == "novel"
    assert resolve_novel_label("other", np.array([0, 1])) == "other"


@pytest.mark.parametrize(
    ("classes", "novel", "dtype"),
    [
        (np.array(["a", "b"]), "novel", "<U5"),
        (np.array([1, 2], dtype=np.int8), -1, np.int64),
        (np.array([1, 2], dtype=np.uint64), -1, object),
        (np.array([0.5, 1.5], dtype=np.float32), -1, np.float32),
        (np.array([0.5, 1.5], dtype=np.float32), 0.1, np.float64),
        (np.array([True, False]), "novel", object),
        (np.array(["a", "b"]), -1, object),
        (np.array([1, 2]), (3, 4), object),
    ],
)
def test_classes_and_novel_label_stay_unchanged(classes, novel, dtype):
    joined = with_novel(classes, novel)
    assert joined.tolist() == [*classes.tolist(), novel]
    assert joined.dtype == dtype


@given(st.lists(st.none() | st.lists(st.integers(), max_size=3) | st.text(max_size=3), max_size=6))
def test_objects_are_one_dimensional(values):
    array = as_objects(values)
    assert array.shape == (len(values),) and array.dtype == object and array.tolist() == values


def test_records_have_columns_by_name_and_rows_by_index():
    columns = {"step": np.array([5, 6]), "fpr": np.array([0.5, 0.25]), "chosen": np.array([False, True])}
    table = make_records(columns)
    assert table.dtype.names == ("step", "fpr", "chosen") and len(table) == 2
    for name, column in columns.items():
        assert table[name].dtype == column.dtype and np.array_equal(getattr(table, name), column)
    assert (table[1].step, table[1].fpr, table[1].chosen) == (6, 0.25, True)
