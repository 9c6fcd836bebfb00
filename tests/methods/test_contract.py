"""Both check suites over every registered method."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from openset.methods._presets import PRESETS
from openset.registry import INPUTS, get_method, methods, register
from openset.testing import PROBLEMS, Subject, check_open_set_estimator, open_set_checks

ALL = methods()


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
def test_scikit_learns_check_estimator(method):
    with warnings.catch_warnings():
        # the suite says so where it leaves out a check, e.g. of array-API input
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(method.make(**method.check_params), on_fail=None)
    failed = {r["check_name"]: repr(r["exception"]) for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    if method.input == "table":  # the suite knows no other shape: tests/methods/test_anna.py has a way round
        assert sum(r["status"] == "passed" for r in results) >= 45


@pytest.fixture(scope="module")
def subjects():
    return {}


@pytest.mark.parametrize("check", list(open_set_checks()), ids=lambda c: c.__name__)
@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
def test_open_set_contract(method, check, subjects):
    subject = subjects.setdefault(method.name, Subject(method.make(**method.check_params)))
    check(subject)


def broken(**overrides):
    from openset import SourceOnly

    cls = type("Broken", (SourceOnly,), overrides)
    return cls(max_steps=100)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"novelty_score": lambda self, X: -super(type(self), self).novelty_score(X)}, "flipped"),
        ({"predict": lambda self, X: self.predict_known(X)}, "novel exactly where"),
        (
            {"predict_proba": lambda self, X: super(type(self), self).predict_proba(X)[:, :-1]},
            "k \\+ 1 columns",
        ),
        ({"fit": lambda self, *a: super(type(self), self).fit(*a) and None}, "return self"),
    ],
)
def test_the_checks_can_fail(overrides, message):
    with pytest.raises(AssertionError, match=message):
        check_open_set_estimator(broken(**overrides))


def test_the_checks_find_the_kind_of_input_an_estimator_takes():
    from openset import ANNA, SourceOnly

    assert Subject(ANNA()).input == "cells" and Subject(SourceOnly()).input == "table"
    assert Subject(type("Mine", (ANNA,), {})()).input == "cells", "by its tags, where it is not registered"
    assert Subject(broken(), input="cells").data.X.ndim == 3
    assert set(PROBLEMS) == set(INPUTS)
    with pytest.raises(ValueError, match="input='images'"):
        check_open_set_estimator(SourceOnly(), input="images")


def test_methods_can_be_listed_by_what_they_take():
    assert {m.name for m in methods("cells")} == {"anna"}
    assert "color" in {m.name for m in methods("table")} < {m.name for m in methods()}
    with pytest.raises(ValueError, match="input='images'"):
        methods("images")
    with pytest.raises(ValueError, match="input='images'"):
        register(replace(ALL[0], name="mine", input="images"))


def test_registry_entries_are_complete():
    names = [m.name for m in ALL]
    assert len(set(names)) == len(names)
    assert {"color", "conop", "dd", "source_only"} <= set(names)
    for method in ALL:
        assert method.load().__name__ == method.class_name
        assert method.title and method.reference and method.needs and method.assumes
        assert 0.5 < method.auroc_floor <= 1
        assert set(method.check_params) <= {"max_steps"}, "check parameters take fewer steps and nothing else"


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
@pytest.mark.parametrize(
    "name", ["amazon_reviews", "amazon_minilm", "cifar100", "sun397_resnet50", "sun397_vitl14"]
)
def test_every_method_has_the_papers_presets(method, name):
    model = method.load().preset(name, random_state=3)
    assert model.fpr == 0.01 and getattr(model, "standardize", None) is None and model.random_state == 3
    assert PRESETS[method.name][name].items() <= model.get_params().items(), "the bench looks them up by name"


def test_an_unknown_parameter_is_named_with_its_nearest():
    with pytest.raises(TypeError, match="CoLOR has no parameter 'hiden'. Did you mean 'hidden'?"):
        get_method("color").make(hiden=3)
