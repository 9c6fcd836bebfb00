"""Problems on the paper's datasets, on the stand-ins for them, and on CLINC150."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_choice, check_list
from openset.bench.problems.loading import (
    CIFAR_FILES,
    CIFAR_NOVEL,
    Encoding,
    cifar_classes,
    load_cifar,
    load_with_features,
    present,
)
from openset.bench.problems.names import with_names
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

AMAZON_FRACTIONS = {
    "Musical_Instruments": 0.32,
    "Digital_Music": 0.11,
    "Software": 0.07,
    "Luxury_Beauty": 0.07,
    "Industrial_and_Scientific": 0.22,
    "Prime_Pantry": 0.18,
}
"""The share of each new category in the target, as the paper's table of Amazon Reviews prints it."""
STAND_IN_CATEGORIES = {
    "music": "Digital_Music",
    "software": "Software",
    "health_personal_care": "Luxury_Beauty",
    "kitchen_housewares": "Prime_Pantry",
    "toys_games": "Musical_Instruments",
    "apparel": "Industrial_and_Scientific",
}
"""The categories of the Amazon stand-in that are most like the paper's six, each with the one it replaces."""
SUBTYPE_OPTIONS = ("known", "test_fraction", "n_novel_subtypes", "subtype_share", "novel_share")
"""The options of :func:`openset.shift.subtype_shift` that a spec may set."""
CIFAR_OPTIONS = ("without", "novel_share", "novel_fraction", "copies")
CLINC_KNOWN = ("banking", "travel", "home", "work", "small_talk")
SUN_KNOWN = ("indoor", "outdoor_manmade")

Fractions = float | Mapping[str, float] | None
"""A share of novel rows: one for all new classes, or one for each of the paper's; None for the paper's."""


def _amazon(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    pooling: str | None = None,
    max_tokens: int | None = None,
    names: bool = False,
    novel_fraction: Fractions = None,
    copies: bool = False,
    **recipe: Any,
) -> BenchProblem:
    """The paper's six categories, one of which is new; sentiment flips between source and target.

    ``pooling`` and ``max_tokens`` are those of the text encoder; the authors have "pooler" and 512. ``device`` is
    where the encoder computes.
    """
    check_choice("novel", novel, PAPER_CATEGORIES)
    encoding = Encoding.of(encoder, device, pooling=pooling, max_tokens=max_tokens)
    data, features = load_with_features("amazon", data_dir, encoding)
    fraction = _fraction_of(novel, novel_fraction)
    made = _sentiment_problem(data, features, PAPER_CATEGORIES, setting, novel, seed, fraction, copies, **recipe)
    return with_names(made, data, novel, encoding, data_dir) if names else made


def _amazon_stand_in(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    pooling: str | None = None,
    max_tokens: int | None = None,
    names: bool = False,
    novel_fraction: Fractions = None,
    copies: bool = False,
) -> BenchProblem:
    """The same recipe on older reviews of other categories, each with the share of the one it replaces.

    The features are those of its folder, unless an encoder or a setting of one is asked for.
    """
    encoding = Encoding.of(encoder, device, pooling=pooling, max_tokens=max_tokens)
    data, features = load_with_features("amazon_fdu_mtl", data_dir, encoding)
    check_choice("novel", novel, np.unique(data.label).tolist())
    fraction = _fraction_of(STAND_IN_CATEGORIES.get(novel, novel), novel_fraction)
    made = _sentiment_problem(data, features, tuple(STAND_IN_CATEGORIES), setting, novel, seed, fraction, copies)
    return with_names(made, data, novel, encoding, data_dir) if names else made


def _fraction_of(category: str, asked: Fractions) -> float:
    """The share of a new category in the target: the one asked for all or for it, else the paper's.

    >>> [_fraction_of("Software", asked) for asked in (None, 0.2, {"Software": 0.06})]
    [0.07, 0.2, 0.06]
    """
    if isinstance(asked, float | int):
        return asked
    fractions = {**AMAZON_FRACTIONS, **(asked or {})}
    if category not in fractions:
        known = ", ".join(fractions)
        raise ValueError(f"there is no novel_fraction for {category!r}, only for {known}: give a number.")
    return fractions[category]


def _sentiment_problem(
    data: Dataset,
    features: NDArray[np.float32],
    categories: Sequence[str],
    setting: Setting,
    novel: str,
    seed: int,
    novel_fraction: float,
    copies: bool = False,
    **recipe: Any,
) -> BenchProblem:
    """All novel rows beside the known ones, of which as many are dropped as the share asks.

    Copies of a review are dropped unless ``copies``.
    """
    from openset.shift import sentiment_shift

    split = sentiment_shift(
        category=data.label,
        sentiment=present(data.sentiment),
        split=data.split,
        known=[name for name in categories if name != novel],
        novel=novel,
        novel_share=1.0,
        shift=setting == "shift",
        content=None if copies else _content(data, features),
        random_state=seed,
        **recipe,
    )
    made = problem_from_split(features, split, stand_in_for=data.stand_in_for or "")
    return thinned(made, novel_fraction, seed)


