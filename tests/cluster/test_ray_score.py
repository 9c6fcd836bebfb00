"""Parts on Ray: the bytes of one machine, errors of the data in one sentence, a scorer in Ray Data."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pyarrow as pa
import pytest

from openset.cluster.part_scorer import Options
from openset.cluster.plan import make_plan
from openset.cluster.ray_score import PartActor
from openset.cluster.score import score_parts

CODE = """
import sys, ray, ray.data
from openset.cluster import Scorer
from openset.cluster.ray_cluster import ray_cluster
from openset.cluster.score import score_parts
run, parts, out = sys.argv[1:]

if __name__ == "__main__":
    found = score_parts(run, parts, f"{out}/ray", on="ray")
    assert (found.scored, found.is_complete, found.answer.rows) == (5, True, 300)
    with ray_cluster(2):  # the recipe of docs/big-data.md
        rows = ray.data.read_parquet(parts).map_batches(
            Scorer, fn_constructor_args=(run,), batch_format="pyarrow", num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=1),  # the other CPU reads
        )
        scored = rows.to_pandas().sort_values("rid")[["rid", "novelty_score"]]
        scored.to_parquet(f"{out}/rows.parquet")
"""


def without_address():
    return {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs ray: pip install 'openset[ray]'")
def test_ray_writes_the_bytes_of_one_machine(problem_files, parts, tmp_path):
    import pandas as pd

    run = problem_files / "run"
    score_parts(run, parts, tmp_path / "here")
    command = [sys.executable, "-c", CODE, str(run), str(parts), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=without_address())
    assert ended.returncode == 0, ended.stderr[-3000:]
    names = sorted(p.relative_to(tmp_path / "here") for p in (tmp_path / "here").rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(tmp_path / "ray") for p in (tmp_path / "ray").rglob("*") if p.is_file())
    for name in names:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes()
    here = pd.concat(pd.read_parquet(tmp_path / "here" / f"part-{i}.parquet") for i in range(5))
    by_rows = pd.read_parquet(tmp_path / "rows.parquet")
    expected = here.sort_values("rid")[["rid", "novelty_score"]]
    assert by_rows["rid"].tolist() == expected["rid"].tolist()
    assert by_rows["novelty_score"].tolist() == expected["novelty_score"].tolist()


def test_an_actor_returns_errors_of_the_data_as_rows(problem_files, parts, tmp_path):
    from dataclasses import asdict

    plan = make_plan(parts)
    (parts / "part-1.parquet").write_bytes(b"PAR1")
    (parts / "part-2.parquet").unlink()
    actor = PartActor(str(problem_files / "run"), str(parts), str(tmp_path / "out"), Options(), 100)
    found = actor(pa.Table.from_pylist([asdict(part) for part in plan.parts[:3]])).to_pylist()
    assert [row["part"] for row in found] == ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    assert found[0]["error"] == "" and "not a readable Parquet file" in found[1]["error"]
    assert "part-2.parquet" in found[2]["error"] and not found[2]["is_system"]
    assert sorted(p.name for p in (tmp_path / "out").glob("*.parquet")) == ["part-0.parquet"]
