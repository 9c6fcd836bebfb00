from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from openset import CoLOR, SourceOnly, registry
from openset.registry import INPUTS, Method, get_method, method_of, methods, register

ALL = methods()


@pytest.fixture
def own_list(monkeypatch):
    """A copy of the list, so that a test may register methods of its own."""
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))


MINE = Method("mine", "openset.methods.knn:KNN", "Mine", "this test", "nothing", "nothing")


def test_entries_are_complete():
    names = [m.name for m in ALL]
    assert len(set(names)) == len(names)
    assert {"color", "color_paper", "conop", "dd", "source_only"} <= set(names)
    for method in ALL:
        module, name = method.class_path.split(":")
        assert method.load() is getattr(import_module(module), name) and name == method.class_name
        assert method.title and method.reference and method.needs and method.assumes
        assert 0.5 < method.auroc_floor <= 1 and method.input in INPUTS
        assert set(method.check_params) <= {"max_steps"}, "check parameters take fewer steps and nothing else"


def test_methods_come_in_order_of_registration(own_list):
    assert [m.name for m in ALL][:4] == ["color", "color_paper", "conop", "dd"]
    assert register(MINE) is MINE and methods()[-1] is MINE


def test_methods_can_be_listed_by_what_they_take():
    assert {m.name for m in methods("cells")} == {"anna"}
    assert "color" in {m.name for m in methods("table")} < {m.name for m in methods()}
    with pytest.raises(ValueError, match="input='images'"):
        methods("images")


def test_a_method_is_found_by_its_name_and_by_an_estimator():
    assert get_method("color").load() is CoLOR
    assert method_of(SourceOnly()) is get_method("source_only")
    assert method_of(type("Mine", (SourceOnly,), {})()) is None
    with pytest.raises(ValueError, match="method='colour' is not valid: expected one of 'color'"):
        get_method("colour")


def test_what_cannot_be_registered_is_named(own_list):
    with pytest.raises(ValueError, match="'color' is already registered"):
        register(replace(MINE, name="color"))
    with pytest.raises(ValueError, match="input='images'"):
        register(replace(MINE, input="images"))


def test_make_passes_parameters_on():
    assert get_method("knn").make(n_neighbors=3).n_neighbors == 3