def _sun397(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    cells: int | None = None,
    names: bool = False,
    novel_fraction: float | None = None,
    copies: bool = False,
    **recipe: Any,
) -> BenchProblem:
    """Six indoor classes of eight subtypes; four subtypes of a natural group, drawn by the seed, are new.

    Four subtypes have some hundreds of images: with a large ``novel_fraction`` known rows of the target are
    dropped.
    """
    encoding = Encoding.of(encoder, device, cells=cells)
    data, features = load_with_features("sun397", data_dir, encoding)
    known = np.unique(data.label[data.columns["level1"] == "indoor"]).tolist()
    recipe = {"novel_group": novel, "known": known, "copies": copies, **recipe}
    made = _subtype_problem_of_share(data, features, setting, seed, novel_fraction, **recipe)
    return with_names(made, data, novel, encoding, data_dir) if names else made


def _sun(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    cells: int | None = None,
    names: bool = False,
    novel_fraction: float | None = None,
    copies: bool = False,
) -> BenchProblem:
    """Indoor and man-made outdoor scenes, whose categories are the subtypes; one category is new.

    A category has about 250 images at most: with a large ``novel_fraction`` known rows of the target are dropped.
    """
    encoding = Encoding.of(encoder, device, cells=cells)
    data, features = load_with_features("sun_scenes", data_dir, encoding)
    recipe = {"novel_subtypes": [novel], "known": SUN_KNOWN, "copies": copies}
    made = _subtype_problem_of_share(data, features, setting, seed, novel_fraction, **recipe)
    return with_names(made, data, novel, encoding, data_dir) if names else made


def _clinc(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    names: bool = False,
    copies: bool = False,
    **recipe: Any,
) -> BenchProblem:
    """Queries of five domains with intents as subtypes; a sixth domain is new, by default 9 % of target."""
    encoding = Encoding.of(encoder, device)
    data, features = load_with_features("clinc150", data_dir, encoding)
    known = [name for name in CLINC_KNOWN if name != novel]
    recipe = {"novel_group": novel, "subtype_share": 1.0, "novel_fraction": 0.09, "known": known, **recipe}
    made = _subtype_problem(data, features, setting, seed, copies=copies, **recipe)
    return with_names(made, data, novel, encoding, data_dir) if names else made


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
    data: Dataset,
    features: NDArray[np.float32],
    setting: Setting,
    seed: int,
    *,
    copies: bool = False,
    **recipe: Any,
) -> BenchProblem:
    """Copies of a text or an image are dropped unless ``copies``."""
    from openset.shift import subtype_shift

    split = subtype_shift(
        group=data.label,
        subtype=present(data.subtype),
        shift=setting == "shift",
        content=None if copies else _content(data, features),
        random_state=seed,
        **recipe,
    )
    made = problem_from_split(features, split, stand_in_for=data.stand_in_for or "")
    return replace(made, new_subtypes=len(split.manifest.label["novel"]["subtype"]))


