"""The run with eight weekly batches, and a watch of them."""

from __future__ import annotations

import pytest

from openset.watch import Watch
from watch_files import write_weeks


@pytest.fixture(scope="session")
def weeks_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weeks")
    write_weeks(folder)
    return folder


@pytest.fixture(scope="session")
def run(weeks_folder):
    return weeks_folder / "run"


@pytest.fixture(scope="session")
def weeks(weeks_folder):
    return [weeks_folder / f"week-{week}.parquet" for week in range(1, 9)]


@pytest.fixture(scope="session")
def watched(run, weeks, tmp_path_factory):
    """A watch of all eight weeks."""
    watch = Watch(run, state=tmp_path_factory.mktemp("state") / "all.sqlite")
    watch.add_all(weeks)
    return watch


@pytest.fixture
def state(tmp_path):
    return tmp_path / "watch.sqlite"
