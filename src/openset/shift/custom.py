"""Split labelled rows with a background shift of your own: of subtypes, of classes, or along a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from openset._utils.params import check_number
from openset.shift.columns import Columns, as_columns, matches, require
from openset.shift.draw import (
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
    """Split labelled rows into source and target with a background shift of your own.

    A known row is in source with a probability whose log-odds are the sum of these terms:

    - ``source_share``: the same for all rows;
    - ``subtype_shares``: the share of every subtype (or ``(class, subtype)`` pair) that is in source; or
      ``concentration``: draw these shares from a two-way Dirichlet distribution (small values shift strongly,
      large ones hardly), at least ``least_share`` away from 0 and 1 so that support overlaps;
    - ``class_shares``: the share of every class, for label shift;
    - ``score``: a number for every row, for covariate shift. One standard deviation more multiplies the odds of
      target by e^``strength``.

    A share of one half adds nothing. Sizes are exact to the nearest row in every class and subtype. ``novel`` is
    the new class, or a list of classes: all of its rows are in target, or as many as ``novel_fraction`` needs.
    Test rows are those with ``split`` "test", else a share ``test_fraction`` of each subtype; they are divided
    like the others.

    >>> label, subtype = np.repeat(["cat", "dog", "eel"], 500), np.tile(["young", "old"], 750)
    >>> made = background_shift(label=label, subtype=subtype, novel="eel", novel_fraction=0.1,
    ...                         subtype_shares={"young": 0.9, "old": 0.2})
    >>> [cell["source"] for cell in made.manifest.proportions], made.novel_fraction
    ([40, 180, 40, 180], 0.1)
    """
    shift = _Shift(source_share, subtype_shares, concentration, least_share, class_shares, strength)
    columns = as_columns(label=label, subtype=subtype, score=score, split=split, content=content)
    new = require("label", columns["label"], novel if isinstance(novel, (list, tuple)) else [novel])
    recipe = Recipe(
        name="background_shift",
        seed=random_state,
        parameters={"novel": new, "known": known, "test_fraction": test_fraction, **vars(shift)},
        columns=columns,
        label="label",
        subtype="subtype" if "subtype" in columns else None,
        known=known_classes("label", columns["label"], known, new),
        novel={"label": new},
        novel_label=novel_label,
        novel_fraction=novel_fraction,
    )
    return _draw(recipe, shift, test_fraction)


@dataclass(frozen=True)
class _Shift:
    """The terms of a row's log-odds to be in source."""

    source_share: float
    subtype_shares: Mapping[Any, float] | None
    concentration: float | None
    least_share: float
    class_shares: Mapping[Any, float] | None
    strength: float

    def __post_init__(self) -> None:
        check_number("source_share", self.source_share, high=1, open_low=True, open_high=True)
        check_number("strength", self.strength)

    def shares(self, cells: Sequence[Cell], known: Sequence[Any], random: np.random.Generator) -> list[float]:
        """The share of every cell that is in source, before the score."""
        subtypes = _subtype_odds(cells, self.subtype_shares, self.concentration, self.least_share, random)
        odds = logit(self.source_share) + subtypes + _class_odds(cells, known, self.class_shares)
        return expit(odds).tolist()

    def divide(self, columns: Columns, known: Sequence[Any]) -> Divide:
        """How the rows of a cell are divided: at random, or along the score if there is one."""
        if "score" not in columns:
            return divide_all
        known_rows = matches(columns, {"label": known})
        return _along(_standardised(columns["score"], known_rows), self.strength)


def _draw(recipe: Recipe, shift: _Shift, test_fraction: float) -> ShiftSplit:
    random = generator(recipe.seed)
    pools = make_pools(recipe, test_fraction=test_fraction, random=random)
    return draw(
        recipe,
        pools,
        shift.shares(pools.known, recipe.known, random),
        divide=shift.divide(recipe.columns, recipe.known),
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
        raise ValueError("give either subtype_shares or concentration, not both: shares are given or drawn.")
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
        raise ValueError(f"{name} has {', '.join(map(repr, unknown))}, which no known row has.")
    for key, share in shares.items():
        check_number(f"{name}[{key!r}]", share, high=1, open_low=open_ends, open_high=open_ends)


def _standardised(score: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    if score.dtype.kind not in "biuf":
        raise ValueError(f"score is of type {score.dtype}: expected a number for every row.")
    values = score.astype(np.float64)
    spread = values[rows].std()
    if spread == 0:
        raise ValueError("score is the same in all known rows: it cannot shift them.")
    return (values - values[rows].mean()) / spread


def _along(score: NDArray[np.float64], strength: float) -> Divide:
    """Divide rows with log-odds of source that fall with the score."""

    def divide(rows: Rows, share: float, random: np.random.Generator) -> tuple[Rows, Rows]:
        # evenly spread positions instead of independent draws: sizes vary as little as possible
        positions = (random.permutation(len(rows)) + random.random()) / max(1, len(rows))
        to_source = positions < expit(logit(share) - strength * score[rows])
        return rows[to_source], rows[~to_source]

    return divide
