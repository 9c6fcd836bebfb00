"""The paper's three recipes for background shift: which share of every subtype is source, and what is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset._utils.params import check_flag, check_integer, check_number
from openset.shift.columns import as_columns, matches, require
from openset.shift.drawing import (
    Cell,
    Pools,
    Recipe,
    divide_truncated,
    draw,
    generator,
    known_classes,
    make_pools,
)
from openset.shift.split import ShiftSplit

CIFAR_SUPERCLASSES = ("aquatic_mammals", "fish", "flowers", "fruit_and_vegetables")
PAPER_SEEDS = (0, 8, 103, 573, 1057)
_NO_SHIFT = (0.45, 0.5)


def cifar_shift(
    *,
    coarse: ArrayLike,
    fine: ArrayLike,
    split: ArrayLike,
    novel: Any,
    known: Sequence[Any] = CIFAR_SUPERCLASSES,
    shift: bool = True,
    novel_share: float = 0.5,
    novel_fraction: float | None = None,
    content: ArrayLike | None = None,
    novel_label: Any = None,
    random_state: int = 0,
) -> ShiftSplit:
    """The CIFAR-100 recipe: subtype shares U(.2, 1), the same in every superclass, so that classes stay balanced.

    Subtype j (in order of names) of every known superclass ``coarse`` gives int(n·m_j) of its n rows to source
    and int(n·(1 − m_j)) to target, with m_j = round(U(.2, 1), 2). The new class is the class ``novel`` of
    ``fine``: ``novel_share`` of its rows go to target. Rows whose ``split`` is "test" are cut the same way.
    ``shift=False`` draws m from U(.45, .5). ``novel_fraction`` sets the share of new rows in target and test
    instead, and then may use all rows of the new class. Of rows with equal ``content`` one is used; the sizes
    in the paper come without that check.

    >>> fine = np.repeat(["carp", "pike", "oak", "elm", "man"], 60)
    >>> coarse = np.repeat(["fish", "tree", "people"], [120, 120, 60])
    >>> split = np.tile(["train"] * 5 + ["test"], 50)
    >>> made = cifar_shift(coarse=coarse, fine=fine, split=split, novel="man", known=["fish", "tree"])
    >>> [(cell["subtype"], cell["share"], cell["source"]) for cell in made.manifest.proportions[:2]]
    [('carp', 0.64, 32), ('pike', 0.77, 38)]
    >>> len(made.target), round(made.novel_fraction, 2)
    (83, 0.3)
    """
    check_flag("shift", shift)
    columns = as_columns(coarse=coarse, fine=fine, split=split, content=content)
    new = require("fine", columns["fine"], [novel])
    recipe = Recipe(
        name="cifar_shift",
        seed=random_state,
        parameters={"novel": novel, "known": known, "shift": shift, "novel_share": novel_share},
        columns=columns,
        label="coarse",
        subtype="fine",
        known=known_classes("coarse", columns["coarse"], known, ()),
        novel={"fine": new},
        novel_label=novel_label,
        novel_fraction=novel_fraction,
    )
    random = generator(random_state)
    pools = make_pools(recipe, test_fraction=0.0, random=random)
    per_class = _equal_number_of_subtypes(pools, recipe.known)
    # the legacy generator: the published splits were drawn with it
    legacy = np.random.RandomState(random_state)
    shares = np.round(legacy.uniform(*((0.2, 1.0) if shift else _NO_SHIFT), per_class), 2)
    return draw(
        recipe,
        pools,
        np.tile(shares, len(recipe.known)).tolist(),
        divide=divide_truncated,
        novel_size=_share_of(novel_share),
        random=random,
    )


def _equal_number_of_subtypes(pools: Pools, known: Sequence[Any]) -> int:
    counts = {label: sum(cell.label == label for cell in pools.known) for label in known}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{label!r} {n}" for label, n in counts.items())
        raise ValueError(
            f"the known classes differ in their number of subtypes ({listed}): one draw of "
            "shares serves all, so each needs equally many. Are rows of a subtype missing?"
        )
    return next(iter(counts.values()))


def sentiment_shift(
    *,
    category: ArrayLike,
    sentiment: ArrayLike,
    novel: Any,
    known: Sequence[Any] | None = None,
    split: ArrayLike | None = None,
    n_train: int = 500,
    n_test: int = 125,
    shift: bool = True,
    novel_fraction: float | None = None,
    content: ArrayLike | None = None,
    novel_label: Any = None,
    random_state: int = 0,
) -> ShiftSplit:
    """The Amazon Reviews recipe: classes stay balanced while their sentiment flips between source and target.

    Every known ``category`` uses up to ``n_train`` rows of each of the two ``sentiment`` values (as many of the
    one as of the other) for source and target together, and up to ``n_test`` for testing. Its share m of the
    lower sentiment that goes to source is drawn without replacement from values U(.08, .15) and U(.85, .92), as
    many of each as there are classes; 1 − m of the higher one joins them and the rest is target.
    ``shift=False`` draws m from U(.45, .5). The ``novel`` category goes to target only, as many rows as of a
    known category, or as many as ``novel_fraction`` asks for. Without a ``split`` column (of "train" and "test")
    test rows are held out of each category and sentiment.

    >>> category, sentiment = np.repeat(["books", "music", "toys"], 400), np.tile([0, 1], 600)
    >>> made = sentiment_shift(category=category, sentiment=sentiment, novel="toys", n_train=100, n_test=25)
    >>> made.manifest.sizes
    {'source': 200, 'target': 400, 'test_source': 50, 'test_target': 100}
    """
    check_flag("shift", shift)
    check_integer("n_train", n_train, low=2)
    check_integer("n_test", n_test, low=0)
    columns = as_columns(category=category, sentiment=sentiment, split=split, content=content)
    new = require("category", columns["category"], [novel])
    recipe = Recipe(
        name="sentiment_shift",
        seed=random_state,
        parameters={"novel": novel, "known": known, "n_train": n_train, "n_test": n_test, "shift": shift},
        columns=columns,
        label="category",
        subtype="sentiment",
        known=known_classes("category", columns["category"], known, new),
        novel={"category": new},
        novel_label=novel_label,
        novel_fraction=novel_fraction,
    )
    _two_sentiments(columns["category"], columns["sentiment"], recipe.known)
    random = generator(random_state)
    lower = _shares(len(recipe.known), shift, random)
    pools = make_pools(recipe, test_fraction=n_test / (n_test + n_train), random=random)
    balanced = [
        cell
        for label in recipe.known
        for cell in _balanced([cell for cell in pools.known if cell.label == label], n_train, n_test, random)
    ]
    largest = {"target": 2 * n_train, "test_target": 2 * n_test}
    return draw(
        recipe,
        Pools(balanced, pools.novel, pools.duplicates),
        np.column_stack([lower, 1 - lower]).ravel().tolist(),
        novel_size=lambda n, part: min(n, largest[part]),
        random=random,
    )


def _two_sentiments(category: NDArray[Any], sentiment: NDArray[Any], known: Sequence[Any]) -> None:
    both = np.unique(sentiment[np.isin(category, known)]).tolist()
    if len(both) != 2:
        raise ValueError(f"sentiment holds {len(both)} values among known categories ({both[:5]}): expected two.")
    for label in known:
        found = np.unique(sentiment[category == label]).tolist()
        if found != both:
            raise ValueError(f"category {label!r} has rows of sentiment {found[0]!r} only: both are needed.")


def _balanced(cells: Sequence[Cell], n_train: int, n_test: int, random: np.random.Generator) -> list[Cell]:
    """Equally many rows of every cell, at most the given numbers, drawn at random."""
    n_train = min(n_train, *(len(cell.train) for cell in cells))
    n_test = min(n_test, *(len(cell.test) for cell in cells))
    return [
        Cell(
            cell.label,
            cell.subtype,
            random.permutation(cell.train)[:n_train],
            random.permutation(cell.test)[:n_test],
        )
        for cell in cells
    ]


def subtype_shift(
    *,
    group: ArrayLike,
    subtype: ArrayLike,
    novel_group: Any = None,
    novel_subtypes: Sequence[Any] | None = None,
    known: Sequence[Any] | None = None,
    split: ArrayLike | None = None,
    test_fraction: float = 0.2,
    shift: bool = True,
    subtype_share: float = 0.13,
    novel_share: float = 0.5,
    novel_fraction: float | None = None,
    content: ArrayLike | None = None,
    novel_label: Any = None,
    random_state: int = 0,
) -> ShiftSplit:
    """The SUN397 recipe: every subtype of a known group lies mostly in source or mostly in target.

    The share of a subtype that goes to source is drawn without replacement from values U(.08, .15) and
    U(.85, .92), as many of each as there are known subtypes; ``shift=False`` draws it from U(.45, .5).
    New are int(``subtype_share``·n), at least one, of the n subtypes of ``novel_group``, drawn by the seed; or
    the ``novel_subtypes`` you name, of any group. ``novel_share`` of their rows go to target, or as many as
    ``novel_fraction`` asks for. Without a ``split`` column (of "train" and "test") a share ``test_fraction`` of
    every subtype is held out for testing.

    >>> subtype = np.repeat(["bar", "bakery", "attic", "cellar", "beach", "bayou"], 100)
    >>> group = np.repeat(["shop", "home", "nature"], 200)
    >>> made = subtype_shift(group=group, subtype=subtype, novel_group="nature", random_state=1)
    >>> made.manifest.label["novel"]
    {'group': ['nature'], 'subtype': ['bayou']}
    >>> len(made.test_source) + len(made.test_target)
    90
    """
    check_flag("shift", shift)
    check_number("test_fraction", test_fraction, high=1, open_high=True)
    check_number("subtype_share", subtype_share, high=1)
    if (novel_group is None) == (novel_subtypes is None):
        raise ValueError("give either novel_group, or novel_subtypes: one of the two says what is new.")
    columns = as_columns(group=group, subtype=subtype, split=split, content=content)
    random = generator(random_state)
    if novel_subtypes is not None:
        novel = {"subtype": require("subtype", columns["subtype"], novel_subtypes)}
        groups: list[Any] = []
    else:
        groups = require("group", columns["group"], [novel_group])
        among = np.unique(columns["subtype"][columns["group"] == groups[0]])
        chosen = random.permutation(among)[: max(1, int(len(among) * subtype_share))]
        novel = {"group": groups, "subtype": np.sort(chosen).tolist()}
    recipe = Recipe(
        name="subtype_shift",
        seed=random_state,
        parameters={
            "novel_group": novel_group,
            "novel_subtypes": novel_subtypes,
            "known": known,
            "test_fraction": test_fraction,
            "shift": shift,
            "subtype_share": subtype_share,
            "novel_share": novel_share,
        },
        columns=columns,
        label="group",
        subtype="subtype",
        known=known_classes("group", columns["group"][~matches(columns, novel)], known, groups),
        novel=novel,
        novel_label=novel_label,
        novel_fraction=novel_fraction,
    )
    pools = make_pools(recipe, test_fraction=test_fraction, random=random)
    shares = _shares(len(pools.known), shift, random)
    return draw(recipe, pools, shares.tolist(), novel_size=_share_of(novel_share), random=random)


def _shares(n: int, shift: bool, random: np.random.Generator) -> NDArray[np.float64]:
    """n shares of source: low or high ones without replacement, or all near one half."""
    if not shift:
        return random.uniform(*_NO_SHIFT, n)
    both = np.concatenate([random.uniform(0.08, 0.15, n), random.uniform(0.85, 0.92, n)])
    return random.permutation(both)[:n]


def _share_of(novel_share: float) -> Any:
    check_number("novel_share", novel_share, high=1)
    return lambda n, part: int(n * novel_share)
