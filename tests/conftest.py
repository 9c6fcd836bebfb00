"""Shared problems and settings: one thread for each worker, since the workers share two cores."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from openset.shift.synthetic import BackgroundShift, make_background_shift

settings.register_profile("openset", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("openset")


@pytest.fixture(scope="session")
def shifted() -> BackgroundShift:
    """A problem with background shift."""
    return make_background_shift(random_state=0)


@pytest.fixture(scope="session")
def small() -> BackgroundShift:
    """A small problem for checks of behaviour, not of quality."""
    return make_background_shift(n_source=300, n_target=240, n_test=120, n_features=8, random_state=0)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data beside the project, where it is."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data, which is not here")
    return folder
