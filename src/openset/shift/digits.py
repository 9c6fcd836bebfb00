"""scikit-learn's digits as a problem with background shift, for the demo, the samples and the bench."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.shift.draw import divide_all

GROUPS = ((0, 1, 2), (3, 4, 5), (6, 7, 8))
NOVEL_DIGIT = 9
NOVEL_FRACTION = 0.08


@dataclass(frozen=True)
class DigitsProblem:
    """Source, target and test rows; labels are groups of digits, and "novel" for the new digit."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    X_target: NDArray[np.float64]
    y_target: NDArray[Any]
    """The truth about the target rows, never given to ``fit``."""
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]

    @property
    def novel_fraction(self) -> float:
        """The new digit's share of the target rows."""
        return float((self.y_target == "novel").mean())


def digits_problem(seed: int, test_fraction: float = 0.3, *, shift: bool = True) -> DigitsProblem:
    """Split the digits into source, target and test rows, labelled by their groups; see :func:`digits_rows`."""
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    rows = digits_rows(digit, seed, test_fraction, shift=shift)
    names = np.array([_group_name(d) for d in range(10)])
    return DigitsProblem(
        X=images[rows.source],
        y=names[digit[rows.source]],
        X_target=images[rows.target],
        y_target=names[digit[rows.target]],
        X_test=images[rows.test],
        y_test=names[digit[rows.test]],
    )


@dataclass(frozen=True)
class DigitsRows:
    """Row numbers of source, target and test in scikit-learn's digits."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    test: NDArray[np.int64]


def digits_rows(
    digit: NDArray[np.int64],
    seed: int,
    test_fraction: float = 0.3,
    *,
    shift: bool = True,
    novel_fraction: float | None = NOVEL_FRACTION,
) -> DigitsRows:
    """Draw the rows: a share m_j ~ U(.25, .75) of the images of every group's j-th digit is source.

    As in the paper's CIFAR-100 recipe the shares are the same in all groups: groups keep their sizes, their
    digits do not. The rest of the known digits is target, with enough nines to be ``novel_fraction`` of it (None
    for all of them). A share ``test_fraction`` of the target rows is for testing only, and no method is fitted on
    them. Without ``shift`` every share is one half.
    """
    random = np.random.default_rng(seed)
    shares = random.uniform(0.25, 0.75, size=3) if shift else np.full(3, 0.5)
    cuts = [
        divide_all(np.flatnonzero(digit == one), share, random)
        for group in GROUPS
        for one, share in zip(group, shares, strict=True)
    ]
    source, known = (np.concatenate(parts) for parts in zip(*cuts, strict=True))
    n_novel = None if novel_fraction is None else round(len(known) * novel_fraction / (1 - novel_fraction))
    novel = random.permutation(np.flatnonzero(digit == NOVEL_DIGIT))[:n_novel]
    known_test, known_fit = divide_all(known, test_fraction, random)
    novel_test, novel_fit = divide_all(novel, test_fraction, random)
    target = random.permutation(np.concatenate([known_fit, novel_fit]))
    return DigitsRows(source, target, np.concatenate([known_test, novel_test]))


def _group_name(digit: int) -> str:
    for group in GROUPS:
        if digit in group:
            return f"{group[0]}–{group[-1]}"
    return "novel"
