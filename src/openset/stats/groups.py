"""One new class or several: groups among the rows called novel that come back when rows are left out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset.stats.neighbours import nearest_rows
from openset.stats.proportions import ProportionEstimate, binomial_interval

STABLE = 0.75
"""A mean Jaccard overlap from which on a group is taken to be one (Hennig, 2007)."""
SMALLEST_SHARE = 0.05
FEWEST_ROWS = 10
"""The smallest group that is looked for."""
_MOST_ROWS = 3000
_MOST_DIMENSIONS = 10
_KEPT = 0.8
_NOISE = -1


@dataclass(frozen=True)
class NovelGroup:
    """One group: its share of the target, how stable it is, its most central row and more like it."""

    size: int
    share: ProportionEstimate
    stability: float
    medoid: int
    examples: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NovelGroups:
    """The groups, largest first, and the group of every row given; −1 for rows of none."""

    groups: tuple[NovelGroup, ...]
    labels: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.groups)


def discover_groups(
    rows: ArrayLike,
    scores: ArrayLike,
    *,
    n_target: int,
    resamples: int = 20,
    n_examples: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
) -> NovelGroups:
    """Groups of novel rows by HDBSCAN, each kept only if it comes back in random parts of the rows.

    Parameters
    ----------
    rows : the learned representation of the rows called novel, (rows, dimensions)
    scores : their novelty scores; of very many rows the highest are clustered, the others join the nearest
    n_target : all target rows, for each group's share
    resamples : how many random parts of 80 % are clustered again
    n_examples : how many rows, by index among those given, stand for a group: those nearest to its medoid

    If fewer than two groups are stable all rows are one group. A share counts rows called novel: its interval is
    that of sampling, given the threshold.

    >>> random = np.random.default_rng(0)
    >>> rows = np.concatenate([random.normal(size=(60, 4)), random.normal(size=(40, 4)) + 9])
    >>> found = discover_groups(rows, np.ones(100), n_target=1000)
    >>> [group.size for group in found.groups], round(found.groups[0].share.value, 2)
    ([60, 40], 0.06)
    """
    points, novelty = np.asarray(rows, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if points.ndim != 2 or novelty.shape != (len(points),) or n_target < len(points):
        raise ValueError(
            f"got rows of shape {points.shape}, scores of shape {novelty.shape} and n_target={n_target}: "
            "expected (rows, dimensions), a score for every row, and no more rows than the target has."
        )
    if not len(points):
        return NovelGroups((), np.empty(0, np.intp))
    random = np.random.default_rng(seed)
    highest = np.sort(np.argsort(-novelty, kind="stable")[:_MOST_ROWS])
    flat = _few_dimensions(points[highest])
    found = _cluster(flat)
    stability = _stability(flat, found, resamples, random)
    stable = [group for group, overlap in enumerate(stability) if overlap >= STABLE]
    labels = np.full(len(points), _NOISE)
    if len(stable) < 2:
        labels[:], kept = 0, {0: 1.0}
    else:
        stable.sort(key=lambda group: -int((found == group).sum()))
        labels[highest] = [stable.index(group) if group in stable else _NOISE for group in found.tolist()]
        rest = np.setdiff1d(np.arange(len(points)), highest)
        labels[rest] = labels[highest[nearest_rows(points[highest], points[rest], 1)[1][:, 0]]]
        kept = {new: stability[old] for new, old in enumerate(stable)}
    groups = tuple(
        _describe(np.flatnonzero(labels == group), points, overlap, n_target, n_examples, confidence)
        for group, overlap in kept.items()
    )
    return NovelGroups(groups, labels)


def _few_dimensions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first principal components: densities mean little in many dimensions."""
    from sklearn.decomposition import PCA

    most = min(_MOST_DIMENSIONS, *points.shape)
    if points.shape[1] <= most or len(points) < 2:
        return points
    if np.ptp(points, axis=0).max() == 0:  # rows all alike, of which PCA would divide no variance by none
        return np.zeros((len(points), 1))
    return np.asarray(PCA(most, random_state=0).fit_transform(points))


def _cluster(points: NDArray[np.float64]) -> NDArray[np.intp]:
    from sklearn.cluster import HDBSCAN

    smallest = max(FEWEST_ROWS, math.ceil(SMALLEST_SHARE * len(points)))
    if len(points) < 2 * smallest:
        return np.full(len(points), _NOISE)
    return np.asarray(HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(points), dtype=np.intp)


def _stability(
    points: NDArray[np.float64], labels: NDArray[np.intp], resamples: int, random: np.random.Generator
) -> list[float]:
    """For every group the mean, over random parts, of the best Jaccard overlap with a group found there."""
    groups = range(int(labels.max(initial=_NOISE)) + 1)
    overlaps: list[list[float]] = [[] for _ in groups]
    for _ in range(resamples if len(groups) > 1 else 0):
        part = random.permutation(len(points))[: max(1, round(_KEPT * len(points)))]
        again = _cluster(points[part])
        for group in groups:
            overlaps[group].append(max(_jaccards(labels[part] == group, again), default=0.0))
    return [float(np.mean(found)) if found else 0.0 for found in overlaps]


def _jaccards(members: NDArray[np.bool_], labels: NDArray[np.intp]) -> Iterator[float]:
    for other in range(int(labels.max(initial=_NOISE)) + 1):
        same = labels == other
        yield float((members & same).sum() / (members | same).sum())


def _describe(
    members: NDArray[np.intp],
    points: NDArray[np.float64],
    stability: float,
    n_target: int,
    n_examples: int,
    confidence: float,
) -> NovelGroup:
    # the row nearest to the coordinate-wise median: a medoid without all pairs of rows
    centre = np.median(points[members], axis=0)
    medoid = int(members[np.linalg.norm(points[members] - centre, axis=1).argmin()])
    order = np.argsort(np.linalg.norm(points[members] - points[medoid], axis=1), kind="stable")
    low, high = binomial_interval(len(members), n_target, confidence)
    share = ProportionEstimate(len(members) / n_target, low, high, confidence, "rows called novel")
    return NovelGroup(len(members), share, stability, medoid, tuple(members[order[:n_examples]].tolist()))
