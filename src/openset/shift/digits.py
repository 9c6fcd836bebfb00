"""scikit-learn's digits as a real background-shift problem: what the demo and the bench run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUPS = ((0, 1, 2), (3, 4, 5), (6, 7, 8))
NOVEL_DIGIT = 9
NOVEL_FRACTION = 0.08


@dataclass(frozen=True)
class DigitsProblem:
    """Source, target and held-out target rows; labels are groups of digits, the new digit is "novel"."""

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
    """Split the digits: the j-th digit of every group gives a share m_j ~ U(.25, .75) of its images to source.

    As in the paper's CIFAR-100 recipe the shares are the same in all groups, so that groups keep their sizes
    while their digits do not. The rest of the known digits is target; enough nines join it to make up 8 %. Of
    the target rows a part is held out for testing, so that no row that is scored was fitted on. Without
    ``shift`` every share is one half.
    """
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    random = np.random.default_rng(seed)
    shares = random.uniform(0.25, 0.75, size=3) if shift else np.full(3, 0.5)
    source: list[int] = []
    target: list[int] = []
    for group in GROUPS:
        for one, share in zip(group, shares, strict=True):
            to_source, to_target = _cut(np.flatnonzero(digit == one), share, random)
            source += to_source
            target += to_target
    n_novel = round(len(target) * NOVEL_FRACTION / (1 - NOVEL_FRACTION))
    novel = random.permutation(np.flatnonzero(digit == NOVEL_DIGIT))[:n_novel]
    known_test, known_fit = _cut(np.array(target), test_fraction, random)
    novel_test, novel_fit = _cut(novel, test_fraction, random)
    test, target = known_test + novel_test, random.permutation(known_fit + novel_fit).tolist()
    names = np.array([_group_name(d) for d in range(10)])
    return DigitsProblem(
        X=images[source],
        y=names[digit[source]],
        X_target=images[target],
        y_target=names[digit[target]],
        X_test=images[test],
        y_test=names[digit[test]],
    )


def _cut(rows: NDArray[np.intp], share: float, random: np.random.Generator) -> tuple[list[int], list[int]]:
    """A share of the rows, drawn at random, and the others."""
    shuffled = random.permutation(rows).tolist()
    n = round(len(rows) * share)
    return shuffled[:n], shuffled[n:]


def _group_name(digit: int) -> str:
    for group in GROUPS:
        if digit in group:
            return f"{group[0]}–{group[-1]}"
    return "novel"
