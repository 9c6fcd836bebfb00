"""The paper's three recipes for background shift: which share of every subtype is in source, and what is new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset._utils.params import check_flag, check_integer, check_list, check_number
from openset.shift.columns import Columns, as_columns, matches, require
from openset.shift.draw import (
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
    """The CIFAR-100 recipe: shares of subtypes U(.2, 1), the same in every superclass, so classes stay balanced.

    Of the n rows of subtype j (sorted by name) of every known superclass ``coarse``, int(n·m_j) are in source and
    int(n·(1 − m_j)) in target, with m_j = round(U(.2, 1), 2); ``shift=False`` draws m from U(.45, .5). The new
    class is the class ``novel`` of ``fine``: a share ``novel_share`` of its rows is in target. Rows of the test
    ``split`` are divided in the same way. ``novel_fraction`` instead sets the share of new rows in target and in
    its test rows, and can use all rows of the new class. Of rows with equal ``content`` one is used; the paper's
    sizes are without that check.

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
    # the paper's splits were drawn with the legacy generator
    legacy = np.random.RandomState(random_state)
    shares = np.round(legacy.uniform(*((0.2, 1.0) if shift else _NO_SHIFT), per_class), 2)
    shares_of_all = np.tile(shares, len(recipe.known)).tolist()
    size = _share_of(novel_share)
    return draw(recipe, pools, shares_of_all, divide=divide_truncated, novel_size=size, random=random)


