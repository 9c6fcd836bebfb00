"""SUN397 as it is downloaded. The classes are level 2 of its hierarchy, the subtypes level 3, as in the paper."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import numpy as np

from openset._utils.arrays import as_objects
from openset._utils.files import existing
from openset._utils.text import listed
from openset.data.datasets.dataset import Dataset
from openset.data.readers.images import ImageFiles, list_images

CITATION = (
    "Xiao, J., Hays, J., Ehinger, K. A., Oliva, A., Torralba, A. (2010). SUN database: large-scale scene "
    "recognition from abbey to zoo. CVPR."
)
SOURCE = (
    "SUN397 comes from https://vision.princeton.edu/projects/2010/SUN/ (SUN397.tar.gz, 37 GB): unpack it and "
    "pass the folder SUN397 that holds a/abbey/sun_….jpg."
)
FEWEST_IMAGES = 100  # of every category of the official release
_OFFICIAL_NAMES = {"/a/anechoic_chamber/outdoor": "/a/anechoic_chamber"}
"""The official names of categories that the authors' files call otherwise."""
NATURAL_GROUPS = ("water_ice_snow", "mountains_hills_desert_sky", "forest_field_jungle")


def sun397_hierarchy(which: str = "paper") -> dict[str, dict[str, tuple[str, ...]]]:
    """Level 1 → level 2 → level-3 subtypes, as the paper's authors publish them.

    ``"paper"`` has the 8 subtypes of each of 6 indoor classes and the 3 natural groups that the experiments use;
    ``"full"`` has all indoor subtypes and also two man-made outdoor groups. A subtype that the files list under
    several classes is kept in the first of them only; one that they misname has its official name.

    >>> {group: len(subtypes) for group, subtypes in sun397_hierarchy()["outdoor_natural"].items()}
    {'water_ice_snow': 35, 'mountains_hills_desert_sky': 13, 'forest_field_jungle': 34}
    """
    if which not in ("paper", "full"):
        raise ValueError(f"hierarchy must be 'paper' or 'full', got {which!r}.")
    indoor = _columns("sun397_indoor.csv" if which == "paper" else "sun397_indoor_full.csv")
    outdoor = _columns("sun397_outdoor.csv")
    levels = {
        "indoor": indoor,
        "outdoor_natural": {name: outdoor[name] for name in NATURAL_GROUPS},
        "outdoor_manmade": {name: outdoor[name] for name in outdoor if name not in NATURAL_GROUPS},
    }
    if which == "paper":
        del levels["outdoor_manmade"]
    seen: set[str] = set()
    unique: dict[str, dict[str, tuple[str, ...]]] = {}
    for level1, groups in levels.items():
        unique[level1] = {}
        for level2, subtypes in groups.items():
            unique[level1][level2] = tuple(s for s in subtypes if s not in seen)
            seen.update(subtypes)
    return unique


def load_sun397(path: str | Path, *, hierarchy: str = "paper", partial: bool = False) -> Dataset:
    """SUN397: ``label`` is the level-2 class, ``subtype`` the category such as ``/b/bakery/shop``.

    ``columns["level1"]`` is indoor, outdoor_natural or outdoor_manmade. ``path`` is the official folder tree.
    Every category of the hierarchy must have 100 images or more. With ``partial=True`` it need not; ``notes``
    then lists what is missing. Images are read when they are asked for. There is no official split of all
    images, so ``split`` is None.
    """
    found = existing(path, SOURCE)
    root = found / "SUN397" if (found / "SUN397").is_dir() else found
    rows: list[tuple[str, str, str, str]] = []
    problems: list[str] = []
    for level1, groups in sun397_hierarchy(hierarchy).items():
        for level2, subtypes in groups.items():
            for subtype in subtypes:
                names = _images_in(root / subtype[1:])
                rows += [(f"{subtype[1:]}/{name}", level1, level2, subtype) for name in names]
                if len(names) < FEWEST_IMAGES:
                    problems.append(f"{subtype} has {len(names)} images, not {FEWEST_IMAGES} or more")
    if not rows or (problems and not partial):
        state = "is not all of SUN397" if rows else "holds no category of SUN397"
        raise ValueError(
            f"{root} {state}: {listed(problems)}. {SOURCE} With partial=True the images found are loaded."
        )
    paths, level1s, labels, subtype_names = zip(*rows, strict=True)
    return Dataset(
        name="sun397", title="SUN397" + (" (partial)" if problems else ""), citation=CITATION,
        label=np.asarray(labels), subtype=np.asarray(subtype_names), images=ImageFiles(root, as_objects(paths)),
        columns={"level1": np.asarray(level1s)}, notes=tuple(problems),
    )  # fmt: skip


def _columns(file: str) -> dict[str, tuple[str, ...]]:
    """A table of the hierarchy: each column is a level-2 class, with its subtypes below."""
    text = (files("openset.data.datasets") / "hierarchy" / file).read_text(encoding="utf-8")
    header, *body = csv.reader(text.splitlines())
    official = [[_OFFICIAL_NAMES.get(name, name) for name in row] for row in body]
    return {level2: tuple(row[i] for row in official if row[i]) for i, level2 in enumerate(header)}


def _images_in(folder: Path) -> list[str]:
    """The images of a category; those in folders below it are not official."""
    return [name for name in list_images(folder) if "/" not in name]
