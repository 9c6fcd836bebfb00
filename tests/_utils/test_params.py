from __future__ import annotations

import inspect
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openset._utils.params import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
    check_numbers,
    fitted_attributes,
    takes_parameters_of,
)


@pytest.mark.parametrize("value", [1, 5, np.int64(3)])
def test_integers(value):
    check_integer("n", value)


@pytest.mark.parametrize("value", [0, -1, 1.0, "1", True, None, np.nan])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(ValueError, match=r"^n=.* is not valid: expected an integer of at least 1\.$"):
        check_integer("n", value)


def test_none_where_it_is_allowed():
    check_integer("n", None, optional=True)
    check_number("x", None, optional=True)
    with pytest.raises(ValueError, match=r"expected a number in \[0, 1\] or None\.$"):
        check_number("x", 2, high=1, optional=True)


@given(st.floats(), st.booleans(), st.booleans())
def test_numbers_in_an_interval(value, open_low, open_high):
    inside = math.isfinite(value) and (
        (value > 0 if open_low else value >= 0) and (value < 1 if open_high else value <= 1)
    )
    if inside:
        check_number("x", value, high=1.0, open_low=open_low, open_high=open_high)
        return
    interval = rf"\{'(' if open_low else '['}0, 1\{')' if open_high else ']'}\."
    with pytest.raises(ValueError, match=interval):
        check_number("x", value, high=1.0, open_low=open_low, open_high=open_high)


@pytest.mark.parametrize("value", [True, "1", None, 1j, math.nan, math.inf])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(ValueError, match=r"expected a number in \[0, inf\)\."):
        check_number("x", value)


def test_lists_of_numbers():
    check_numbers("grid", [0.1, 0.5], "some recalls", high=1.0)
    check_numbers("grid", np.array([0.1]), "some recalls", high=1.0)
    for bad in ([], "0.5", 0.5, None):
        with pytest.raises(ValueError, match="grid=.* is not valid: expected some recalls."):
            check_numbers("grid", bad, "some recalls")
    for bad in (0, 1.0, "a"):
        with pytest.raises(ValueError, match="grid entry="):
            check_numbers("grid", [0.5, bad], "some recalls", high=1.0)


def test_choices():
    check_choice("mode", "a", ["a", "b"])
    check_choice("mode", None, ["a", None])
    for bad in ("c", 1, None):
        with pytest.raises(ValueError, match="mode=.* is not valid: expected one of 'a', True."):
            check_choice("mode", bad, ["a", True])


def test_flags():
    check_flag("verbose", True)
    check_flag("verbose", False)
    for bad in (1, 0, None, "yes"):
        with pytest.raises(ValueError, match="expected True or False"):
            check_flag("verbose", bad)


class Plain:
    def __init__(self, *, size=1, weight=0.5):
        self.size, self.weight = size, weight


class Coloured(Plain):
    @takes_parameters_of(Plain, size=2)
    def __init__(self, *, colour="red", **shared):
        super().__init__(**shared)
        self.colour = colour


def test_a_subclass_shows_and_takes_its_parents_parameters():
    assert str(inspect.signature(Coloured)) == "(*, colour='red', size=2, weight=0.5)"
    assert vars(Coloured()) == {"colour": "red", "size": 2, "weight": 0.5}
    assert vars(Coloured(weight=1, size=3)) == {"colour": "red", "size": 3, "weight": 1}
    with pytest.raises(TypeError, match="Coloured has no parameter 'color'. Did you mean 'colour'?"):
        Coloured(color="blue")
    with pytest.raises(TypeError, match="Coloured has no parameter 'zzz'.$"):
        Coloured(zzz=1)


class Shaped(Plain):
    @takes_parameters_of(Plain)
    def __init__(self, *, shape="round", **shared):
        super().__init__(**shared)
        self.shape = shape


class Both(Shaped):
    @takes_parameters_of(Shaped, Plain, former={"radius": "Use size."})
    def __init__(self, *, colour="red", **shared):
        super().__init__(**shared)
        self.colour = colour


def test_parameters_may_come_from_several_parents():
    assert str(inspect.signature(Both)) == "(*, colour='red', shape='round', size=1, weight=0.5)"
    assert vars(Both(shape="flat", size=2)) == {"colour": "red", "shape": "flat", "size": 2, "weight": 0.5}


def test_a_former_parameter_says_what_to_use_instead():
    with pytest.raises(TypeError, match=r"^Both has no parameter 'radius'. Use size.$"):
        Both(radius=3)


def test_fitted_attributes_end_with_an_underscore():
    assert fitted_attributes(SimpleNamespace(fpr=0.1, classes_=[1], _private_=2, score_=3)) == [
        "classes_",
        "score_",
    ]
