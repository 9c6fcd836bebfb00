"""Runs to review; the helpers beside the tests are importable."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from openset.review.session import Session
from product_files import fit_problem, frame, make_rows


@pytest.fixture(scope="session")
def table_result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    random = np.random.default_rng(0)
    X, y = make_rows(random, {"cat": 300, "dog": 300})
    frame(X, kind=y, rid=[f"s{i}" for i in range(len(X))], town="Rome").to_parquet(folder / "source.parquet")
    X, kinds = make_rows(random, {"cat": 200, "dog": 240, "new": 60})
    target = frame(X, rid=[f"t{i}" for i in range(len(X))], town=np.where(kinds == "new", "Oslo", "Rome"))
    target.to_parquet(folder / "target.parquet")
    result = fit_problem(folder)
    return result, kinds


@pytest.fixture
def is_new(table_result):
    return table_result[1] == "new"


@pytest.fixture
def truth(table_result):
    return table_result[1]


@pytest.fixture
def session(table_result):
    return Session(table_result[0], seed=0)


@pytest.fixture
def run_folder(table_result, tmp_path):
    table_result[0].save(tmp_path / "run")
    return tmp_path / "run"
