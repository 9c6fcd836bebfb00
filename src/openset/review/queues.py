"""Which row comes next: in Estimate by a random order fixed before labelling, in Explore what tells most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LIST_GUESS, REST_GUESS = 0.8, 0.01
"""Shares of new rows in the list and in the rest that the estimate expects; it stays valid if they are wrong."""
REST_FOR_ONE = 2
"""Rows of the rest for each row of the list in Estimate."""
FEWEST_LISTED = 20
HIGHEST = 0.05
"""If fewer rows are called new, the list is this share of rows with the highest scores."""
_CANDIDATES = 1000
_MOST_ANSWERED = 2000

Rows = NDArray[np.intp]


def make_list(score: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """The rows of the list: those called new or, if they are too few to estimate from, the highest scores.

    >>> make_list(np.arange(1000.0), 990.0).sum(), make_list(np.arange(1000.0), 900.0).sum()
    (np.int64(50), np.int64(99))
    """
    called = score > threshold
    if called.sum() >= FEWEST_LISTED or len(score) <= FEWEST_LISTED:
        return np.asarray(called)
    listed = np.zeros(len(score), dtype=bool)
    listed[np.argsort(-score, kind="stable")[: max(FEWEST_LISTED, round(HIGHEST * len(score)))]] = True
    return listed


def estimate_order(listed: NDArray[np.bool_], seed: int) -> Rows:
    """All rows in the order in which Estimate asks for them: each stratum at random, the strata in turn.

    The order is fixed before the first label, so the rows labelled at any time are a random sample of each
    stratum. Of the list comes one row for every two of the rest, until one of them is used up.
    """
    random = np.random.default_rng(seed)
    first, rest = (random.permutation(np.flatnonzero(part)) for part in (listed, ~listed))
    # the i-th row of the list is due after 2i rows of the rest, which are due at whole numbers
    due = np.concatenate([np.arange(len(first)) * REST_FOR_ONE - 0.5, np.arange(len(rest), dtype=float)])
    return np.asarray(np.concatenate([first, rest])[np.argsort(due, kind="stable")], dtype=np.intp)


@dataclass(frozen=True)
class Suggestion:
    """A row that Explore asks for, and why."""

    row: int
    reason: str


_TURNS = (
    "group", "highest", "highest", "threshold", "highest", "highest", "far", "highest", "threshold", "highest"
)  # fmt: skip
REASONS = {
    "group": "the middle of a group",
    "highest": "one of the highest scores",
    "threshold": "near the threshold: undecided",
    "far": "far from everything answered",
}


def explore(
    logit: NDArray[np.float64],
    points: NDArray[np.float64],
    answered: NDArray[np.bool_],
    medoids: Sequence[int],
    turn: int,
) -> Suggestion | None:
    """The most informative row that has no answer yet; what counts as that changes with the turn.

    ``logit`` is the current ranking, ``points`` are where rows lie, ``medoids`` the middles of groups. None if
    every row has an answer.
    """
    free = np.flatnonzero(~answered)
    if not len(free):
        return None
    kind = _TURNS[turn % len(_TURNS)]
    waiting = [medoid for medoid in medoids if not answered[medoid]]
    if kind == "group" and waiting:
        return Suggestion(int(waiting[0]), REASONS["group"])
    if kind == "threshold":
        return Suggestion(int(free[np.abs(logit[free]).argmin()]), REASONS["threshold"])
    if kind == "far" and answered.any():
        return Suggestion(_farthest(logit, points, answered, free, turn), REASONS["far"])
    return Suggestion(int(free[logit[free].argmax()]), REASONS["highest"])


def _farthest(
    logit: NDArray[np.float64],
    points: NDArray[np.float64],
    answered: NDArray[np.bool_],
    free: Rows,
    turn: int,
) -> int:
    """Of some random rows, those of the higher half of scores, the one whose nearest answered row is farthest."""
    some = np.random.default_rng(turn).choice(free, min(_CANDIDATES, len(free)), replace=False)
    some = some[logit[some] >= np.median(logit[some])]
    known = points[answered][-_MOST_ANSWERED:]
    squared = (points[some] ** 2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * points[some] @ known.T
    return int(some[squared.min(axis=1).argmax()])
