"""A tiny experiment and its uninterrupted results, shared by the tests of the bench."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.made_up import PAGE
from openset.bench.result_pages import Pages
from openset.bench.spec import load_spec
from openset.bench.store import Store
from openset.bench.sweep import sweep

TINY = """
title = "A tiny experiment"
metrics = ["auroc", "auprc", "top1"]

[[problem]]
dataset = "synthetic"
label = "small"
seeds = [0, 1]
options = { n_source = 120, n_target = 120, n_test = 80, n_features = 6 }

[[method]]
name = "color"
parameters = { max_steps = 60, evaluate_every = 20, grid = [0.05, 0.1] }
label = "CoLOR"

[[method]]
name = "color_paper"
label = "CoLOR, apart"
parameters = { max_steps = 60, evaluate_every = 20, grid = [0.05, 0.1], joint = false }

[[method]]
name = "knn"
"""


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("spec") / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="session")
def tiny(tiny_path):
    return load_spec(str(tiny_path))


@pytest.fixture(scope="session")
def finished(tiny, tmp_path_factory) -> Store:
    """The store after one uninterrupted sweep. One process: starting one costs more than all runs together."""
    store = Store(tmp_path_factory.mktemp("store") / "runs.sqlite")
    report = sweep(tiny, store)
    assert (report.planned, report.skipped, report.failed) == (12, 0, 0)
    return store


@pytest.fixture
def numbers():
    """What must be equal bit for bit wherever and however often a sweep ran."""
    return lambda store: {
        run.key: (run.result.metrics, run.result.heads, run.result.manifest_checksum, run.result.failure)
        for run in store.all()
    }


@pytest.fixture
def pages(tmp_path):
    """A folder with one page of results."""
    (tmp_path / "toys.md").write_text(PAGE)
    return Pages(tmp_path)
