"""Fitting on Ray: the model of one machine, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

import pytest

import openset
from openset._utils.hashing import path_sha256
from openset.cluster import ray_fit

OPTIONS = ["--set", "max_steps=60", "--set", "evaluate_every=20", "--set", "members=2"]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs ray: pip install 'openset[ray]'")
def test_a_fit_on_ray_writes_the_model_of_one_machine(problem_files, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    data = [str(problem_files / "source.parquet"), str(problem_files / "target.parquet")]
    for where in ("local", "ray"):
        command = [sys.executable, "-m", "openset.cli", "fit", *data, "--label", "kind", "--id", "rid", *OPTIONS,
                   "--on", where, "--out", str(tmp_path / where), "-q"]  # fmt: skip
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert ended.returncode == 0, ended.stderr[-3000:]
        assert "Ray was not used" not in ended.stderr
    weights = [list((tmp_path / where / "model").glob("*.safetensors")) for where in ("local", "ray")]
    assert [len(found) for found in weights] == [1, 1]
    assert weights[0][0].read_bytes() == weights[1][0].read_bytes()
    for name in ("features.json", "profile.safetensors", "scored_target.parquet"):
        assert path_sha256(tmp_path / "ray" / name) == path_sha256(tmp_path / "local" / name)


class FakeRay:
    """Tasks carried out at once, in this process."""

    def __init__(self):
        self.asked = []
        self.puts = 0

    def cluster_resources(self):
        return {"CPU": 2.0}

    def put(self, value):
        self.puts += 1
        return value

    def remote(self, **options):
        self.asked.append(options)
        return lambda function: type("Remote", (), {"remote": staticmethod(function)})

    def get(self, values):
        return values


@pytest.mark.filterwarnings("ignore::openset.errors.FitWarning")
def test_tasks_take_the_threads_of_this_process_and_rows_travel_once(small, monkeypatch):
    import torch

    fake = FakeRay()

    @contextmanager
    def cluster(**_):
        yield fake

    monkeypatch.setattr(ray_fit, "ray_cluster", cluster)
    model = openset.CoLOR(members=2, max_steps=20, evaluate_every=5, random_state=0)
    before = torch.get_num_threads()
    with ray_fit.groups_on_ray() as groups:
        apart = model.fit(small.X, small.y, small.X_target).novelty_score(small.X_test)
    assert groups.tasks >= 3 and fake.puts == 1
    assert {options["num_cpus"] for options in fake.asked} == {min(before, 2)}
    together = model.fit(small.X, small.y, small.X_target).novelty_score(small.X_test)
    assert apart.tolist() == together.tolist()


def test_without_a_task_no_cluster_is_started():
    with ExitStack() as stack:
        assert ray_fit.RayGroups(stack).tasks == 0
