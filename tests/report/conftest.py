"""The helpers beside the tests are importable; a browser, where there is one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import browser as browsers
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


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, driven over a pipe."""
    executable = browsers.find_chromium()
    if executable is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with browsers.Browser(executable) as running:
        yield running