def _content(data: Dataset, features: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Keys that are equal for copies: equal texts, or images of equal features, which need not be decoded."""
    from openset.shift import content_keys

    return content_keys(features if data.texts is None else data.texts)


def _cifar(
    setting: Setting,
    novel: str,
    seed: int,
    data_dir: Path | None,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    cells: int | None = None,
    names: bool = False,
    known: Sequence[str] = (),
    **options: Any,
) -> BenchProblem:
    """CIFAR-100 as frozen features."""
    check_list("known", known)
    encoding = Encoding.of(encoder, device, cells=cells)
    data, features = load_cifar(data_dir, cifar_classes(known, novel), encoding)
    made = _cifar_problem(data, features, setting, novel, seed, known=known, **options)
    return with_names(made, data, novel, encoding, data_dir) if names else made


def _cifar_images(
    setting: Setting, novel: str, seed: int, data_dir: Path | None, *, known: Sequence[str] = (), **options: Any
) -> BenchProblem:
    """CIFAR-100 as images, for methods with a backbone."""
    check_list("known", known)
    data, images = load_cifar(data_dir, cifar_classes(known, novel), None)
    return _cifar_problem(data, images, setting, novel, seed, known=known, **options)


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
    copies: bool = False,
) -> BenchProblem:
    """The paper's recipe. Copies of an image are dropped unless ``copies``: the paper's splits have them.

    ``known`` are superclasses, by default the paper's four. The new class may be a subtype of one of them; the
    classes in ``without`` are then dropped, so that superclasses keep equally many subtypes.
    """
    from openset.shift import CIFAR_SUPERCLASSES, cifar_shift, content_keys

    check_list("without", without)
    fine = present(data.subtype)
    used = np.flatnonzero(~np.isin(fine, [name for name in without if name != novel]))
    split = cifar_shift(
        coarse=data.label[used],
        fine=fine[used],
        split=present(data.split)[used],
        novel=novel,
        known=known or CIFAR_SUPERCLASSES,
        shift=setting == "shift",
        novel_share=novel_share,
        novel_fraction=novel_fraction,
        content=None if copies else content_keys(present(data.images)[used]),
        random_state=seed,
    )
    return problem_from_split(rows[used], split)


def _encode_first(name: str) -> Any:
    """Return a ``prepare`` that fills the cache of features, so that workers do not each encode."""

    def prepare(
        data_dir: Path | None,
        progress: bool,
        *,
        encoder: str | None = None,
        device: str = "cpu",
        pooling: str | None = None,
        max_tokens: int | None = None,
        cells: int | None = None,
        **others: Any,
    ) -> None:
        encoding = Encoding.of(encoder, device, pooling=pooling, max_tokens=max_tokens, cells=cells)
        load_with_features(name, data_dir, encoding, progress)

    return prepare


def _encode_cifar(
    data_dir: Path | None,
    progress: bool,
    *,
    encoder: str | None = None,
    device: str = "cpu",
    cells: int | None = None,
    known: Sequence[str] = (),
    **others: Any,
) -> None:
    load_cifar(
        data_dir, cifar_classes(known, CIFAR_NOVEL[0]), Encoding.of(encoder, device, cells=cells), progress
    )


SOURCES = (
    ProblemSource(
        "amazon",
        _amazon,
        "Amazon Reviews 2018, sentiment flips",
        novel=PAPER_CATEGORIES,
        passes_on=("n_train", "n_test"),
        shift_of="sentiment",
        files=tuple(  # not those of the products, meta_*.json.gz
            f"amazon_reviews/{name}*.json* or amazon_reviews/reviews_{name}*.json*" for name in PAPER_CATEGORIES
        ),
        stand_in="amazon-fdu-mtl",
        prepare=_encode_first("amazon"),
    ),
    ProblemSource(
        "amazon-fdu-mtl",
        _amazon_stand_in,
        "older Amazon reviews, MiniLM features; a stand-in",
        novel=tuple(STAND_IN_CATEGORIES),
        shift_of="sentiment",
        files=("amazon_reviews/reviews.parquet", "amazon_reviews/minilm.npy"),
        preset="amazon_minilm",
        prepare=_encode_first("amazon_fdu_mtl"),
        caveat="each new category has the share of the paper's category that it replaces, beside 2500 known "
        "target rows as in the paper.",
    ),
    ProblemSource(
        "sun397",
        _sun397,
        "SUN397, indoor classes of subtypes",
        novel=NATURAL_GROUPS,
        passes_on=SUBTYPE_OPTIONS,
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
        prepare=_encode_first("sun_scenes"),
        caveat="a category has about 250 images, two classes are known instead of six, and what is new is one "
        "category instead of four; where a share needs more new rows, known target rows are dropped.",
    ),
    ProblemSource(
        "clinc150",
        _clinc,
        "CLINC150 queries, domains of intents",
        novel=("credit_cards", "kitchen_and_dining", "auto_and_commute"),
        passes_on=(*SUBTYPE_OPTIONS, "novel_fraction"),
        files=("clinc150/queries.parquet",),
        prepare=_encode_first("clinc150"),
    ),
    ProblemSource(
        "cifar100",
        _cifar,
        "CIFAR-100, frozen features",
        novel=CIFAR_NOVEL,
        passes_on=CIFAR_OPTIONS,
        files=(" or ".join(CIFAR_FILES),),
        prepare=_encode_cifar,
        caveat="classes, seeds and shares are the paper's, the features are not: they come from a network that "
        "was trained on ImageNet, and the paper's learned from these images alone. Of images that are there "
        "twice one is dropped (12 to 18 of 11 000 rows of a split), unless copies = true, as in the paper.",
    ),
    ProblemSource(
        "cifar100-images",
        _cifar_images,
        "CIFAR-100 images, for methods with a backbone",
        novel=CIFAR_NOVEL,
        passes_on=CIFAR_OPTIONS,
        files=(" or ".join(CIFAR_FILES),),
        no_oracle="methods learn their features from the images. A linear classifier of pixels would tell "
        "nothing of such features, and a network with the true labels would have to be trained for every split. "
        "results-cifar100 has the oracle of frozen features, of the same classes and seeds.",
    ),
)
