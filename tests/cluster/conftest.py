"""Parts of a small problem, and an S3 in this process."""

from __future__ import annotations

import numpy as np
import pytest

from product_files import frame, make_rows
from s3_server import serving

N_PARTS, ROWS = 5, 60


def part_frame(number, rows=ROWS):
    X, _ = make_rows(np.random.default_rng(number), {"cat": rows // 2, "dog": rows // 3, "new": rows // 6})
    return frame(X, rid=[f"p{number}-{i}" for i in range(len(X))])


@pytest.fixture
def parts(tmp_path):
    """A folder of five parts."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(N_PARTS):
        part_frame(number).to_parquet(folder / f"part-{number}.parquet")
    return folder


@pytest.fixture
def s3(monkeypatch):
    """An empty store with a bucket called ``bucket``, which AWS_ENDPOINT_URL points to."""
    with serving("bucket") as (store, url):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "knows")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield store


@pytest.fixture
def on_s3(s3, parts, problem_files):
    """The parts and the run in the store."""
    for path in sorted(parts.iterdir()):
        s3.put("bucket", f"in/{path.name}", path.read_bytes())
    run = problem_files / "run"
    for path in sorted(p for p in run.rglob("*") if p.is_file()):
        s3.put("bucket", f"run/{path.relative_to(run).as_posix()}", path.read_bytes())
    return s3
