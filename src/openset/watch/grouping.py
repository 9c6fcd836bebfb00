"""Groups among the rows called new, numbered over all batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.typed import plain
from openset.pipeline.batch_answer import CalledShare
from openset.stats.group_matching import MOST_ROWS, match_groups
from openset.stats.groups import FEWEST_ROWS, NovelGroup, discover_groups
from openset.stats.neighbours import evenly_spaced
from openset.watch.fits import WatchedRun
from openset.watch.records import GroupRecord

MOST_CALLED = 20_000
"""Rows called new that are grouped: those of the highest scores."""


@dataclass(frozen=True, eq=False)
class CalledRows:
    """``number`` rows ``of`` so many are called new: features, ids and scores of those that are grouped."""

    X: NDArray[Any]
    ids: NDArray[Any]
    scores: NDArray[np.float64]
    of: int
    number: int

    def joined(self, other: CalledRows) -> CalledRows:
        """The rows called new of two parts of a batch."""
        X, ids, scores = (
            np.concatenate([getattr(part, name) for part in (self, other)]) for name in ("X", "ids", "scores")
        )
        kept = np.sort(np.argsort(-scores, kind="stable")[:MOST_CALLED])
        number, of = self.number + other.number, self.of + other.of
        return CalledRows(X[kept], ids[kept], scores[kept], of, number)


def find_groups(
    run: WatchedRun, model: Any, called: CalledRows, earlier: Mapping[int, NDArray[np.float32]]
) -> list[tuple[GroupRecord, NDArray[np.float32]]]:
    """The groups, each with its number over all batches and some of its rows; ``earlier`` has those so far.

    Rows are grouped by the model's own representation or, where it has none, by scaled features. Groups of
    different batches are compared by scaled features, which do not depend on the model.
    """
    if len(called.scores) < FEWEST_ROWS:
        return []
    X, ids = called.X, called.ids
    points = run.profile.scaled(X)
    compared = np.asarray(model.representation(X)) if hasattr(model, "representation") else points
    found = discover_groups(compared, called.scores, n_target=called.of)
    groups = [
        (group, np.flatnonzero(found.labels == index))
        for index, group in enumerate(found.groups)
        if group.size >= FEWEST_ROWS
    ]
    some = [points[rows[evenly_spaced(len(rows), MOST_ROWS)]] for _, rows in groups]
    numbers = sorted(earlier)
    matched = match_groups(
        [part.astype(np.float64) for part in some], [earlier[number].astype(np.float64) for number in numbers]
    )
    following = max(numbers, default=0) + 1
    described = []
    for (group, _), part, index in zip(groups, some, matched, strict=True):
        number = following if index is None else numbers[index]
        following += index is None
        described.append((_described(group, number, ids[list(group.examples)], again=index is not None), part))
    return described


def _described(group: NovelGroup, number: int, ids: NDArray[Any], *, again: bool) -> GroupRecord:
    share = group.share
    return GroupRecord(
        number=number,
        size=group.size,
        share=CalledShare(share.value, share.low, share.high, share.confidence),
        stability=group.stability,
        examples=plain(ids),
        again=again,
    )
