"""Random numbers: children of a seed, streams whose state can be stored, and torch's generator kept unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

StreamState = NDArray[np.uint64]


def child_seed(seed: np.random.SeedSequence, index: int) -> np.random.SeedSequence:
    """Return the index-th child of a seed; every call returns the same one."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index))


def torch_seed(seed: np.random.SeedSequence) -> int:
    """Return a seed for one of torch's generators."""
    return int(seed.generate_state(1, np.uint64)[0] >> 1)


@contextmanager
def isolated_random_state(seed: np.random.SeedSequence) -> Iterator[None]:
    """Seed torch's global generator, which backbones use, and restore it afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(torch_seed(seed))
        yield


def stream_state(stream: np.random.SFC64) -> StreamState:
    """Return the state of a stream, as six numbers."""
    state = stream.state
    return np.array([*state["state"]["state"], state["has_uint32"], state["uinteger"]], np.uint64)


def restore_stream(stream: np.random.SFC64, state: StreamState) -> None:
    """Restore what :func:`stream_state` returned."""
    stream.state = {
        "bit_generator": "SFC64",
        "state": {"state": state[:4]},
        "has_uint32": int(state[4]),
        "uinteger": int(state[5]),
    }
