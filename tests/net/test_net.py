"""Nothing that a user computes changes by accident: today's numbers against hashes, and earlier folders.

On the kind of processor that wrote the fixture every number is the same bit for bit; on another, to 1e-5.
"""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext

import numpy as np
import pytest

import openset
from net.cases import CASES, LONG, RUNS, computed
from net.fixture import FOLDERS, HASHES, VALUES, environment, hashes_of, shown
from openset.registry import methods

STORED = json.loads(HASHES.read_text())
DEPENDS_ON = ("machine", "processor", "numpy", "scipy", "torch")
SAME_MACHINE = all(STORED["environment"][key] == environment()[key] for key in DEPENDS_ON)
MODELS = sorted(path.name for path in (FOLDERS / "models").iterdir())
RUN_FOLDERS = sorted(path.name for path in (FOLDERS / "runs").iterdir())


def test_every_registered_method_is_in_the_net():
    assert {method.name for method in methods()} <= CASES.keys()
    assert STORED["hashes"].keys() == CASES.keys() | RUNS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES, *RUNS])
def test_numbers_are_those_of_the_fixture(name):
    if name in LONG and not SAME_MACHINE:
        pytest.skip("thousands of steps: another processor's rounding adds up to more than 1e-5")
    arrays = computed(name)
    if SAME_MACHINE:
        assert hashes_of(arrays) == STORED["hashes"][name]
        return
    assert arrays.keys() == STORED["hashes"][name].keys()
    with np.load(VALUES) as stored:
        for key, array in arrays.items():
            np.testing.assert_allclose(shown(array), stored[f"{name} | {key}"], rtol=1e-5, atol=1e-5, err_msg=key)


def assert_same(found, expected):
    if SAME_MACHINE:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def expected():
    with np.load(FOLDERS / "expected.npz") as stored:
        return dict(stored)


@pytest.mark.parametrize("name", MODELS)
def test_model_folders_of_an_earlier_openset_score_the_same(name, expected, tmp_path):
    two_bodies = pytest.warns(UserWarning, match="fitted with joint=False, which CoLOR no longer has")
    with two_bodies if name == "conop-pooled" else nullcontext():
        model = openset.load(FOLDERS / "models" / name)
    for again in (model, saved_again(model, tmp_path)):
        assert_same(again.novelty_score(expected["X"]), expected[f"{name} score"])
        assert_same(again.predict_proba(expected["X"]), expected[f"{name} probabilities"])
        assert again.predict(expected["X"]).tolist() == expected[f"{name} predicted"].tolist()


def saved_again(model, folder):
    model.save(folder / "again")
    return openset.load(folder / "again")


@pytest.mark.parametrize("name", RUN_FOLDERS)
def test_run_folders_of_an_earlier_openset_load_and_score_the_same(name, expected, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(FOLDERS / "runs" / name, folder)
    point_at_data(folder / "result.json")
    result = openset.load_run(folder)
    assert_same(result.scored.novelty_score, expected[f"{name} run score"])
    suffix = "csv" if name == "color" else "parquet"
    answer = openset.score(folder, FOLDERS / "data" / f"target.{suffix}", tmp_path / "scored.parquet")
    assert answer.rows == 300 and answer.called_share_at_fit == answer.called_share.value
    assert answer.moved.answer == "unknown" and "without a profile of its rows" in answer.not_compared
    import pandas as pd

    again, then = (
        pd.read_parquet(path) for path in (tmp_path / "scored.parquet", folder / "scored_target.parquet")
    )
    assert again["predicted"].tolist() == then["predicted"].tolist()
    assert_same(again["novelty_score"], then["novelty_score"])
    result.save(tmp_path / "again")
    assert_same(openset.load_run(tmp_path / "again").scored.novelty_score, expected[f"{name} run score"])
    again = openset.score(tmp_path / "again", FOLDERS / "data" / "target.parquet", tmp_path / "scored.parquet")
    assert again.moved.answer == "no" and again.out_of_range == []  # saved again, a run has its profile


def point_at_data(path):
    """The folder was written where the fixture was made: its data lies elsewhere now."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for role in ("source", "target"):
        here = str(FOLDERS / "data" / content["settings"][role].rpartition("/")[2])
        content["settings"][role] = content["data"][role]["path"] = here
    path.write_text(json.dumps(content), encoding="utf-8")
