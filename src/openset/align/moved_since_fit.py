"""Did a later batch move away from the rows that a model was fitted on?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openset.align.base import Rows
from openset.align.moved import Move, find_move

FEWEST = 65
"""Fewer rows are never called moved: see :func:`openset.align.moved.overlap_limit`."""


@dataclass(frozen=True)
class MoveSinceFit:
    """How much of the fit's target and of its source surrounds the rows of a later batch.

    Attributes
    ----------
    from_target, from_source : the batch compared with the rows of each domain.
    target_had_moved : whether the fit's own target lay away from its source.
    """

    from_target: Move
    from_source: Move
    target_had_moved: bool

    @property
    def can_tell(self) -> bool:
        """Whether there are rows enough to call a batch moved."""
        return min(self.from_target.n_rows, self.from_source.n_rows) >= FEWEST

    @property
    def is_moved(self) -> bool:
        """Whether the batch lies where neither source nor target rows of the fit lie.

        After a target that had moved, a batch that lies with the source has moved too: the model expects rows
        where the target was. Otherwise it only has another mix of the known kinds.
        """
        return self.from_target.is_moved and (self.target_had_moved or self.from_source.is_moved)


def find_move_since_fit(source: Rows, target: Rows, rows: Rows, *, seed: int = 0) -> MoveSinceFit:
    """Compare a batch with rows of the fit's source and target; all are scaled alike. No labels are used.

    >>> known = np.random.default_rng(0).normal(size=(300, 4))
    >>> find_move_since_fit(known[:100], known[100:200], known[200:]).is_moved
    False
    >>> find_move_since_fit(known[:100], known[100:200], known[200:] + 9).is_moved
    True
    """
    return MoveSinceFit(
        from_target=find_move(target, rows, seed=seed),
        from_source=find_move(source, rows, seed=seed),
        target_had_moved=find_move(source, target, seed=seed).is_moved,
    )


def most_moved_features(before: Rows, after: Rows, most: int) -> NDArray[np.intp]:
    """Indices of the features whose means moved most, in standard deviations of before, the farthest first.

    A feature that moved by less than one standard deviation is none of them.

    >>> rows = np.random.default_rng(0).normal(size=(50, 3))
    >>> most_moved_features(rows, rows + [0.1, -4, 2], most=3).tolist()
    [1, 2]
    """
    step = np.abs(after.mean(axis=0) - before.mean(axis=0))
    steps = step / np.maximum(before.std(axis=0), 1e-9)
    order = np.argsort(-steps, kind="stable")[:most]
    return order[steps[order] >= 1]
