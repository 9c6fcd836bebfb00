"""A run on this machine or an object store: its files here, its digest, and the threads that score with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from threadpoolctl import threadpool_limits

from openset._utils.hashing import path_sha256, sha256
from openset._utils.threads import torch_on_one_thread
from openset.cluster.folders import is_remote, local_path, open_folder
from openset.pipeline.loaded_run import LoadedRun
from openset.pipeline.result import FEATURES, MODEL, PROFILE, RESULT


@contextmanager
def run_here(run: str | PathLike[str]) -> Iterator[Path]:
    """Yield the folder of a run; what scoring needs of one on an object store is copied for that time."""
    if not is_remote(run):
        yield local_path(run)
        return
    folder = open_folder(run)
    with tempfile.TemporaryDirectory(prefix="openset-run-") as copy:
        for name in folder.files():
            if name in (RESULT, FEATURES, PROFILE) or name.startswith(f"{MODEL}/"):
                path = Path(copy) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(folder.read(name))
        if not (Path(copy) / RESULT).exists():
            raise FileNotFoundError(f"{run} is no run: there is no {RESULT} in it.")
        yield Path(copy)


def run_digest(folder: Path) -> str:
    """A digest of what decides the scores of a run: its model, its features and its profile."""
    parts = [folder / name for name in (MODEL, FEATURES, PROFILE)]
    return sha256("".join(f"{part.name}\0{path_sha256(part)}\0" for part in parts if part.exists()))


@contextmanager
def one_thread_each(loaded: LoadedRun) -> Iterator[int]:
    """Each computation on one thread: how many cores a machine has must not change a bit of the scores.

    Encoders keep all threads: several of them at the same time would need the memory of several.
    """
    if loaded.encodes:
        yield 1
        return
    with torch_on_one_thread() as workers, threadpool_limits(1):
        yield workers
