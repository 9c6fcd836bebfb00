"""Problems on the paper's datasets, on the stand-ins for them, and on CLINC150."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.bench.problems.sources import (
    BenchProblem,
    ProblemSource,
    Setting,
    problem_from_split,
    thinned,
)
from openset.data.datasets.amazon import PAPER_CATEGORIES
from openset.data.datasets.dataset import Dataset
from openset.data.datasets.sun397 import NATURAL_GROUPS

STAND_IN_CATEGORIES = ("music", "software", "health_personal_care", "kitchen_housewares", "toys_games", "apparel")
"""The categories of the Amazon stand-in that are most like the paper's six."""
CLINC_KNOWN = ("banking", "travel", "home", "work", "small_talk")
SUN_KNOWN = ("indoor", "outdoor_manmade")
CIFAR_NOVEL = ("baby", "man", "butterfly", "rocket", "streetcar")
PER_SENTIMENT = 625
"""Reviews per category and sentiment in the paper: 500 for source and target, 125 for testing."""

_PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "amazon": ("amazon_reviews", {"categories": PAPER_CATEGORIES, "per_sentiment": PER_SENTIMENT}),
    "amazon_fdu_mtl": ("amazon_reviews", {}),
    "sun397": ("SUN397", {}),
    "sun_scenes": ("sun_scenes", {}),
    "clinc150": ("clinc150", {}),
    "cifar100": ("cifar100/cifar100_26classes.npz", {"partial": True}),
}
"""The path of each dataset in the data folder, and the options to read it with."""


def _amazon(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, encoder: str | None = None, **recipe: Any
) -> BenchProblem:
    """The paper's six categories, one of which is new; sentiment flips between source and target."""
    data, features = _features("amazon", data_dir, encoder)
    return _sentiment_problem(data, features, PAPER_CATEGORIES, setting, novel, seed, **recipe)


def _amazon_stand_in(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float = 0.09
) -> BenchProblem:
    """The same recipe on older reviews of other categories."""
    data, features = _features("amazon_fdu_mtl", data_dir)
    categories = STAND_IN_CATEGORIES
    return _sentiment_problem(data, features, categories, setting, novel, seed, novel_fraction=novel_fraction)


def _sentiment_problem(
    data: Dataset,
    features: NDArray[np.float32],
    categories: Sequence[str],
    setting: Setting,
    novel: str,
    seed: int,
    **recipe: Any,
) -> BenchProblem:
    from openset.shift import sentiment_shift

    split = sentiment_shift(
        category=data.label,
        sentiment=_present(data.sentiment),
        split=data.split,
        known=[name for name in categories if name != novel],
        novel=novel,
        shift=setting == "shift",
        random_state=seed,
        **recipe,
    )
    return problem_from_split(features, split, stand_in_for=data.stand_in_for or "")


def _sun397(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    encoder: str | None = None,
    novel_fraction: float | None = None,
    **recipe: Any,
) -> BenchProblem:
    """Six indoor classes of eight subtypes; four subtypes of a natural group, drawn by the seed, are new.

    Four subtypes have some hundreds of images: with a large ``novel_fraction`` known rows of the target are
    dropped.
    """
    data, features = _features("sun397", data_dir, encoder)
    known = np.unique(data.label[data.columns["level1"] == "indoor"]).tolist()
    recipe = {"novel_group": novel, "known": known, **recipe}
    return _subtype_problem_of_share(data, features, setting, seed, novel_fraction, **recipe)


def _sun(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float | None = None
) -> BenchProblem:
    """Indoor and man-made outdoor scenes, whose categories are the subtypes; one category is new.

    A category has about 250 images at most: with a large ``novel_fraction`` known rows of the target are dropped.
    """
    data, features = _features("sun_scenes", data_dir)
    recipe = {"novel_subtypes": [novel], "known": SUN_KNOWN}
    return _subtype_problem_of_share(data, features, setting, seed, novel_fraction, **recipe)


def _clinc(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, encoder: str | None = None, **recipe: Any
) -> BenchProblem:
    """Queries of five domains with intents as subtypes; a sixth domain is new, by default 9 % of target."""
    data, features = _features("clinc150", data_dir, encoder)
    known = [name for name in CLINC_KNOWN if name != novel]
    recipe = {"novel_group": novel, "subtype_share": 1.0, "novel_fraction": 0.09, "known": known, **recipe}
    return _subtype_problem(data, features, setting, seed, **recipe)


def _subtype_problem_of_share(
    data: Dataset,
    features: NDArray[np.float32],
    setting: Setting,
    seed: int,
    novel_fraction: float | None,
    **recipe: Any,
) -> BenchProblem:
    """Half of the novel rows in target, as in the paper, or all beside as many known ones as the share asks."""
    if novel_fraction is None:
        return _subtype_problem(data, features, setting, seed, **recipe)
    problem = _subtype_problem(data, features, setting, seed, **{"novel_share": 1.0, **recipe})
    return thinned(problem, novel_fraction, seed)


def _subtype_problem(
    data: Dataset, features: NDArray[np.float32], setting: Setting, seed: int, **recipe: Any
) -> BenchProblem:
    from openset.shift import content_keys, subtype_shift

    split = subtype_shift(
        group=data.label,
        subtype=_present(data.subtype),
        shift=setting == "shift",
        content=content_keys(features if data.texts is None else data.texts),
        random_state=seed,
        **recipe,
    )
    return problem_from_split(features, split, stand_in_for=data.stand_in_for or "")


