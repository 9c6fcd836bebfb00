"""``Encoder``, the base class of text and image encoders: fingerprint, cache keys, batches and a forward pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openset._utils.hashing import sha256
from openset.features.model_files import fingerprint

Features = NDArray[np.float32]


class Batch(NamedTuple):
    """The indices of some rows, and the arrays that the model takes for them."""

    rows: list[int]
    inputs: dict[str, NDArray[Any]]


class Encoder(ABC):
    """From items to features. The model is loaded on first use, so reading the cache needs no torch."""

    kind: ClassVar[str]
    name: str
    settings: Mapping[str, object]
    device: str

    @cached_property
    def fingerprint(self) -> str:
        """A digest of weights, vocabulary and settings: encoders of equal fingerprint compute the same."""
        return fingerprint(self._files(), {"kind": self.kind, **self.settings})

    @cached_property
    def dimension(self) -> int:
        """The number of features. This loads the model."""
        return int(self.forward(next(self.batches([self._sample()], [0], 1)).inputs).shape[1])

    def key(self, item: object, row: int) -> bytes:
        """The cache key of this item's features: a digest of the encoder and the item's content."""
        return bytes.fromhex(sha256(bytes.fromhex(self.fingerprint) + self._content(item, row)))

    def forward(self, inputs: Mapping[str, NDArray[Any]]) -> Features:
        """Features of one batch, float32; of length 1 if the encoder normalises."""
        import torch

        tensors = {name: torch.from_numpy(array).to(self.device) for name, array in inputs.items()}
        with torch.inference_mode():
            features = self._features(tensors)
            if self.settings["normalise"]:
                features = torch.nn.functional.normalize(features, dim=1)
        return features.float().cpu().numpy()

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{type(self).__name__}({self.name!r}, {options})"

    @abstractmethod
    def batches(self, items: Sequence[Any], rows: Sequence[int], batch_size: int) -> Iterator[Batch]:
        """Yield the given rows of ``items`` in batches ready for ``forward``, in the fastest order."""

    @abstractmethod
    def _files(self) -> list[Path]: ...

    @abstractmethod
    def _sample(self) -> object: ...

    @abstractmethod
    def _content(self, item: object, row: int) -> bytes:
        """The bytes that identify an item; a ValueError if it is not an item of this encoder."""

    @abstractmethod
    def _features(self, tensors: dict[str, Any]) -> Any: ...
