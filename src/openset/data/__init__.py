"""Reading tables, arrays and images; the paper's datasets and their stand-ins."""

from __future__ import annotations

from openset.data.datasets.amazon import load_amazon_reviews
from openset.data.datasets.catalogue import DATASETS, load_dataset
from openset.data.datasets.cifar100 import load_cifar100
from openset.data.datasets.dataset import Dataset
from openset.data.datasets.stand_ins import load_amazon_fdu_mtl, load_clinc150, load_sun_scenes
from openset.data.datasets.sun397 import load_sun397, sun397_hierarchy
from openset.data.readers.images import ImageFiles
from openset.data.readers.records import Records, SkippedRow
from openset.data.readers.tables import iter_batches, read_table

__all__ = [
    "DATASETS",
    "Dataset",
    "ImageFiles",
    "Records",
    "SkippedRow",
    "iter_batches",
    "load_amazon_fdu_mtl",
    "load_amazon_reviews",
    "load_cifar100",
    "load_clinc150",
    "load_dataset",
    "load_sun397",
    "load_sun_scenes",
    "read_table",
    "sun397_hierarchy",
]
