"""Weekly batches from real rows: known kinds in another mix every week, and a class that grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.bench.problems.loading import load_with_features
from openset.bench.problems.natural import KDD_KNOWN, KDD_NEW, KDD_STRINGS, KDD_TEST, KDD_TRAIN
from openset.bench.problems.natural import _columns as read_columns
from openset.bench.problems.natural import _kdd_features as kdd_features

WEEKS = 8
GROWING = (0.0, 0.0, 0.0, 0.01, 0.02, 0.04, 0.08, 0.12)
"""The share of new rows by week."""
STEP = 3.0
"""A kind's weight is multiplied, every week anew, by up to this, or divided by it."""
NEW_CATEGORIES = ("software", "toys_games", "music", "apparel", "health_personal_care", "kitchen_housewares")
KNOWN_CATEGORIES = 8
COMMON_SERVICES = ("http", "domain_u", "smtp", "ftp_data")
SIZES = {"traffic": (6000, 1000), "reviews": (5000, 800)}
"""Source rows, and rows of a week."""


@dataclass(frozen=True, eq=False)
class Pool:
    """All rows to draw from: features, the class, and the kind whose share changes; new rows apart."""

    X: NDArray[np.float32]
    y: NDArray[Any]
    kind: NDArray[Any]
    new: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Sequence:
    """Source, the batch that the run is fitted on (without a new class), and eight weeks."""

    X: NDArray[np.float32]
    y: NDArray[Any]
    target: NDArray[np.float32]
    weeks: list[NDArray[np.float32]]
    new: list[NDArray[np.bool_]]
    largest_ratio: float
    """How many times as common the kind that became most common is, in the week where it is."""


def make_pool(problem: str, number: int, data: Path) -> Pool:
    """The rows of a problem; the new category of the reviews depends on the sequence's number."""
    if problem == "traffic":
        train, test = (read_columns("nsl-kdd", data, file) for file in (KDD_TRAIN, KDD_TEST))
        known = np.flatnonzero(np.isin(train["family"], KDD_KNOWN))
        new = np.flatnonzero(np.isin(test["family"], KDD_NEW))
        levels = {name: np.unique(train[name][known]) for name in KDD_STRINGS}
        service = np.where(np.isin(train["service"], COMMON_SERVICES), train["service"], "rest")
        attack = np.char.add(np.char.add(train["attack"].astype(str), " "), service.astype(str))
        return Pool(
            kdd_features(train, known, levels),
            train["family"][known],
            attack[known],
            kdd_features(test, new, levels),
        )
    reviews, features = load_with_features("amazon_fdu_mtl", data)
    new_category = NEW_CATEGORIES[number % len(NEW_CATEGORIES)]
    names, counts = np.unique(reviews.label, return_counts=True)
    largest = [str(name) for name in names[np.argsort(-counts, kind="stable")] if name != new_category]
    known = np.flatnonzero(np.isin(reviews.label, largest[:KNOWN_CATEGORIES]))
    sentiment = np.asarray(reviews.sentiment)[known].astype(str)
    kind = np.char.add(np.char.add(reviews.label[known].astype(str), " "), sentiment)
    return Pool(features[known], reviews.label[known], kind, features[reviews.label == new_category])


def draw_sequence(
    pool: Pool, sizes: tuple[int, int], number: int, shares: tuple[float, ...] = GROWING
) -> Sequence:
    """Rows without replacement: source in the pool's own mix, and every week in another one."""
    random = np.random.default_rng([number, 24])
    n_source, n_week = sizes
    order = random.permutation(len(pool.y))
    source, left = order[:n_source], order[n_source:]
    new_rows = random.permutation(len(pool.new))
    kinds, counts = np.unique(pool.kind[source], return_counts=True)
    own = dict(zip(kinds.tolist(), (counts / n_source).tolist(), strict=True))
    left = left[np.isin(pool.kind[left], kinds)]
    weeks, new, ratios = [], [], []
    for share in (0.0, *shares):
        n_new = round(share * n_week)
        known, left, ratio = draw_week(pool.kind, left, own, n_week - n_new, random)
        chosen, new_rows = new_rows[:n_new], new_rows[n_new:]
        rows = np.concatenate([pool.X[known], pool.new[chosen]])
        mixed = random.permutation(len(rows))
        weeks.append(rows[mixed])
        new.append((np.arange(len(rows)) >= len(known))[mixed])
        ratios.append(ratio)
    return Sequence(pool.X[source], pool.y[source], weeks[0], weeks[1:], new[1:], max(ratios[1:]))


def draw_week(
    kind: NDArray[Any], left: NDArray[np.intp], own: dict[Any, float], size: int, random: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp], float]:
    """The rows of a week in a mix of its own, the rows that are left, and the largest ratio of any kind."""
    names = list(own)
    wanted = np.array([own[name] for name in names]) * np.exp(
        random.uniform(-np.log(STEP), np.log(STEP), len(names))
    )
    wanted /= wanted.sum()
    available = np.array([(kind[left] == name).sum() for name in names])
    counts = np.minimum(random.multinomial(size, wanted), available)
    chosen = [
        random.choice(left[kind[left] == name], count, replace=False)
        for name, count in zip(names, counts.tolist(), strict=True)
    ]
    taken = np.concatenate(chosen)
    ratio = float((wanted / np.array(list(own.values()))).max())
    return taken, np.setdiff1d(left, taken), ratio
