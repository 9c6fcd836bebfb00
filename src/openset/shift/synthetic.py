"""A synthetic background shift whose every quantity is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from openset._utils.params import check_flag, check_integer, check_number


@dataclass(frozen=True)
class BackgroundShift:
    """Source, target and test rows of one problem, with the truth that a method must not see.

    ``y_target`` and ``y_test`` hold the known class or −1 for novel rows; subtypes count through all classes.
    Test rows are drawn like target rows.
    """

    X: NDArray[np.float64]
    y: NDArray[np.intp]
    X_target: NDArray[np.float64]
    y_target: NDArray[np.intp]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.intp]
    subtype: NDArray[np.intp]
    subtype_target: NDArray[np.intp]
    source_mix: NDArray[np.float64]
    """(classes, subtypes): share of each subtype within its class in source."""
    target_mix: NDArray[np.float64]
    novel_fraction: float
    centres: NDArray[np.float64]
    """(classes, subtypes, features): the mean of every known subtype."""
    novel_centre: NDArray[np.float64]

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
        """What no score can exceed in telling new from known target rows: the mean of Φ(distance / √2).

        Against one subtype this is the best possible AUROC; against all, the best scores for each need not agree.
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

    Every class is a point at ``class_distance`` from the origin, every subtype at ``subtype_distance`` from its
    class, in random directions of ``n_features`` dimensions with unit noise. Half of each class's subtypes make
    up a share ``rare`` of it in source and 1 − ``rare`` in target, so the density ratio of known rows reaches
    (1 − rare) / rare while classes stay balanced. The new class, a share ``novel_fraction`` of target, sits at
    ``novel_distance`` from the origin in a direction of its own. ``shift=False`` gives every subtype an
    equal share on both sides. At the defaults the new class lies between the known ones, so that the doubt of a
    source-only classifier finds it too: the problem tells CoLOR from discriminators, not from every method.
    ``resembles`` moves the point it lies beside from the origin that share of the way to the first subtype of the
    first class: at one a source-only classifier takes it for that subtype without a doubt. ``novel_distance``
    then says how far the two are told apart (see ``auroc_bound``).

    >>> data = make_background_shift(random_state=0)
    >>> data.X.shape, int(data.is_novel_target.sum()), round(data.max_density_ratio)
    ((2000, 200), 200, 9)
    """
    for name, value in (("n_source", n_source), ("n_target", n_target), ("n_test", n_test)):
        check_integer(name, value)
    check_integer("n_classes", n_classes)
    check_integer("n_subtypes", n_subtypes, low=2 if shift else 1)
    check_integer("n_features", n_features)
    check_number("novel_fraction", novel_fraction, high=1, open_high=True)
    check_number("rare", rare, high=0.5, open_low=True)
    check_number("resembles", resembles, high=1)
    check_flag("shift", shift)
    random = np.random.default_rng(random_state)

    def directions(*shape: int) -> NDArray[np.float64]:
        d = random.standard_normal((*shape, n_features))
        return d / np.linalg.norm(d, axis=-1, keepdims=True)

    centres = class_distance * directions(n_classes, 1) + subtype_distance * directions(n_classes, n_subtypes)
    novel_centre = novel_distance * directions() + resembles * centres[0, 0]
    source_mix = np.full((n_classes, n_subtypes), 1 / n_subtypes)
    target_mix = source_mix.copy()
    if shift:
        for c in range(n_classes):
            shrinking = np.zeros(n_subtypes, bool)
            shrinking[random.permutation(n_subtypes)[: n_subtypes // 2]] = True
            source_mix[c] = _mix(shrinking, 1 - rare)
            target_mix[c] = _mix(shrinking, rare)

    def known(n: int, mix: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        y = random.permutation(np.arange(n) % n_classes)
        subtype = np.array([random.choice(n_subtypes, p=mix[c]) for c in y], dtype=np.intp)
        return centres[y, subtype] + random.standard_normal((n, n_features)), y, y * n_subtypes + subtype

    def mixed(n: int) -> tuple[NDArray[np.float64], ...]:
        n_novel = round(n * novel_fraction)
        x, y, subtype = known(n - n_novel, target_mix)
        new = novel_centre + random.standard_normal((n_novel, n_features))
        order = random.permutation(n)
        nothing = np.full(n_novel, -1)
        return tuple(np.concatenate(parts)[order] for parts in ((x, new), (y, nothing), (subtype, nothing)))

    X, y, subtype = known(n_source, source_mix)
    X_target, y_target, subtype_target = mixed(n_target)
    X_test, y_test, _ = mixed(n_test)
    return BackgroundShift(
        X=X,
        y=y.astype(np.intp),
        X_target=X_target,
        y_target=y_target.astype(np.intp),
        X_test=X_test,
        y_test=y_test.astype(np.intp),
        subtype=subtype.astype(np.intp),
        subtype_target=subtype_target.astype(np.intp),
        source_mix=source_mix,
        target_mix=target_mix,
        novel_fraction=round(n_target * novel_fraction) / n_target,
        centres=centres,
        novel_centre=novel_centre,
    )


def _mix(shrinking: NDArray[np.bool_], share: float) -> NDArray[np.float64]:
    """``share`` split equally over the marked subtypes, the rest over the others."""
    return np.where(shrinking, share / shrinking.sum(), (1 - share) / (~shrinking).sum())
