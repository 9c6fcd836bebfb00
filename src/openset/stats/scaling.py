"""Centring and scaling of features, computed in blocks so that memory-mapped arrays stay on disk.

Also checks of scale: values too large for float32, and features that look measured in different units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 8192
BLOCK_VALUES = 1 << 20
"""Numbers in a block of rows that are arrays themselves, such as images."""
SQUARABLE = 1e100
"""Scaled values up to this can be squared and summed in float64 with room to spare."""
WIDER, WIDEST = 10.0, 100.0
"""Features are in different units if a tenth of them, or one, spread this many times as much as the median."""


@dataclass(frozen=True)
class Scaling:
    """x ↦ (x − mean) · factor, and the rule that gave it ("none", "global" or "feature")."""

    mean: NDArray[np.float64]
    factor: NDArray[np.float64]
    rule: str

    def apply(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Scaled rows in float64; the rows themselves where the rule is "none"."""
        if self.rule == "none":
            return x
        return (x - self.mean) * self.factor

    def apply_in_place(self, x: NDArray[np.float32]) -> None:
        """Scale float32 rows in place."""
        if self.rule != "none":
            np.subtract(x, self.mean.astype(np.float32), out=x)
            np.multiply(x, self.factor.astype(np.float32), out=x)


NO_SCALING = Scaling(np.zeros(1), np.ones(1), "none")


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of every feature, and the largest absolute value of all."""

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    largest: float


def moments(x: NDArray[np.floating]) -> Moments:
    """The moments of rows, in two passes over blocks, in float64."""
    n = len(x)
    with np.errstate(over="ignore", invalid="ignore"):  # too large values become infinite; callers check for that
        mean = sum(block.sum(axis=0) for block in _blocks(x)) / n
        variance = sum(((block - mean) ** 2).sum(axis=0) for block in _blocks(x)) / n
    largest = max(float(np.abs(block).max(initial=0)) for block in _blocks(x))
    return Moments(np.asarray(mean), np.sqrt(np.asarray(variance)), largest)


def over_cells(of_maps: Moments) -> Moments:
    """Moments of the features of all cells together, from those of maps (cells, features)."""
    mean = of_maps.mean.mean(axis=0)
    variance = (of_maps.sd**2 + (of_maps.mean - mean) ** 2).mean(axis=0)
    return Moments(mean, np.sqrt(variance), of_maps.largest)


def _blocks(x: NDArray[np.floating]) -> Iterator[NDArray[np.float64]]:
    rows = BLOCK if x.ndim <= 2 else max(1, BLOCK_VALUES // max(1, math.prod(x.shape[1:])))
    for start in range(0, len(x), rows):
        yield np.asarray(x[start : start + rows], dtype=np.float64)


def fit_scaling(source: Moments, target: Moments | None, rule: str | None) -> Scaling:
    """A scaling for both domains, in which each counts one half.

    ``"global"`` centres every feature and divides all by one number, which keeps the geometry of embeddings.
    ``"feature"`` gives every feature unit variance, which a table of different columns needs. ``"auto"`` is
    resolved to ``"feature"`` where the 90th percentile of the standard deviations is more than ``WIDER`` times
    their median, or the largest more than ``WIDEST`` times, else to ``"global"``. Nearly constant features do
    not count: they are no sign of other units, and unit variance would make their noise as large as the rest.
    """
    if rule is None:
        return NO_SCALING
    if target is None:
        mean, variance = source.mean, source.sd**2
    else:
        mean = (source.mean + target.mean) / 2
        variance = (source.sd**2 + target.sd**2) / 2 + ((source.mean - target.mean) / 2) ** 2
    sd = np.sqrt(variance)
    varying = sd > 1e-12 * np.maximum(1.0, np.abs(mean))
    if rule == "auto":
        middle, high, highest = np.percentile(sd[varying], [50, 90, 100]) if varying.any() else (1.0, 1.0, 1.0)
        rule = "feature" if high > WIDER * middle or highest > WIDEST * middle else "global"
    if rule == "global":
        overall = float(np.sqrt(variance.mean()))
        return Scaling(mean, np.full_like(mean, 1 / overall if varying.any() else 1.0), rule)
    return Scaling(mean, np.divide(1.0, sd, out=np.ones_like(sd), where=varying), "feature")


def check_single_precision(scaling: Scaling, *parts: Moments | None) -> None:
    """Raise a ValueError if scaled values leave the range of float32, which networks use."""
    largest = max(part.largest for part in parts if part is not None)
    if largest * float(scaling.factor.max()) > 1e-6 * float(np.finfo(np.float32).max):
        raise ValueError(
            f"the largest value, {largest:.3g}, is too large for single precision: scale the columns, "
            "or pass standardize='auto'."
        )


def channel_axis(x: NDArray[Any]) -> int | None:
    """The channel axis of a batch of images, 1 or 3; None for rows that are not images.

    Images are uint8 arrays with four axes. The channels are last if only the last axis has 1, 3 or 4 entries.

    >>> channel_axis(np.zeros((5, 32, 32, 3), np.uint8)), channel_axis(np.zeros((5, 3, 32, 32), np.uint8))
    (3, 1)
    >>> channel_axis(np.zeros((5, 3, 32, 32), np.float32)) is None
    True
    """
    if x.ndim != 4 or x.dtype != np.uint8:
        return None
    usual = (1, 3, 4)
    return 3 if x.shape[3] in usual and x.shape[1] not in usual else 1


def fit_image_scaling(source: Moments, target: Moments | None, rule: str | None, axis: int) -> Scaling:
    """A scaling for images with channels first: mean 0 and variance 1 in every channel.

    With ``rule=None``, values are scaled to [0, 1].
    """
    if rule is None:
        return Scaling(np.zeros(1), np.full(1, 1 / 255), "feature")
    of_target = None if target is None else _per_channel(target, axis)
    scaling = fit_scaling(_per_channel(source, axis), of_target, "feature")
    return Scaling(scaling.mean[:, None, None], scaling.factor[:, None, None], "feature")


def _per_channel(pixels: Moments, axis: int) -> Moments:
    others = tuple(i for i in range(3) if i != axis - 1)
    mean = pixels.mean.mean(axis=others, keepdims=True)
    variance = (pixels.sd**2 + (pixels.mean - mean) ** 2).mean(axis=others)
    return Moments(mean.ravel(), np.sqrt(variance), pixels.largest)


def scale_in_double(scaling: Scaling, x: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scaled rows in float64 whose squares can be summed; a ValueError names a row that is too large for that."""
    with np.errstate(over="ignore"):
        scaled = np.asarray(scaling.apply(np.asarray(x, dtype=np.float64)), dtype=np.float64)
    small = (np.abs(scaled) <= SQUARABLE).all(axis=1)
    if not small.all():
        row = int(np.flatnonzero(~small)[0])
        raise ValueError(
            f"row {row} has values too large to score: they are far outside the range of the fitted rows."
        )
    return scaled


def unscaled(scaling: Scaling, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows in their own units, from scaled ones."""
    return scaled if scaling.rule == "none" else scaled / scaling.factor + scaling.mean


def incompatible_features(source: Moments, target: Moments) -> NDArray[np.intp]:
    """Indices of features that look measured in different units in source and target.

    Their means differ by more than 10 standard deviations, or their standard deviations by more than a factor 30.
    A new class cannot cause the first: a share α of rows, at any distance, moves the mean by at most
    √(α / (1 − α)) of the standard deviation that it causes.
    """
    larger, smaller = np.maximum(source.sd, target.sd), np.minimum(source.sd, target.sd)
    far = np.abs(source.mean - target.mean) > 10 * np.maximum(larger, 1e-12 * np.abs(source.mean))
    stretched = (larger > 30 * smaller) & (smaller > 1e-9 * larger)  # not a constant with rounding errors
    return np.flatnonzero(far | stretched)
