"""Novelty scores of rows that their member did not train on: what every claim about a fit is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scores = NDArray[np.float64]

_PARTS_OF_ONE_FOLD = 5


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """For every member the scores of all heads on its held-out source and target rows; higher = more novel.

    ``source[k]`` is (rows, heads), ``target[k]`` likewise; a head's index means the same head in every member.
    One score alone may be given as a vector.

    >>> one = HeldOutScores.of_one_score([0.1, 0.2, 0.0], [0.1, 3.0])
    >>> one.n_members, one.n_heads, one.n_source, one.n_target
    (1, 1, 3, 2)
    """

    source: tuple[Scores, ...]
    target: tuple[Scores, ...]

    def __post_init__(self) -> None:
        for name in ("source", "target"):
            object.__setattr__(self, name, tuple(_as_columns(part, name) for part in getattr(self, name)))
        if not self.source or len(self.source) != len(self.target):
            raise ValueError(
                f"got scores of {len(self.source)} members on source and of {len(self.target)} on target: "
                "every member needs both, and there must be one."
            )
        heads = {part.shape[1] for part in (*self.source, *self.target)}
        if len(heads) != 1:
            raise ValueError(f"members have different numbers of heads, {sorted(heads)}: they must agree.")

    @classmethod
    def of_one_score(cls, source: ArrayLike, target: ArrayLike) -> HeldOutScores:
        """Scores of a method with one member and one score."""
        return cls((np.asarray(source),), (np.asarray(target),))

    @property
    def n_members(self) -> int:
        """How many members, each with rows of its own."""
        return len(self.source)

    @property
    def n_heads(self) -> int:
        """How many scores a row has."""
        return int(self.source[0].shape[1])

    @property
    def n_source(self) -> int:
        """Held-out source rows of all members."""
        return sum(map(len, self.source))

    @property
    def n_target(self) -> int:
        """Held-out target rows of all members."""
        return sum(map(len, self.target))

    def in_parts(self, seed: int = 0) -> HeldOutScores:
        """Several parts that can choose for each other: the members, or one member's rows split at random."""
        if self.n_members > 1:
            return self
        random = np.random.default_rng(seed)
        return HeldOutScores(_split(self.source[0], random), _split(self.target[0], random))

    def without(self, part: int) -> tuple[Scores, Scores]:
        """Source and target scores of all parts but one, below each other."""
        return _stack(self.source, part), _stack(self.target, part)


def _as_columns(scores: Any, name: str) -> Scores:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or not values.shape[1]:
        raise ValueError(f"{name} scores have shape {values.shape}: expected (rows, heads) for every member.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} scores hold NaN or infinity: pass the rows that were held out, and only those.")
    return values


def _split(scores: Scores, random: np.random.Generator) -> tuple[Scores, ...]:
    return tuple(np.array_split(scores[random.permutation(len(scores))], _PARTS_OF_ONE_FOLD))


def _stack(parts: Sequence[Scores], left_out: int) -> Scores:
    return np.concatenate([part for k, part in enumerate(parts) if k != left_out])
