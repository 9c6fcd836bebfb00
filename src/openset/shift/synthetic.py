"""Synthetic problems with background shift, in which every quantity is known.

- :func:`make_background_shift`: Gaussian classes made of subtypes, and one new class;
- :func:`make_feature_maps`: the same rows as maps of foreground and background cells;
- :func:`make_subtype_shift`: one known class of two subtypes, the smallest problem on which estimates of the
  novel fraction go wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from openset._utils.params import check_flag, check_integer, check_number

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class BackgroundShift:
    """Source, target and test rows of one problem, with the truth that a method must not see.

    ``y_target`` and ``y_test`` hold the known class, or −1 for novel rows. Subtypes are numbered through all
    classes. Test rows are drawn like target rows.
    """

    X: Floats
    y: Codes
    X_target: Floats
    y_target: Codes
    X_test: Floats
    y_test: Codes
    subtype: Codes
    subtype_target: Codes
    source_mix: Floats
    """(classes, subtypes): share of each subtype within its class in source."""
    target_mix: Floats
    novel_fraction: float
    centres: Floats
    """(classes, subtypes, features): the mean of every known subtype."""
    novel_centre: Floats

    @property
    def is_novel_target(self) -> NDArray[np.bool_]:
        """Which target rows are of the new class."""
        return self.y_target == -1

    @property
    def is_novel_test(self) -> NDArray[np.bool_]:
        """Which test rows are of the new class."""
        return self.y_test == -1

    @property
    def max_density_ratio(self) -> float:
        """The largest target-to-source ratio of a known subtype: how strong the background shift is."""
        return float((self.target_mix / self.source_mix).max())

    @property
    def auroc_bound(self) -> float:
        """Upper bound on the AUROC of any score, new against known target rows: the mean of Φ(distance / √2).

        Against one subtype this is the best possible AUROC. No single score need be the best against all.
        """
        distances = np.linalg.norm(self.centres - self.novel_centre, axis=-1)
        return float((self.target_mix * ndtr(distances / np.sqrt(2))).sum(axis=1).mean())


def make_background_shift(
    *,
    n_source: int = 2000,
    n_target: int = 2000,
    n_test: int = 2000,
    n_classes: int = 3,
    n_subtypes: int = 2,
    n_features: int = 200,
    novel_fraction: float = 0.1,
    shift: bool = True,
    rare: float = 0.1,
    class_distance: float = 6.0,
    subtype_distance: float = 10.0,
    novel_distance: float = 5.0,
    resembles: float = 0.0,
    random_state: Any = None,
) -> BackgroundShift:
    """Gaussian classes made of subtypes, whose mix differs between source and target, and one new class.

    Every class is a point at ``class_distance`` from the origin, every subtype a point at ``subtype_distance``
    from its class, in random directions; noise has unit variance. Half of each class's subtypes have a share
    ``rare`` of it in source and 1 − ``rare`` in target: the density ratio of known rows reaches
    (1 − rare) / rare, while classes stay balanced. ``shift=False`` gives all subtypes equal shares on both sides.

    The new class, a share ``novel_fraction`` of target, lies at ``novel_distance`` from the origin in a direction
    of its own. With the defaults it lies between the known classes, where a source-only classifier is unsure: the
    problem tells CoLOR from discriminators, not from every method. ``resembles`` moves it that share of the way
    to the first subtype of the first class; at 1 a source-only classifier is sure that it is that subtype, and
    ``novel_distance`` is the distance between the two (see ``auroc_bound``).

    >>> data = make_background_shift(random_state=0)
    >>> data.X.shape, int(data.is_novel_target.sum()), round(data.max_density_ratio)
    ((2000, 200), 200, 9)
    """
    _check_counts(n_source=n_source, n_target=n_target, n_test=n_test, n_classes=n_classes, n_features=n_features)
    check_flag("shift", shift)
    check_integer("n_subtypes", n_subtypes, low=2 if shift else 1)
    check_number("novel_fraction", novel_fraction, high=1, open_high=True)
    check_number("rare", rare, high=0.5, open_low=True)
    check_number("resembles", resembles, high=1)
    random = np.random.default_rng(random_state)
    classes = class_distance * _directions(random, n_classes, 1, n_features)
    centres = classes + subtype_distance * _directions(random, n_classes, n_subtypes, n_features)
    novel_centre = novel_distance * _directions(random, n_features) + resembles * centres[0, 0]
    source_mix, target_mix = _mixes(n_classes, n_subtypes, rare if shift else None, random)
    population = _Population(centres, novel_centre, source_mix, target_mix)
    return population.draw((n_source, n_target, n_test), novel_fraction, random)


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        check_integer(name, count)


def _directions(random: np.random.Generator, *shape: int) -> Floats:
    """Random unit vectors along the last axis."""
    vectors = random.standard_normal(shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def _mixes(
    n_classes: int, n_subtypes: int, rare: float | None, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """The shares of subtypes within classes, in source and in target; all equal where ``rare`` is None."""
    source = np.full((n_classes, n_subtypes), 1 / n_subtypes)
    target = source.copy()
    if rare is not None:
        for c in range(n_classes):
            shrinking = np.zeros(n_subtypes, bool)
            shrinking[random.permutation(n_subtypes)[: n_subtypes // 2]] = True
            source[c] = _mix(shrinking, 1 - rare)
            target[c] = _mix(shrinking, rare)
    return source, target


def _mix(shrinking: NDArray[np.bool_], share: float) -> Floats:
    """``share`` split equally over the marked subtypes, the rest over the others."""
    return np.where(shrinking, share / shrinking.sum(), (1 - share) / (~shrinking).sum())


@dataclass(frozen=True)
class _Population:
    """What rows are drawn from."""

    centres: Floats
    novel_centre: Floats
    source_mix: Floats
    target_mix: Floats

    def draw(
        self, sizes: tuple[int, int, int], novel_fraction: float, random: np.random.Generator
    ) -> BackgroundShift:
        """Source, target and test rows, in these numbers."""
        n_source, n_target, n_test = sizes
        X, y, subtype = self._known(n_source, self.source_mix, random)
        X_target, y_target, subtype_target = self._mixed(n_target, novel_fraction, random)
        X_test, y_test, _ = self._mixed(n_test, novel_fraction, random)
        return BackgroundShift(
            X=X,
            y=y,
            X_target=X_target,
            y_target=y_target,
            X_test=X_test,
            y_test=y_test,
            subtype=subtype,
            subtype_target=subtype_target,
            source_mix=self.source_mix,
            target_mix=self.target_mix,
            novel_fraction=round(n_target * novel_fraction) / n_target,
            centres=self.centres,
            novel_centre=self.novel_centre,
        )

    def _known(self, n: int, mix: Floats, random: np.random.Generator) -> tuple[Floats, Codes, Codes]:
        """Rows of known classes, their classes and their subtypes."""
        n_classes, n_subtypes, n_features = self.centres.shape
        y = random.permutation(np.arange(n, dtype=np.intp) % n_classes)
        subtype = np.array([random.choice(n_subtypes, p=mix[c]) for c in y], dtype=np.intp)
        X = self.centres[y, subtype] + random.standard_normal((n, n_features))
        return X, y, y * n_subtypes + subtype

    def _mixed(self, n: int, novel_fraction: float, random: np.random.Generator) -> tuple[Floats, Codes, Codes]:
        """The same with a share of novel rows among them, whose class and subtype are −1."""
        n_novel = round(n * novel_fraction)
        X, y, subtype = self._known(n - n_novel, self.target_mix, random)
        novel = self.novel_centre + random.standard_normal((n_novel, len(self.novel_centre)))
        order = random.permutation(n)
        unknown = np.full(n_novel, -1, dtype=np.intp)
        X = np.concatenate([X, novel])[order]
        return X, np.concatenate([y, unknown])[order], np.concatenate([subtype, unknown])[order]


def make_feature_maps(
    data: BackgroundShift,
    *,
    n_cells: int = 6,
    n_background: int = 2,
    backgrounds: Any = 3,
    random_state: Any = None,
) -> BackgroundShift:
    """The same problem on maps (n, cells, features), as a convolutional network would return them.

    Of each map's ``n_cells`` cells, ``n_background`` at random positions are background. The others are the row
    itself, each with noise of half a unit. A background cell is drawn around one of the ``backgrounds``: an
    array of centres (m, features), or a number of centres to draw, as far from the origin as the rows are.

    >>> table = make_background_shift(n_features=10, random_state=0)
    >>> make_feature_maps(table, random_state=0).X.shape
    (2000, 6, 10)
    """
    check_integer("n_cells", n_cells)
    check_integer("n_background", n_background, low=0)
    if n_background >= n_cells:
        raise ValueError(f"n_background={n_background} leaves no foreground among n_cells={n_cells} cells.")
    random = np.random.default_rng(random_state)
    n_features = data.X.shape[1]
    if np.ndim(backgrounds) == 0:
        check_integer("backgrounds", backgrounds)
        centres = _directions(random, backgrounds, n_features) * np.median(np.linalg.norm(data.X, axis=1))
    else:
        centres = np.asarray(backgrounds, np.float64).reshape(-1, n_features)

    def maps(rows: Floats) -> Floats:
        cells = np.repeat(rows[:, None, :], n_cells, axis=1)
        cells[:, :n_background] = centres[random.integers(len(centres), size=(len(rows), n_background))]
        cells += 0.5 * random.standard_normal(cells.shape)
        order = random.permuted(np.tile(np.arange(n_cells), (len(rows), 1)), axis=1)
        return np.take_along_axis(cells, order[:, :, None], axis=1)

    return replace(data, X=maps(data.X), X_target=maps(data.X_target), X_test=maps(data.X_test))


@dataclass(frozen=True)
class SubtypeShift:
    """Source and target rows of one known class with two subtypes, and which target rows are new."""

    X: Floats
    X_target: Floats
    is_novel_target: NDArray[np.bool_]


def make_subtype_shift(
    *,
    novel_fraction: float = 0.05,
    shift: bool = True,
    n_source: int = 2000,
    n_target: int = 2000,
    n_features: int = 20,
    share: float = 0.85,
    subtype_distance: float = 4.0,
    novel_distance: float = 8.0,
    random_state: Any = None,
) -> SubtypeShift:
    """Two Gaussian subtypes with equal shares in source, ``share`` and 1 − ``share`` in target, and a new class.

    The subtypes lie ``subtype_distance`` apart on the first axis, the new class at ``novel_distance`` on the
    second; noise has unit variance. ``shift=False`` keeps equal shares in target too.

    >>> data = make_subtype_shift(random_state=0)
    >>> data.X.shape, int(data.is_novel_target.sum())
    ((2000, 20), 100)
    """
    _check_counts(n_source=n_source, n_target=n_target)
    check_integer("n_features", n_features, low=2)
    check_number("novel_fraction", novel_fraction, high=1)
    check_number("share", share, high=1)
    check_flag("shift", shift)
    random = np.random.default_rng(random_state)
    is_novel = random.permutation(np.arange(n_target) < round(n_target * novel_fraction))

    def known(n: int, first: float) -> Floats:
        rows = random.standard_normal((n, n_features))
        rows[:, 0] += np.where(random.random(n) < first, 0.5, -0.5) * subtype_distance
        return rows

    X, X_target = known(n_source, 0.5), known(n_target, share if shift else 0.5)
    novel = random.standard_normal((int(is_novel.sum()), n_features))
    novel[:, 1] += novel_distance
    X_target[is_novel] = novel
    return SubtypeShift(X, X_target, is_novel)
