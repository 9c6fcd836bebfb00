"""Whether the rows that a score puts on top lie in one place, or on the rim of everything.

A new class is a group: the nearest rows of its rows are its rows too. Rows that stand out by chance, or because
each known class has a rim, have ordinary neighbours. The same score on source rows, where nothing is new, says
how coherent its highest rows are anyway.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Neighbours = NDArray[np.intp]
"""For each row, the indices of the rows nearest to it, without itself."""

TOP_SHARES = (0.02, 0.05)
"""Shares of highest rows that are looked at: new classes of that size are the hard ones."""


def coherence(scores: Scores, neighbours: Neighbours, share: float) -> float:
    """How far the neighbours of the highest rows are highest rows too: 0 by chance, 1 if all are.

    >>> scores, line = np.array([0.0, 0, 0, 0, 0, 0, 0, 0, 5, 6]), np.arange(10)[:, None]
    >>> neighbours = np.array([[1], [0], [3], [2], [5], [4], [7], [6], [9], [8]])
    >>> coherence(scores, neighbours, share=0.2)
    1.0
    """
    number = max(2, round(share * len(scores)))
    highest = scores >= np.partition(scores, -number)[-number]
    expected = float(highest.mean())
    if expected == 1.0:
        return 0.0
    return (float(highest[neighbours[highest]].mean()) - expected) / (1 - expected)


def excess_coherence(
    source: Scores, source_neighbours: Neighbours, target: Scores, target_neighbours: Neighbours
) -> float:
    """By how much the highest target rows are more coherent than the highest source rows."""
    return float(
        np.mean(
            [
                coherence(target, target_neighbours, share) - coherence(source, source_neighbours, share)
                for share in TOP_SHARES
            ]
        )
    )


def top_overlap(first: Scores, second: Scores, shares: tuple[float, ...] = (0.03, 0.06, 0.10)) -> float:
    """How many of the highest rows of one score are highest rows of the other, from 0 to 1, over some shares.

    >>> top_overlap(np.arange(100.0), np.arange(100.0)), top_overlap(np.arange(100.0), -np.arange(100.0))
    (1.0, 0.0)
    """
    found = []
    for share in shares:
        number = max(1, round(share * len(first)))
        top, other = (np.argsort(-scores, kind="stable")[:number] for scores in (first, second))
        found.append(np.isin(top, other).mean())
    return float(np.mean(found))


def containment(first: Scores, second: Scores, share: float = 0.10, wider: float = 0.30) -> float:
    """How many of the highest ``share`` of rows by one score are among the highest ``wider`` share by the other.

    Two good scores of a class larger than ``share`` may put other rows of it on top, so that these overlap
    little, but both put them far up.

    >>> scores = np.arange(100.0)
    >>> containment(scores, np.r_[scores[:80], scores[80:][::-1]]), containment(scores, -scores)
    (1.0, 0.0)
    """
    top, other = (
        np.argsort(-scores, kind="stable")[: max(1, round(part * len(scores)))]
        for scores, part in ((first, share), (second, wider))
    )
    return float(np.isin(top, other).mean())
