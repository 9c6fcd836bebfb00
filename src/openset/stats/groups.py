"""Groups: of the rows called novel (one new class or several?), and of single numbers.

A group of rows counts only if it is stable, that is, found again in random parts of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openset.stats.neighbours import nearest_rows
from openset.stats.shares import ShareEstimate, binomial_interval

STABLE = 0.75
"""The least mean Jaccard overlap of a stable group (Hennig, 2007)."""
SMALLEST_SHARE = 0.05
FEWEST_ROWS = 10
"""Groups are at least this large, in rows and in share of the rows called novel."""
_MOST_ROWS = 3000
_MOST_DIMENSIONS = 10
_KEPT = 0.8
_NOISE = -1


@dataclass(frozen=True)
class NovelGroup:
    """One group: its share of the target, its stability, its most central row and the rows nearest to that."""

    size: int
    share: ShareEstimate
    stability: float
    medoid: int
    examples: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NovelGroups:
    """The groups, largest first, and the group index of every given row; −1 for rows in no group."""

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
    """Stable groups of the rows called novel, by HDBSCAN.

    Parameters
    ----------
    rows : the learned representation of the rows called novel, (rows, dimensions)
    scores : their novelty scores; of very many rows only the highest 3000 are clustered, and every other row
        joins the group of its nearest clustered row
    n_target : number of all target rows, for each group's share
    resamples : how many random parts of 80 % are clustered again
    n_examples : how many example rows a group has, as indices into ``rows``: those nearest to its medoid

    With fewer than two stable groups, all rows are one group. A share counts rows called novel; its interval
    covers sampling error, for the given threshold.

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
    labels, overlaps = np.zeros(len(points), np.intp), [1.0]
    if len(stable) > 1:
        stable.sort(key=lambda group: -int((found == group).sum()))
        labels, overlaps = _spread(points, highest, found, stable), [stability[group] for group in stable]
    groups = tuple(
        _describe(np.flatnonzero(labels == group), points, overlap, n_target, n_examples, confidence)
        for group, overlap in enumerate(overlaps)
    )
    return NovelGroups(groups, labels)


def _spread(
    points: NDArray[np.float64], clustered: NDArray[np.intp], found: NDArray[np.intp], stable: list[int]
) -> NDArray[np.intp]:
    """The group of every row; a row that was not clustered gets the group of its nearest clustered row."""
    labels = np.full(len(points), _NOISE)
    labels[clustered] = [stable.index(group) if group in stable else _NOISE for group in found.tolist()]
    rest = np.setdiff1d(np.arange(len(points)), clustered)
    labels[rest] = labels[clustered[nearest_rows(points[clustered], points[rest], 1)[1][:, 0]]]
    return labels


def _few_dimensions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first principal components, because densities say little in many dimensions."""
    from sklearn.decomposition import PCA

    most = min(_MOST_DIMENSIONS, *points.shape)
    if points.shape[1] <= most or len(points) < 2:
        return points
    if np.ptp(points, axis=0).max() == 0:  # all rows are equal: PCA would divide 0 by 0
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
    """For every group, its best Jaccard overlap with a group of a random part, averaged over the parts."""
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
    # the row nearest to the coordinate-wise median is a medoid that needs no pairs of rows
    centre = np.median(points[members], axis=0)
    medoid = int(members[np.linalg.norm(points[members] - centre, axis=1).argmin()])
    order = np.argsort(np.linalg.norm(points[members] - points[medoid], axis=1), kind="stable")
    low, high = binomial_interval(len(members), n_target, confidence)
    share = ShareEstimate(len(members) / n_target, low, high, confidence, "rows called novel")
    return NovelGroup(len(members), share, stability, medoid, tuple(members[order[:n_examples]].tolist()))


@dataclass(frozen=True)
class TwoMeans:
    """The centres of two groups of numbers; numbers above ``split`` are in the upper group."""

    low: float
    high: float

    @property
    def split(self) -> float:
        """The middle between the centres."""
        return self.low + (self.high - self.low) / 2


def two_means(values: ArrayLike) -> TwoMeans:
    """The exact 2-means of numbers: the two centres with the least squared distance, found by sorting.

    If all numbers are equal, both centres are that number and no number is above the split.

    >>> two_means([1, 9, 0, 10, 2])
    TwoMeans(low=1.0, high=9.5)
    >>> two_means([3, 3]).split
    3.0
    """
    x = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if not len(x) or not np.isfinite(x).all():
        raise ValueError(f"two_means needs at least one number, all of them finite; got {len(x)}.")
    if x[0] == x[-1]:
        return TwoMeans(float(x[0]), float(x[0]))
    offset = x.mean()
    count = np.arange(1, len(x))
    below = np.cumsum(x - offset)[:-1]  # the numbers above sum to the negative of this
    # least within groups is most between: n₁n₂/n (m₁ − m₂)² = n s²/(n₁n₂), with sums ±s about the mean
    between = below**2 / (count * (len(x) - count))
    between[x[:-1] == x[1:]] = -np.inf  # equal numbers stay in one group
    cut = int(between.argmax()) + 1
    return TwoMeans(float(x[:cut].mean()), float(x[cut:].mean()))
