"""The helpers beside the tests are importable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import samples

from openset.report import build


@pytest.fixture(scope="session")
def synthetic():
    """A result on synthetic data: numeric ids, no texts, unnamed features."""
    return samples.synthetic_result()


@pytest.fixture(scope="session")
def data(synthetic):
    """What a page shows of it."""
    return build(synthetic)


@pytest.fixture(scope="session")
def amazon(shared_data):
    """A result on Amazon reviews with their texts."""
    return samples.amazon_result(shared_data)
