"""Stratified splits into training and validation rows: one split for every member, all from one seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Fold:
    """One member's rows: those it trains on, and its validation rows."""

    train: Rows
    validation: Rows


def spread_positions(groups: NDArray[np.intp], random: np.random.Generator) -> NDArray[np.float64]:
    """A random position in [0, 1) for every row, such that the rows of each group are evenly spaced.

    Every window of width f then holds a share f of every group (to within one row): the split is stratified.
    """
    positions = np.empty(len(groups))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        ranks = (random.permutation(len(rows)) + random.random()) / len(rows)
        positions[rows] = ranks % 1.0
    return positions


def window(positions: NDArray[np.float64], start: float, width: float) -> NDArray[np.bool_]:
    """Rows whose position lies in [start, start + width), wrapping from 1 to 0."""
    return (positions - start) % 1.0 < width


def keep_one_of_each(validation: NDArray[np.bool_], groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return the validation rows of a group to training where the group would have no training row left."""
    n_groups = int(groups.max(initial=-1)) + 1
    left = np.bincount(groups[~validation], minlength=n_groups)
    return validation & (left[groups] > 0)


def make_folds(
    groups: NDArray[np.intp], *, members: int, share: float, random: np.random.Generator
) -> list[Fold]:
    """One fold for every member; its validation rows are a ``share`` of all rows.

    Member m gets the window [m·share, (m + 1)·share). With members × share >= 1 every row is a validation row of
    some member.
    """
    positions = spread_positions(groups, random)
    folds = []
    for member in range(members):
        validation = keep_one_of_each(window(positions, (member * share) % 1.0, share), groups)
        folds.append(Fold(np.flatnonzero(~validation), np.flatnonzero(validation)))
    return folds
