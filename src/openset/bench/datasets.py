"""The paper's datasets as sources of problems; a stand-in that lies in their place is used, and named as such."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.bench.problems import (
    BenchProblem,
    ProblemSource,
    Setting,
    problem_from_split,
    register_source,
)
from openset.data.dataset import Dataset

AMAZON_CATEGORIES = ("music", "software", "health_personal_care", "kitchen_housewares", "toys_games", "apparel")
"""Those of the stand-in that come nearest to the paper's six."""
CLINC_KNOWN = ("banking", "travel", "home", "work", "small_talk")
SUN_KNOWN = ("indoor", "outdoor_manmade")
CIFAR_NOVEL = ("baby", "man", "butterfly", "rocket", "streetcar")


def _amazon(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float = 0.09
) -> BenchProblem:
    """Reviews of six categories, one of them new; sentiment flips between source and target."""
    from openset.shift import sentiment_shift

    data, features = _features("amazon_fdu_mtl", _below(data_dir, "amazon_reviews"))
    split = sentiment_shift(
        category=data.label,
        sentiment=_present(data.sentiment),
        split=_present(data.split),
        known=[name for name in AMAZON_CATEGORIES if name != novel],
        novel=novel,
        shift=setting == "shift",
        novel_fraction=novel_fraction,
        random_state=seed,
    )
    return problem_from_split(features, split, stand_in_for=data.stand_in_for or "")


def _sun(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float | None = None
) -> BenchProblem:
    """Indoor and man-made outdoor scenes, whose categories are the subtypes; one category is new."""
    from openset.shift import content_keys, subtype_shift

    data, features = _features("sun_scenes", _below(data_dir, "sun_scenes"))
    split = subtype_shift(
        group=data.label,
        subtype=_present(data.subtype),
        novel_subtypes=[novel],
        known=SUN_KNOWN,
        shift=setting == "shift",
        novel_fraction=novel_fraction,
        content=content_keys(features),
        random_state=seed,
    )
    return problem_from_split(features, split, stand_in_for=data.stand_in_for or "")


def _clinc(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float = 0.09
) -> BenchProblem:
    """Queries of five domains, whose intents are the subtypes; a sixth domain is new."""
    from openset.shift import content_keys, subtype_shift

    data, features = _features("clinc150", _below(data_dir, "clinc150"))
    split = subtype_shift(
        group=data.label,
        subtype=_present(data.subtype),
        novel_group=novel,
        subtype_share=1.0,
        known=[name for name in CLINC_KNOWN if name != novel],
        shift=setting == "shift",
        novel_fraction=novel_fraction,
        content=content_keys(_present(data.texts)),
        random_state=seed,
    )
    return problem_from_split(features, split)


def _cifar(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, novel_fraction: float | None = None
) -> BenchProblem:
    """CIFAR-100 by frozen EfficientNet-Lite0 features; copies of an image are left out, unlike in the paper."""
    from openset.shift import cifar_shift, content_keys

    data, features = _features("cifar100", _below(data_dir, "cifar100/cifar100_26classes.npz"))
    split = cifar_shift(
        coarse=data.label,
        fine=_present(data.subtype),
        split=_present(data.split),
        novel=novel,
        shift=setting == "shift",
        novel_fraction=novel_fraction,
        content=content_keys(_present(data.images)),
        random_state=seed,
    )
    return problem_from_split(features, split)


@lru_cache(maxsize=2)
def _features(name: str, folder: Path) -> tuple[Dataset, NDArray[np.float32]]:
    """A dataset and features of its rows: those that came with it, or those of the embedded encoders, cached."""
    from openset.data.catalogue import load_dataset
    from openset.encoders import encode_images, encode_texts

    data = load_dataset(name, folder, **({"partial": True} if name == "cifar100" else {}))
    if data.features is not None:
        return data, np.asarray(data.features, np.float32)
    if data.texts is not None:
        return data, encode_texts(data.texts)
    return data, encode_images(_present(data.images))


def _present(column: Any) -> Any:
    assert column is not None
    return column


def _below(data_dir: Path | None, name: str) -> Path:
    if data_dir is None:
        raise ValueError(f"{name} needs a data folder: pass --data FOLDER, which holds {name}/.")
    return data_dir / name


register_source(
    ProblemSource(
        "amazon",
        _amazon,
        "Amazon reviews, sentiment flips",
        novel=AMAZON_CATEGORIES,
        files=("amazon_reviews/reviews.parquet", "amazon_reviews/minilm.npy"),
    )
)
register_source(
    ProblemSource(
        "sun",
        _sun,
        "SUN scenes, indoor and man-made",
        novel=("desert", "waterfall", "campus", "highway", "windmill"),
        files=("sun_scenes/index.csv", "sun_scenes/efficientnet_lite0.npy"),
    )
)
register_source(
    ProblemSource(
        "clinc150",
        _clinc,
        "CLINC150 queries, domains of intents",
        novel=("credit_cards", "kitchen_and_dining", "auto_and_commute"),
        files=("clinc150/queries.parquet",),
    )
)
register_source(
    ProblemSource(
        "cifar100",
        _cifar,
        "CIFAR-100, frozen features",
        novel=CIFAR_NOVEL,
        files=("cifar100/cifar100_26classes.npz",),
    )
)
