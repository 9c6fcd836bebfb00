"""The state of a training run on disk, so that a killed fit can be resumed: safetensors with JSON inside.

One file has everything, and is replaced by one atomic rename. A fingerprint binds it to its data, parameters,
seed, initial weights and versions. A fit with another fingerprint is refused, because it would not end with the
weights of the fit that was killed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as dump_tensors

from openset._utils.files import write_atomically
from openset._utils.hashing import digest
from openset._version import __version__
from openset.persistence.codec import Tensors, decode, encode

if TYPE_CHECKING:
    from openset.learn.batches import ScaledRows
    from openset.learn.train import MemberPlan

FILE = "training.safetensors"
LARGEST_SHARE = 0.1
"""Largest share of the training time that is spent on writing checkpoints."""

State = dict[str, Any]


class Checkpoint:
    """A folder with the latest state of one training run."""

    def __init__(self, folder: str | PathLike[str], fingerprint: Mapping[str, str]) -> None:
        self._file = Path(folder) / FILE
        self._fingerprint = dict(fingerprint)
        self._next_write = 0.0

    def load(self) -> State | None:
        """Return the stored state, or None if there is none; raise a ValueError if it is of another run."""
        if not self._file.exists():
            return None
        try:
            with safe_open(self._file, framework="np") as stored:
                content = json.loads((stored.metadata() or {})["openset"])
                tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
            theirs = content["fingerprint"]
            state: State = decode(content["state"], tensors)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self._file} cannot be read as a checkpoint ({error}): delete it.") from None
        other = [part for part, digest in self._fingerprint.items() if theirs.get(part) != digest]
        if other:
            raise ValueError(
                f"{self._file} is the checkpoint of another fit: it differs in {', '.join(other)}. Pass another "
                "checkpoint folder, or delete this one to start again."
            )
        return state

    def save(self, state: Callable[[], State], *, last: bool = False) -> None:
        """Write the state, unless the last one was written so recently that training would become slow."""
        if time.monotonic() < self._next_write and not last:
            return
        start = time.monotonic()
        tensors: Tensors = {}
        content = {"fingerprint": self._fingerprint, "state": encode(state(), tensors, "state")}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, dump_tensors(tensors, metadata={"openset": json.dumps(content)}))
        now = time.monotonic()
        self._next_write = now + (now - start) / LARGEST_SHARE


def remove_checkpoint(folder: str | PathLike[str]) -> None:
    """Delete the checkpoint of a finished fit, and its folder if it is then empty."""
    path = Path(folder)
    (path / FILE).unlink(missing_ok=True)
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()


def fingerprint_of(
    parameters: str,
    source: ScaledRows,
    y: NDArray[np.intp],
    target: ScaledRows | None,
    plans: Sequence[MemberPlan],
    initial_weights: Mapping[str, NDArray[Any]],
) -> dict[str, str]:
    """Return hashes of everything that decides a run, one for each part, so that an error can name the part."""
    rows = [
        part for p in plans for part in (p.source_train, p.source_validation, p.target_train, p.target_validation)
    ]
    return {
        "versions": f"openset {__version__}, torch {torch.__version__}",
        "parameters": digest(parameters),
        "source rows": digest(source.array),
        "labels": digest(y),
        "target rows": digest("none") if target is None else digest(target.array),
        "scaling": digest(source.scaling.mean, source.scaling.factor),
        "seed": digest(*(repr(plan.seed) for plan in plans), *rows),
        "initial weights": digest(*initial_weights, *initial_weights.values()),
    }