def _cifar(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    encoder: str | None = None,
    **options: Any,
) -> BenchProblem:
    """CIFAR-100 as frozen features."""
    data, features = _features("cifar100", data_dir, encoder)
    return _cifar_problem(data, features, setting, novel, seed, **options)


def _cifar_images(setting: Setting, novel: str, seed: int, data_dir: Path | None, **options: Any) -> BenchProblem:
    """CIFAR-100 as images, for methods with a backbone."""
    data = _dataset("cifar100", data_dir)
    return _cifar_problem(data, _present(data.images), setting, novel, seed, **options)


def _cifar_problem(
    data: Dataset,
    rows: NDArray[Any],
    setting: Setting,
    novel: str,
    seed: int,
    *,
    known: Sequence[str] = (),
    without: Sequence[str] = (),
    novel_share: float = 0.5,
    novel_fraction: float | None = None,
) -> BenchProblem:
    """The paper's recipe; unlike in the paper, copies of an image are dropped.

    ``known`` are superclasses, by default the paper's four. The new class may be a subtype of one of them; the
    classes in ``without`` are then dropped, so that superclasses keep equally many subtypes.
    """
    from openset.shift import CIFAR_SUPERCLASSES, cifar_shift, content_keys

    fine = _present(data.subtype)
    used = np.flatnonzero(~np.isin(fine, [name for name in without if name != novel]))
    split = cifar_shift(
        coarse=data.label[used],
        fine=fine[used],
        split=_present(data.split)[used],
        novel=novel,
        known=known or CIFAR_SUPERCLASSES,
        shift=setting == "shift",
        novel_share=novel_share,
        novel_fraction=novel_fraction,
        content=content_keys(_present(data.images)[used]),
        random_state=seed,
    )
    return problem_from_split(rows[used], split)


@lru_cache(maxsize=2)
def _dataset(name: str, data_dir: Path | None) -> Dataset:
    from openset.data.datasets.catalogue import load_dataset

    path, options = _PATHS[name]
    if data_dir is None:
        raise ValueError(f"{name} needs a data folder: pass --data FOLDER, a folder with {path}.")
    return load_dataset(name, data_dir / path, **options)


@lru_cache(maxsize=2)
def _features(
    name: str, data_dir: Path | None, encoder: str | None = None, progress: bool = False
) -> tuple[Dataset, NDArray[np.float32]]:
    """A dataset and the features of its rows: its own, or an encoder's, which are cached on disk."""
    from openset.features import encode_images, encode_texts

    data = _dataset(name, data_dir)
    if data.features is not None:
        return data, np.asarray(data.features, np.float32)
    assert data_dir is not None
    if data.texts is not None:
        return data, encode_texts(data.texts, _encoder(encoder or "minilm", data_dir), progress=progress)
    chosen = _encoder(encoder or "efficientnet_lite0", data_dir)
    return data, encode_images(_present(data.images), chosen, progress=progress)


def _encoder(name: str, data_dir: Path) -> str | Path:
    """The folder of that name in ``encoders`` of the data folder if there is one, else the name."""
    local = data_dir / "encoders" / name.rpartition("/")[2]
    return local if local.is_dir() else name


def _present(column: Any) -> Any:
    assert column is not None
    return column


def _encode_first(name: str) -> Any:
    """Return a ``prepare`` that fills the cache of features, so that workers do not each encode."""
    return lambda data_dir, encoder, progress: _features(name, data_dir, encoder, progress)


SOURCES = (
    ProblemSource(
        "amazon",
        _amazon,
        "Amazon Reviews 2018, sentiment flips",
        novel=PAPER_CATEGORIES,
        shift_of="sentiment",
        files=tuple(f"amazon_reviews/*{name}*.json*" for name in PAPER_CATEGORIES),
        stand_in="amazon-fdu-mtl",
        prepare=_encode_first("amazon"),
    ),
    ProblemSource(
        "amazon-fdu-mtl",
        _amazon_stand_in,
        "older Amazon reviews, MiniLM features; a stand-in",
        novel=STAND_IN_CATEGORIES,
        shift_of="sentiment",
        files=("amazon_reviews/reviews.parquet", "amazon_reviews/minilm.npy"),
        preset="amazon_minilm",
    ),
    ProblemSource(
        "sun397",
        _sun397,
        "SUN397, indoor classes of subtypes",
        novel=NATURAL_GROUPS,
        files=("SUN397",),
        stand_in="sun",
        prepare=_encode_first("sun397"),
    ),
    ProblemSource(
        "sun",
        _sun,
        "SUN scenes, EfficientNet-Lite0 features; a stand-in: indoor and man-made",
        novel=("desert", "waterfall", "campus", "highway", "windmill"),
        files=("sun_scenes/index.csv", "sun_scenes/efficientnet_lite0.npy"),
    ),
    ProblemSource(
        "clinc150",
        _clinc,
        "CLINC150 queries, domains of intents",
        novel=("credit_cards", "kitchen_and_dining", "auto_and_commute"),
        files=("clinc150/queries.parquet",),
        prepare=_encode_first("clinc150"),
    ),
    ProblemSource(
        "cifar100",
        _cifar,
        "CIFAR-100, frozen features",
        novel=CIFAR_NOVEL,
        files=("cifar100/cifar100_26classes.npz",),
        prepare=_encode_first("cifar100"),
    ),
    ProblemSource(
        "cifar100-images",
        _cifar_images,
        "CIFAR-100 images, for methods with a backbone",
        novel=CIFAR_NOVEL,
        files=("cifar100/cifar100_26classes.npz",),
    ),
)
