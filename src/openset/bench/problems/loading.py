"""The rows of a dataset in the data folder: read once, and turned into features by an encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.data.datasets.amazon import PAPER_CATEGORIES
from openset.data.datasets.cifar100 import SUPERCLASSES
from openset.data.datasets.dataset import Dataset
from openset.errors import Parameter, ParameterError
from openset.shift.recipes import CIFAR_SUPERCLASSES

PER_SENTIMENT = 800
"""Reviews to read per category and sentiment. A known category uses 625 of each in the paper, 500 for source and
target and 125 for testing; a new one that is .32 of the target needs 735 of each. The others replace copies."""
CIFAR_NOVEL = ("baby", "man", "butterfly", "rocket", "streetcar")
CIFAR_CLASSES = (*(fine for name in CIFAR_SUPERCLASSES for fine in SUPERCLASSES[name]), *CIFAR_NOVEL, "crocodile")
"""The fine classes that the paper's tables use. The features of the others are not computed."""
CIFAR_FILES = (
    "cifar100/cifar-100-python.tar.gz",
    "cifar100/cifar-100-python/train",
    "cifar100/cifar-100-binary.tar.gz",
    "cifar100/cifar-100-binary/train.bin",
    "cifar100/cifar100_26classes.npz",
)
"""Where CIFAR-100 may be: the official archives, or the folders they unpack to, or an extract of 26 classes."""

_PATHS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "amazon": (("amazon_reviews",), {"categories": PAPER_CATEGORIES, "per_sentiment": PER_SENTIMENT}),
    "amazon_fdu_mtl": (("amazon_reviews",), {}),
    "sun397": (("SUN397",), {}),
    "sun_scenes": (("sun_scenes",), {}),
    "clinc150": (("clinc150",), {}),
    "cifar100": (CIFAR_FILES, {}),
}
"""The paths of each dataset in the data folder, of which the first that exists is read, and how to read it."""


@dataclass(frozen=True)
class Encoding:
    """An encoder of text or images, and its settings as pairs, so that an encoding can be a key of a cache.

    The device is where it computes. It changes features by rounding only, so encodings that differ in nothing
    else are equal.
    """

    encoder: str | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    device: str = field(default="cpu", compare=False)

    @classmethod
    def of(cls, encoder: str | None, device: str = "cpu", **settings: Any) -> Encoding:
        """The encoding with those of the settings that are given."""
        given = tuple((name, value) for name, value in settings.items() if value is not None)
        return cls(encoder, given, device)


OWN = Encoding()
"""The encoder that a dataset has by default, with its own settings."""


@lru_cache(maxsize=2)
def load(name: str, data_dir: Path | None) -> Dataset:
    """A dataset of the data folder."""
    from openset.data.datasets.catalogue import load_dataset

    paths, options = _PATHS[name]
    if data_dir is None:
        raise ValueError(f"{name} needs a data folder: pass --data FOLDER, a folder with {' or '.join(paths)}.")
    path = next((data_dir / path for path in paths if (data_dir / path).exists()), data_dir / paths[0])
    if path.suffix == ".npz":
        options = {**options, "partial": True}
    return load_dataset(name, path.parent if path.name in ("train", "train.bin") else path, **options)


@lru_cache(maxsize=2)
def load_with_features(
    name: str, data_dir: Path | None, encoding: Encoding = OWN, progress: bool = False
) -> tuple[Dataset, NDArray[np.float32]]:
    """A dataset and the features of its rows: its own, or an encoder's, which are cached on disk."""
    data = load(name, data_dir)
    if data.features is not None and encoding == OWN:
        return data, np.asarray(data.features, np.float32)
    assert data_dir is not None
    return data, _encoded(data, data_dir, encoding, progress)


@lru_cache(maxsize=2)
def load_cifar(
    data_dir: Path | None, classes: tuple[str, ...], encoding: Encoding | None, progress: bool = False
) -> tuple[Dataset, NDArray[Any]]:
    """The rows of these fine classes, and their features; their images without an encoding."""
    whole = load("cifar100", data_dir)
    data = whole.take(np.flatnonzero(np.isin(present(whole.subtype), classes)))
    if encoding is None:
        return data, present(data.images)
    assert data_dir is not None
    return data, _encoded(data, data_dir, encoding, progress)


def cifar_classes(known: Sequence[str], novel: str) -> tuple[str, ...]:
    """The fine classes to read for a problem: the paper's, and those that it lacks, sorted.

    >>> cifar_classes((), "baby") == cifar_classes(("fish",), "tulip"), len(cifar_classes(("trees",), "bee"))
    (True, 32)
    """
    of_known = (fine for name in known for fine in SUPERCLASSES.get(name, ()))
    return tuple(sorted({*CIFAR_CLASSES, *of_known, novel}))


def forget_datasets() -> None:
    """Forget what is in memory: the files may have changed."""
    for cached in (load, load_with_features, load_cifar):
        cached.cache_clear()


def present(column: Any) -> Any:
    """The column of a dataset that must have it."""
    assert column is not None
    return column


def _encoded(data: Dataset, data_dir: Path, encoding: Encoding, progress: bool) -> NDArray[np.float32]:
    from openset.features import ImageEncoder, encode_cells, encode_images, encode_texts

    settings = dict(encoding.settings)
    if encoding.device != "cpu":
        settings["device"] = encoding.device
    if data.texts is not None:
        chosen = with_settings(encoder_path(encoding.encoder or "minilm", data_dir), settings)
        return encode_texts(data.texts, chosen, progress=progress)
    model = encoder_path(encoding.encoder or "efficientnet_lite0", data_dir)
    if "cells" in settings:
        return encode_cells(present(data.images), model, **settings, progress=progress)
    chosen = ImageEncoder(model, **settings) if settings else model
    return encode_images(present(data.images), chosen, progress=progress)


def with_settings(encoder: str | Path, settings: Mapping[str, Any]) -> Any:
    """The encoder of texts with these settings; without any, its path or name."""
    from openset.features import TextEncoder

    return TextEncoder(encoder, **settings) if settings else encoder


def encoder_path(name: str, data_dir: Path) -> str | Path:
    """The folder of that name in ``encoders`` of the data folder if there is one, else the name.

    Raise if it is the name of a model on a hub that is not here, and may not be downloaded.
    """
    from openset.features.model_files import PACKAGED, model_directory

    local = data_dir / "encoders" / name.rpartition("/")[2]
    if local.is_dir():
        return local
    try:
        if name not in PACKAGED:
            model_directory(name)
    except ParameterError as error:
        advice = f"the model {name!r} is not here: put its folder at {local}, or pass "
        raise ParameterError(advice, Parameter("allow_download", True), " to download it.") from error
    return name
