"""Fitted attributes to JSON and tensors, and back."""

from __future__ import annotations

import json
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from openset._utils.arrays import make_records
from openset.errors import ModelFormatError
from openset.learn.architecture import Architecture
from openset.persistence.codec import _DATACLASSES, _FORMER_NAMES, decode, encode
from openset.stats.scaling import Scaling
from openset.stats.shares import ShareEstimate


def round_trip(value):
    tensors = {}
    return decode(json.loads(json.dumps(encode(value, tensors, "v"))), tensors)


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, float("inf"), "text", (1, (2, "b")), [1, None], {"a": [1.0]}, np.float32(0.1)]
)
def test_plain_values_come_back(value):
    again = round_trip(value)
    assert again == value and type(again) is type(value)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5).filter(lambda key: not key.startswith("$")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_nested_values_come_back(value):
    assert round_trip(value) == value


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
)
def test_arrays_come_back_with_their_type_and_shape(value):
    again = round_trip(value)
    assert again.dtype == value.dtype and again.shape == value.shape
    np.testing.assert_array_equal(again, value)


def test_labels_come_back():
    for labels in (np.array(["ant", "béé"]), np.array(["a", 3, None], dtype=object)):
        again = round_trip(labels)
        assert again.tolist() == labels.tolist() and again.dtype == labels.dtype


def test_not_a_number_and_infinities_come_back():
    assert np.isnan(round_trip(float("nan"))) and round_trip(-float("inf")) == -float("inf")


def test_records_and_one_record_come_back():
    table = make_records(
        {"step": np.array([1, 2]), "fpr": np.array([0.5, 0.25]), "feasible": np.array([True, False])}
    )
    again = round_trip(table)
    assert again.dtype == table.dtype and (again == table).all() and again.fpr.tolist() == [0.5, 0.25]
    one = round_trip(table[1])
    assert one == table[1] and one.fpr == 0.25 and not one.feasible


def test_dataclasses_come_back_by_the_list_of_names():
    values = [
        ShareEstimate(0.2, 0.1, 0.3, 0.95, "mine"),
        Architecture({"shared": {"classes": 3}}, 8, 16, 0.2, members=2, kinds={"shared": "cells"}),
    ]
    assert round_trip(values) == values
    scaling = Scaling(np.zeros(3), np.ones(3), "feature")
    again = round_trip(scaling)
    assert type(again) is Scaling and again.rule == "feature" and again.factor.tolist() == [1, 1, 1]
    for name, module in _DATACLASSES.items():
        assert isinstance(getattr(import_module(module), name), type), "what is listed exists"


def test_former_names_are_read_as_those_of_today():
    tensors = {}
    written = encode(ShareEstimate(0.2, 0.1, 0.3, 0.95, "mine"), tensors, "v")
    assert decode({**written, "$dataclass": "ProportionEstimate"}, tensors) == ShareEstimate(
        0.2, 0.1, 0.3, 0.95, "mine"
    )
    assert set(_FORMER_NAMES.values()) <= set(_DATACLASSES) and not set(_FORMER_NAMES) & set(_DATACLASSES)


def test_arrays_go_to_tensors_under_their_path():
    tensors = {}
    assert encode({"w": [np.arange(3), 1]}, tensors, "weights_") == {"w": [{"$array": "weights_.w.0"}, 1]}
    assert list(tensors) == ["weights_.w.0"] and tensors["weights_.w.0"].tolist() == [0, 1, 2]


def test_what_cannot_be_brought_back_is_refused():
    for value in (object(), {1: 2}, np.array([object()]), {"$array": 1}, np.array([["a", "b"]]), {3, 4}):
        with pytest.raises(TypeError, match="cannot hold"):
            encode(value, {}, "here")
    with pytest.raises(TypeError, match="here.a.1 is a set, which a model folder cannot hold"):
        encode({"a": [1, {2}]}, {}, "here")


def test_nothing_that_a_file_names_is_imported():
    with pytest.raises(ModelFormatError, match="unknown type 'os.system'"):
        decode({"$dataclass": "os.system", "fields": {}}, {})