def _equal_number_of_subtypes(pools: Pools, known: Sequence[Any]) -> int:
    """The number of subtypes of each known class; raise where classes differ in it."""
    counts = {label: sum(cell.label == label for cell in pools.known) for label in known}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{label!r} {n}" for label, n in counts.items())
        raise ValueError(
            f"the known classes differ in their number of subtypes ({listed}): all use one draw of shares, "
            "so each needs equally many. Are rows of a subtype missing?"
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
    novel_share: float | None = None,
    novel_fraction: float | None = None,
    content: ArrayLike | None = None,
    novel_label: Any = None,
    random_state: int = 0,
) -> ShiftSplit:
    """The Amazon Reviews recipe: classes stay balanced, but their sentiment flips between source and target.

    Of each of the two ``sentiment`` values every known ``category`` uses equally many rows: up to ``n_train`` for
    source and target together, and up to ``n_test`` for testing. A share m of its rows with the lower sentiment
    and a share 1 − m of those with the higher one are in source, the rest in target. The m are drawn without
    replacement from values U(.08, .15) and U(.85, .92), as many of each as there are classes; ``shift=False``
    draws them from U(.45, .5). The ``novel`` category is in target only, with as many rows as a known category
    uses, or a share ``novel_share`` of its rows, or as many as ``novel_fraction`` needs. Without a ``split``
    column (of "train" and "test") test rows are drawn from each category and sentiment.

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
        parameters={
            "novel": novel,
            "known": known,
            "n_train": n_train,
            "n_test": n_test,
            "shift": shift,
            "novel_share": novel_share,
        },
        columns=columns,
        label="category",
        subtype="sentiment",
        known=known_classes("category", columns["category"], known, new),
        novel={"category": new},
        novel_label=novel_label,
        novel_fraction=novel_fraction,
    )
    _check_sentiments(columns["category"], columns["sentiment"], recipe.known)
    random = generator(random_state)
    lower = _shares(len(recipe.known), shift, random)
    pools = make_pools(recipe, test_fraction=n_test / (n_test + n_train), random=random)
    balanced = _balanced(pools, recipe.known, n_train, n_test, random)
    shares = np.column_stack([lower, 1 - lower]).ravel().tolist()
    if novel_share is not None:
        return draw(recipe, balanced, shares, novel_size=_share_of(novel_share), random=random)
    largest = {"target": 2 * n_train, "test_target": 2 * n_test}
    return draw(recipe, balanced, shares, novel_size=lambda n, part: min(n, largest[part]), random=random)


def _check_sentiments(category: NDArray[Any], sentiment: NDArray[Any], known: Sequence[Any]) -> None:
    """Raise unless every known category has rows of the same two sentiments."""
    both = np.unique(sentiment[np.isin(category, known)]).tolist()
    if len(both) != 2:
        raise ValueError(f"sentiment holds {len(both)} values among known categories ({both[:5]}): expected two.")
    for label in known:
        found = np.unique(sentiment[category == label]).tolist()
        if found != both:
            raise ValueError(f"category {label!r} has rows of sentiment {found[0]!r} only: both are needed.")


def _balanced(
    pools: Pools, known: Sequence[Any], n_train: int, n_test: int, random: np.random.Generator
) -> Pools:
    """The pools with equally many rows of every sentiment of a class, at most the given numbers, at random."""
    balanced = []
    for label in known:
        cells = [cell for cell in pools.known if cell.label == label]
        train = min(n_train, *(len(cell.train) for cell in cells))
        test = min(n_test, *(len(cell.test) for cell in cells))
        balanced += [
            replace(cell, train=random.permutation(cell.train)[:train], test=random.permutation(cell.test)[:test])
            for cell in cells
        ]
    return replace(pools, known=balanced)


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
    n_novel_subtypes: int = 4,
    subtype_share: float | None = None,
    novel_share: float = 0.5,
    novel_fraction: float | None = None,
    content: ArrayLike | None = None,
    novel_label: Any = None,
    random_state: int = 0,
) -> ShiftSplit:
    """The SUN397 recipe: every subtype of a known group is mostly in source or mostly in target.

    The share of a subtype that is in source is drawn without replacement from values U(.08, .15) and
    U(.85, .92), as many of each as there are known subtypes; ``shift=False`` draws it from U(.45, .5).
    New are ``n_novel_subtypes`` of ``novel_group``, drawn by the seed, or all of a group with fewer; with
    ``subtype_share`` int(share·n) of its n subtypes, at least one; or the given ``novel_subtypes``, of any group.
    The paper has four of every group; its authors' script has a share of .13, which is four of 35 and 34, and one
    of 13. A share ``novel_share`` of their rows is in target, or as many as
    ``novel_fraction`` needs. Without a ``split`` column (of "train" and "test") a share ``test_fraction`` of
    every subtype is for testing.

    >>> subtype = np.repeat(["bar", "bakery", "attic", "cellar", "beach", "bayou"], 100)
    >>> group = np.repeat(["shop", "home", "nature"], 200)
    >>> natural = {"novel_group": "nature", "n_novel_subtypes": 1}
    >>> made = subtype_shift(group=group, subtype=subtype, **natural, random_state=1)
    >>> made.manifest.label["novel"], len(made.test_source) + len(made.test_target)
    ({'group': ['nature'], 'subtype': ['bayou']}, 90)
    """
    check_flag("shift", shift)
    columns = as_columns(group=group, subtype=subtype, split=split, content=content)
    random = generator(random_state)
    drawn = (n_novel_subtypes, subtype_share)
    novel = _novel_subtypes(columns, novel_group, novel_subtypes, *drawn, random)
    recipe = Recipe(
        name="subtype_shift",
        seed=random_state,
        parameters={
            "novel_group": novel_group,
            "novel_subtypes": novel_subtypes,
            "known": known,
            "test_fraction": test_fraction,
            "shift": shift,
            "n_novel_subtypes": n_novel_subtypes,
            "subtype_share": subtype_share,
            "novel_share": novel_share,
        },
        columns=columns,
        label="group",
        subtype="subtype",
        known=known_classes("group", columns["group"][~matches(columns, novel)], known, novel.get("group", ())),
        novel=novel,
        novel_label=novel_label,
        novel_fraction=novel_fraction,
    )
    pools = make_pools(recipe, test_fraction=test_fraction, random=random)
    shares = _shares(len(pools.known), shift, random)
    return draw(recipe, pools, shares.tolist(), novel_size=_share_of(novel_share), random=random)


def _novel_subtypes(
    columns: Columns,
    group: Any,
    subtypes: Sequence[Any] | None,
    number: int,
    share: float | None,
    random: np.random.Generator,
) -> dict[str, list[Any]]:
    """The values, by column, of a row of the new class: the given subtypes, or random ones of a group."""
    check_integer("n_novel_subtypes", number)
    check_number("subtype_share", share, high=1, optional=True)
    if (group is None) == (subtypes is None):
        raise ValueError("give either novel_group or novel_subtypes: one of the two tells what is new.")
    check_list("novel_subtypes", subtypes)
    if subtypes is not None:
        return {"subtype": require("subtype", columns["subtype"], subtypes)}
    groups = require("group", columns["group"], [group])
    among = np.unique(columns["subtype"][columns["group"] == groups[0]])
    wanted = number if share is None else max(1, int(len(among) * share))
    chosen = random.permutation(among)[:wanted]
    return {"group": groups, "subtype": np.sort(chosen).tolist()}


def _shares(n: int, shift: bool, random: np.random.Generator) -> NDArray[np.float64]:
    """n shares of source: low or high ones, drawn without replacement, or all near one half."""
    if not shift:
        return random.uniform(*_NO_SHIFT, n)
    both = np.concatenate([random.uniform(0.08, 0.15, n), random.uniform(0.85, 0.92, n)])
    return random.permutation(both)[:n]


def _share_of(novel_share: float) -> Any:
    check_number("novel_share", novel_share, high=1)
    return lambda n, part: int(n * novel_share)
