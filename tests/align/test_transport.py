from __future__ import annotations

import sys

import numpy as np
import pytest

from openset.align import Coral, Transport
from openset.errors import MissingExtraError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4)) @ RNG.normal(size=(4, 4)) + 1
X_TARGET = RNG.normal(size=(300, 4)) @ RNG.normal(size=(4, 4)) - 2


@pytest.fixture(autouse=True)
def _needs_pot():
    pytest.importorskip("ot", reason="needs openset[skada]")


def test_target_gets_mean_and_covariance_of_source():
    moved = Transport(ridge=1e-9).fit(X, X_TARGET).transform_target(X_TARGET)
    np.testing.assert_allclose(moved.mean(axis=0), X.mean(axis=0), atol=1e-8)
    np.testing.assert_allclose(np.cov(moved.T), np.cov(X.T), rtol=1e-2, atol=5e-2)


def test_it_moves_rows_less_than_coral():
    moved = {
        aligner.name: ((aligner.fit(X, X_TARGET).transform_target(X_TARGET) - X_TARGET) ** 2).sum()
        for aligner in (Transport(ridge=1e-9), Coral(ridge=1e-9))
    }
    assert moved["transport"] < moved["coral"]


def test_equal_rows_are_shifted():
    moved = Transport().fit(np.ones((5, 2)), np.zeros((5, 2))).transform_target(np.zeros((3, 2)))
    np.testing.assert_allclose(moved, 1)


def test_without_pot_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot.gaussian", None)
    with pytest.raises(MissingExtraError, match=r"optimal transport needs .*openset\[skada\]"):
        Transport().fit(X, X_TARGET)
