"""What text and image encoders share: an identity, row keys, batches made ready, a forward pass."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openset.features.model_files import fingerprint

Features = NDArray[np.float32]


class Batch(NamedTuple):
    """Rows of the caller's data, and the arrays that the model takes for them."""

    rows: list[int]
    inputs: dict[str, NDArray[Any]]


class Encoder(ABC):
    """An encoder; its model loads on first use, so that reading a cache needs no torch."""

    kind: ClassVar[str]
    name: str
    settings: Mapping[str, object]
    device: str

    @cached_property
    def fingerprint(self) -> str:
        """Names the function computed: a digest of weights, vocabulary and settings."""
        return fingerprint(self._files(), {"kind": self.kind, **self.settings})

    @cached_property
    def dimension(self) -> int:
        """Number of features; loads the model."""
        return int(self.forward(next(self.batches([self._sample()], [0], 1)).inputs).shape[1])

    def key(self, item: object, row: int) -> bytes:
        """Where the cache keeps this item's features: a digest of its content and of the encoder."""
        return hashlib.sha256(bytes.fromhex(self.fingerprint) + self._content(item, row)).digest()

    def forward(self, inputs: Mapping[str, NDArray[Any]]) -> Features:
        """Features of one batch, float32, of length 1 if the encoder normalises."""
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
        """The given rows of ``items`` in batches ready for ``forward``, in the order that is quickest."""

    @abstractmethod
    def _files(self) -> list[Path]: ...

    @abstractmethod
    def _sample(self) -> object: ...

    @abstractmethod
    def _content(self, item: object, row: int) -> bytes:
        """The bytes that tell one item from another; an item that is none raises ValueError."""

    @abstractmethod
    def _features(self, tensors: dict[str, Any]) -> Any: ...


def load_pretrained(loader: Any, directory: Path, device: str) -> Any:
    """A transformers model in float32, ready for inference; its directory must hold all of its weights."""
    import torch
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        model, report = loader.from_pretrained(
            directory, dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
    except OSError as error:
        raise ValueError(f"{directory} holds no model that transformers can load: {error}") from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
    missing = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
    if missing:  # transformers would fill them with random numbers
        raise ValueError(f"{directory} lacks {len(missing)} weights of {type(model).__name__}: {missing[:3]}")
    return model.eval().to(device)
