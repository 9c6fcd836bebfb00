"""Runs on a store are the runs here; the digest is of what decides scores."""

from __future__ import annotations

import shutil

import pytest

from openset.cluster.runs import one_thread_each, run_digest, run_here
from openset.pipeline.loaded_run import LoadedRun


def test_a_run_on_a_store_has_the_digest_of_the_run_here(problem_files, on_s3):
    with run_here(problem_files / "run") as here, run_here("s3://bucket/run/") as copy:
        assert here == problem_files / "run" != copy
        assert run_digest(here) == run_digest(copy)
        assert not (copy / "report.html").exists()  # which scoring does not need
    with pytest.raises(FileNotFoundError, match="s3://bucket/in is no run"), run_here("s3://bucket/in"):
        pass


def test_the_digest_changes_with_the_model_and_not_with_the_report(problem_files, tmp_path):
    shutil.copytree(problem_files / "run", tmp_path / "run")
    before = run_digest(tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink()
    assert run_digest(tmp_path / "run") == before == run_digest(problem_files / "run")
    (tmp_path / "run" / "profile.safetensors").unlink()
    assert run_digest(tmp_path / "run") != before


def test_a_computation_takes_one_thread(problem_files):
    import torch

    loaded = LoadedRun.load(problem_files / "run")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with one_thread_each(loaded) as workers:
            assert workers == 2 and torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
