"""A small labelled table and a split of it, shared by the tests of manifests and splits."""

from __future__ import annotations

import numpy as np
import pytest

from openset.shift import background_shift


@pytest.fixture
def columns():
    """Two known classes and a new one, two subtypes; every other row is a copy of the row before."""
    label = np.repeat(["cat", "dog", "eel"], [300, 300, 100])
    return {"label": label, "subtype": np.tile(["young", "old"], 350), "content": np.arange(700) // 2 * 2}


@pytest.fixture
def split(columns):
    return background_shift(**columns, novel="eel", concentration=1.0, random_state=4)
