"""Background shift of any kind from labelled rows: of subtypes, of classes, along a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from openset._utils.params import check_number
from openset.shift.columns import as_columns, matches, require
from openset.shift.drawing import (
    Cell,
    Divide,
    Recipe,
    divide_all,
    draw,
    generator,
    known_classes,
    make_pools,
)
from openset.shift.manifest import Rows
from openset.shift.split import ShiftSplit


def background_shift(
    *,
    label: ArrayLike,
    novel: Any,
    subtype: ArrayLike | None = None,
    known: Sequence[Any] | None = None,
    split: ArrayLike | None = None,
    test_fraction: float = 0.2,
    source_share: float = 0.5,
    subtype_shares: Mapping[Any, float] | None = None,
    concentration: float | None = None,
    least_share: float = 0.05,
    class_shares: Mapping[Any, float] | None = None,
    score: ArrayLike | None = None,
    strength: float = 1.0,
    novel_fraction: float | None = None,
    content: ArrayLike | None = None,
    novel_label: Any = None,
    random_state: int = 0,
) -> ShiftSplit:
    """Split labelled rows into source and target with a background shift of your making.

    A known row goes to source with a probability whose log-odds add up what you ask for:

    - ``source_share``, for all rows alike;
    - ``subtype_shares``, the share of every subtype (or ``(class, subtype)`` pair) that goes to source; or
      ``concentration``, to draw these shares from a two-way Dirichlet distribution (small values shift
      strongly, large ones not at all), kept at least ``least_share`` away from 0 and 1 so that support overlaps;
    - ``class_shares``, the share of every class: label shift;
    - ``score``, a number for every row: covariate shift. One standard deviation more makes the odds of target
      e^``strength`` times as high.

    A share of one half adds nothing, so that each alone means what it says. Sizes are kept to the nearest row in
    every class and subtype. ``novel`` names the class, or list of classes, that is new: all of its rows go to
    target, or as many as ``novel_fraction`` asks for. Test rows are those with ``split`` "test" if that is
    given, else a share ``test_fraction`` of each subtype, and are cut like the others.

    >>> label, subtype = np.repeat(["cat", "dog", "eel"], 500), np.tile(["young", "old"], 750)
    >>> made = background_shift(label=label, subtype=subtype, novel="eel", novel_fraction=0.1,
    ...                         subtype_shares={"young": 0.9, "old": 0.2})
    >>> [cell["source"] for cell in made.manifest.proportions], made.novel_fraction
    ([40, 180, 40, 180], 0.1)
    """
    random = generator(random_state)
    check_number("test_fraction", test_fraction, high=1, open_high=True)
    check_number("source_share", source_share, high=1, open_low=True, open_high=True)
    check_number("strength", strength)
    columns = as_columns(label=label, subtype=subtype, score=score, split=split, content=content)
    new = require("label", columns["label"], novel if isinstance(novel, (list, tuple)) else [novel])
    recipe = Recipe(
        name="background_shift",
        seed=random_state,
        parameters={
            "novel": new,
            "known": known,
            "test_fraction": test_fraction,
            "source_share": source_share,
            "subtype_shares": subtype_shares,
            "concentration": concentration,
            "least_share": least_share,
            "class_shares": class_shares,
            "strength": strength,
        },
        columns=columns,
        label="label",
        subtype="subtype" if "subtype" in columns else None,
        known=known_classes("label", columns["label"], known, new),
        novel={"label": new},
        novel_label=novel_label,
        novel_fraction=novel_fraction,
    )
    pools = make_pools(recipe, test_fraction=test_fraction, random=random)
    odds = (
        logit(source_share)
        + _subtype_odds(pools.known, subtype_shares, concentration, least_share, random)
        + _class_odds(pools.known, recipe.known, class_shares)
    )
    divide: Divide = divide_all
    if "score" in columns:
        known_rows = matches(columns, {"label": recipe.known})
        divide = _along(_standardised(columns["score"], known_rows), strength)
    return draw(
        recipe,
        pools,
        expit(odds).tolist(),
        divide=divide,
        novel_size=lambda n, part: n,
        random=random,
    )


def _subtype_odds(
    cells: Sequence[Cell],
    shares: Mapping[Any, float] | None,
    concentration: float | None,
    least: float,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    if shares is not None and concentration is not None:
        raise ValueError("give either subtype_shares or concentration: shares are given or drawn, not both.")
    if concentration is not None:
        check_number("concentration", concentration, open_low=True)
        check_number("least_share", least, high=0.5)
        drawn = random.dirichlet((concentration, concentration), len(cells))[:, 0]
        return logit(least + (1 - 2 * least) * drawn)
    if shares is None:
        return np.zeros(len(cells))
    pairs = {(cell.label, cell.subtype) for cell in cells}
    _check_shares("subtype_shares", shares, pairs | {subtype for _, subtype in pairs})
    missing = [str(cell) for cell in cells if _share(shares, cell) is None]
    if missing:
        raise ValueError(
            f"subtype_shares has no share for {', '.join(missing)}: give one for every known subtype."
        )
    return logit(np.array([_share(shares, cell) for cell in cells], dtype=np.float64))


def _share(shares: Mapping[Any, float], cell: Cell) -> float | None:
    return shares.get((cell.label, cell.subtype), shares.get(cell.subtype))


def _class_odds(
    cells: Sequence[Cell], known: Sequence[Any], shares: Mapping[Any, float] | None
) -> NDArray[np.float64]:
    if shares is None:
        return np.zeros(len(cells))
    _check_shares("class_shares", shares, set(known), open_ends=True)
    return logit(np.array([shares.get(cell.label, 0.5) for cell in cells], dtype=np.float64))


def _check_shares(name: str, shares: Mapping[Any, float], allowed: set[Any], open_ends: bool = False) -> None:
    unknown = [key for key in shares if key not in allowed]
    if unknown:
        raise ValueError(f"{name} names {', '.join(map(repr, unknown))}, which no known row has.")
    for key, share in shares.items():
        check_number(f"{name}[{key!r}]", share, high=1, open_low=open_ends, open_high=open_ends)


def _standardised(score: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    if score.dtype.kind not in "biuf":
        raise ValueError(f"score is of type {score.dtype}: expected a number for every row.")
    values = score.astype(np.float64)
    spread = values[rows].std()
    if spread == 0:
        raise ValueError("score is the same in all known rows: it cannot tell source from target.")
    return (values - values[rows].mean()) / spread


def _along(score: NDArray[np.float64], strength: float) -> Divide:
    def divide(rows: Rows, share: float, random: np.random.Generator) -> tuple[Rows, Rows]:
        # evenly spread positions, not independent draws, so that sizes vary as little as they can
        positions = (random.permutation(len(rows)) + random.random()) / max(1, len(rows))
        to_source = positions < expit(logit(share) - strength * score[rows])
        return rows[to_source], rows[~to_source]

    return divide
