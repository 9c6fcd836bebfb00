"""Both check suites over every registered method."""

from __future__ import annotations

import warnings

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from openset import CoLOR
from openset.methods._network import NetworkBase
from openset.methods._presets import PRESETS
from openset.registry import get_method, methods
from openset.testing import Subject, open_set_checks

ALL = methods()
NETWORKS = {method.name for method in ALL if issubclass(method.load(), NetworkBase)}
QUICK = {"source_only", "dd"}
"""Networks whose open-set checks are quick; those of the others are slow tests."""


def marked(but=frozenset()):
    """All methods, networks marked as slow but for some."""
    slow = NETWORKS - but
    return [pytest.param(m, marks=[pytest.mark.slow] * (m.name in slow), id=m.name) for m in ALL]


@pytest.mark.parametrize("method", marked())
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
@pytest.mark.parametrize("method", marked(QUICK))
def test_open_set_contract(method, check, subjects):
    subject = subjects.setdefault(method.name, Subject(method.make(**method.check_params)))
    check(subject)


@pytest.mark.parametrize("method", [m for m in ALL if m.name != "color"], ids=lambda m: m.name)
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


def test_color_has_its_own_defaults_and_no_preset():
    with pytest.raises(ValueError, match="CoLOR has no presets: use its defaults"):
        CoLOR.preset("amazon_reviews")
