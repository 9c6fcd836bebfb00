"""Two known subtypes that change their shares: the smallest problem on which mixture proportions go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.params import check_flag, check_integer, check_number


@dataclass(frozen=True)
class SubtypeShift:
    """Source and target rows of one known class with two subtypes, and which target rows are new."""

    X: NDArray[np.float64]
    X_target: NDArray[np.float64]
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
    """Two Gaussian subtypes, 50/50 in source and ``share`` to the rest in target, and a new class beside both.

    The subtypes lie ``subtype_distance`` apart on the first axis, the new class at ``novel_distance`` on the
    second; noise is of unit variance. ``shift=False`` leaves the subtypes at 50/50 in target too.

    >>> data = make_subtype_shift(random_state=0)
    >>> data.X.shape, int(data.is_novel_target.sum())
    ((2000, 20), 100)
    """
    for name, value in (("n_source", n_source), ("n_target", n_target)):
        check_integer(name, value)
    check_integer("n_features", n_features, low=2)
    check_number("novel_fraction", novel_fraction, high=1)
    check_number("share", share, high=1)
    check_flag("shift", shift)
    random = np.random.default_rng(random_state)
    is_novel = random.permutation(np.arange(n_target) < round(n_target * novel_fraction))

    def known(n: int, first: float) -> NDArray[np.float64]:
        rows = random.standard_normal((n, n_features))
        rows[:, 0] += np.where(random.random(n) < first, 0.5, -0.5) * subtype_distance
        return rows

    X, X_target = known(n_source, 0.5), known(n_target, share if shift else 0.5)
    new = random.standard_normal((int(is_novel.sum()), n_features))
    new[:, 1] += novel_distance
    X_target[is_novel] = new
    return SubtypeShift(X, X_target, is_novel)
