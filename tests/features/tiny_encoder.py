"""An encoder without torch, quick to import in a process that a test starts."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import numpy as np

from openset.features.base import Batch, Encoder


class TinyEncoder(Encoder):
    """Sixteen numbers from a text's digest; ``noise`` stands for rounding that depends on the batch."""

    kind = "tiny"

    def __init__(self, *, noise: float = 0.0, pause: float = 0.0, announce: bool = False) -> None:
        self.name, self.settings, self.device = "tiny", {"normalise": False}, "cpu"
        self.noise, self.pause, self.announce = noise, pause, announce
        self.rows_computed = 0

    def batches(self, items, rows, batch_size):
        for start in range(0, len(rows), batch_size):
            chosen = list(rows[start : start + batch_size])
            digests = [hashlib.sha256(items[row].encode()).digest()[:16] for row in chosen]
            yield Batch(chosen, {"bytes": np.array([list(digest) for digest in digests], dtype=np.uint8)})

    def forward(self, inputs):
        time.sleep(self.pause)
        self.rows_computed += len(inputs["bytes"])
        if self.announce:
            print(self.rows_computed, flush=True)  # noqa: T201
        rounding = self.noise * np.random.default_rng().standard_normal(inputs["bytes"].shape)
        return (inputs["bytes"] / 255 + rounding).astype(np.float32)

    def _features(self, tensors):
        raise NotImplementedError

    def _files(self) -> list[Path]:
        return []

    def _sample(self):
        return "x"

    def _content(self, item, row):
        return item.encode()
