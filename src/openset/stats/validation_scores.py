"""Novelty scores of validation rows: source and target rows that a member did not train on.

Thresholds, tests and diagnostics are all computed from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scores = NDArray[np.float64]

_PARTS_OF_ONE_MEMBER = 5


@dataclass(frozen=True, eq=False)
class ValidationScores:
    """Scores of every member's validation rows by all heads; higher = more novel.

    ``source[k]`` and ``target[k]`` have shape (rows, heads) for member k. A head has the same index in every
    member. Where there is one score only, a vector will do.

    >>> one = ValidationScores.of_one_score([0.1, 0.2, 0.0], [0.1, 3.0])
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
                f"got source scores of {len(self.source)} members and target scores of {len(self.target)}: "
                "every member needs both, and at least one member is needed."
            )
        heads = {part.shape[1] for part in (*self.source, *self.target)}
        if len(heads) != 1:
            raise ValueError(f"members have different numbers of heads, {sorted(heads)}: they must agree.")

    @classmethod
    def of_one_score(cls, source: ArrayLike, target: ArrayLike) -> ValidationScores:
        """Scores of a method with one member and one score."""
        return cls((np.asarray(source),), (np.asarray(target),))

    @property
    def n_members(self) -> int:
        """Number of members, each with its own rows."""
        return len(self.source)

    @property
    def n_heads(self) -> int:
        """Number of scores of one row."""
        return int(self.source[0].shape[1])

    @property
    def n_source(self) -> int:
        """Number of source rows, over all members."""
        return sum(map(len, self.source))

    @property
    def n_target(self) -> int:
        """Number of target rows, over all members."""
        return sum(map(len, self.target))

    def in_parts(self, seed: int = 0) -> ValidationScores:
        """At least two parts for cross-fitting: the members, or the rows of one member split at random."""
        if self.n_members > 1:
            return self
        random = np.random.default_rng(seed)
        return ValidationScores(_split(self.source[0], random), _split(self.target[0], random))

    def without(self, part: int) -> tuple[Scores, Scores]:
        """Source and target scores of all parts except one, each as one array."""
        return _stack(self.source, part), _stack(self.target, part)


def _as_columns(scores: Any, name: str) -> Scores:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or not values.shape[1]:
        raise ValueError(f"{name} scores have shape {values.shape}: expected (rows, heads) for every member.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} scores contain NaN or infinity: pass scores of validation rows only.")
    return values


def _split(scores: Scores, random: np.random.Generator) -> tuple[Scores, ...]:
    return tuple(np.array_split(scores[random.permutation(len(scores))], _PARTS_OF_ONE_MEMBER))


def _stack(parts: Sequence[Scores], skipped: int) -> Scores:
    return np.concatenate([part for k, part in enumerate(parts) if k != skipped])
