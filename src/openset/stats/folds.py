"""Which rows to hold out: stratified, from one seed, with a different part for every member."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Fold:
    """One member's rows: to train on, and held out for its own choices."""

    train: Rows
    held: Rows


def spread_positions(groups: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.float64]:
    """A position in [0, 1) for every row such that each group is spread evenly, at random, over it.

    Every window of width f then holds a share f of every group (to within one row): that is stratification.
    """
    positions = np.empty(len(groups))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        ranks = (random.permutation(len(rows)) + random.random()) / len(rows)
        positions[rows] = ranks % 1.0
    return positions


def window(positions: NDArray[np.float64], start: float, width: float) -> NDArray[np.bool_]:
    """Rows whose position lies in [start, start + width), around the circle."""
    return (positions - start) % 1.0 < width


def keep_one_of_each(held: NDArray[np.bool_], groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Give back held-out rows of any group that would otherwise have no row left to train on."""
    n_groups = int(groups.max(initial=-1)) + 1
    left = np.bincount(groups[~held], minlength=n_groups)
    return held & (left[groups] > 0)


def make_folds(
    groups: NDArray[np.intp], *, members: int, fraction: float, random: np.random.Generator
) -> list[Fold]:
    """Member m holds out the window [m·f, (m + 1)·f): with members × fraction >= 1 every row is held out."""
    positions = spread_positions(groups, random)
    folds = []
    for member in range(members):
        held = keep_one_of_each(window(positions, (member * fraction) % 1.0, fraction), groups)
        folds.append(Fold(np.flatnonzero(~held), np.flatnonzero(held)))
    return folds
