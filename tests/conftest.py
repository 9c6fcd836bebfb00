"""Shared problems and settings: one thread for each worker, since the workers share two cores."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside the tests are importable

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
    """The folder of real data beside the project; tests that need it are skipped where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data, which is not here")
    return folder


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, driven over a pipe."""
    import browser as browsers

    executable = browsers.find_chromium()
    if executable is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with browsers.Browser(executable) as running:
        yield running


@pytest.fixture(scope="session")
def large_files(tmp_path_factory) -> Path:
    """Source and target in parts, and a run fitted on a sample of them in ``run``."""
    import openset
    from product_files import SAMPLED, write_large

    folder = tmp_path_factory.mktemp("large")
    write_large(folder)
    result = openset.run(folder / "source", folder / "target", **SAMPLED, fdr=0.1, carry="note")
    result.save(folder / "run")
    return folder


@pytest.fixture(scope="session")
def problem_files(tmp_path_factory) -> Path:
    """Files of a small problem with a new class, and a run fitted on them in ``run``."""
    from product_files import fit_problem, write_problem

    folder = tmp_path_factory.mktemp("problem")
    write_problem(folder)
    result = fit_problem(folder)
    result.save(folder / "run")
    return folder
