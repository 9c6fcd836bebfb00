"""All datasets by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from openset._utils.text import listed
from openset.data.datasets.amazon import load_amazon_reviews
from openset.data.datasets.cifar100 import load_cifar100
from openset.data.datasets.dataset import Dataset
from openset.data.datasets.stand_ins import load_amazon_fdu_mtl, load_clinc150, load_sun_scenes
from openset.data.datasets.sun397 import load_sun397

DATASETS: dict[str, Callable[..., Dataset]] = {
    "amazon": load_amazon_reviews,
    "amazon_fdu_mtl": load_amazon_fdu_mtl,
    "cifar100": load_cifar100,
    "clinc150": load_clinc150,
    "sun397": load_sun397,
    "sun_scenes": load_sun_scenes,
}


def load_dataset(name: str, path: str | Path, **options: Any) -> Dataset:
    """Load the dataset of this name from the files that the user downloaded.

    >>> load_dataset("mnist", "somewhere")
    Traceback (most recent call last):
    ValueError: there is no dataset 'mnist': choose amazon, ...
    """
    if name not in DATASETS:
        raise ValueError(f"there is no dataset {name!r}: choose {listed(DATASETS, len(DATASETS))}.")
    return DATASETS[name](path, **options)
