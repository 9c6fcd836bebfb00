"""CoLOR's score from heads and distances as ONNX nodes, as ``Voices.score`` does it in numpy.

Everything here is in float64: distances are differences of large numbers.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from openset.learn.network import onnx_layers
from openset.methods._distances import NEIGHBOUR, Distance, HiddenDistance, Space
from openset.methods._voices import Voices
from openset.persistence.onnx.graph import Value
from openset.persistence.onnx.pooling import interpolated
from openset.stats.tail_ranks import TailRank

if TYPE_CHECKING:
    from openset.align.base import Alignment


class OnnxViews:
    """Rows as they are, in float64, and after alignment."""

    def __init__(self, x: Value, alignment: Alignment | None) -> None:
        self.x, self.rows, self._alignment = x, x.as_type(np.float64), alignment

    def in_space(self, space: Space) -> Value:
        """Return the rows in a space."""
        scaled = (self.rows - space.centre) * space.factor
        if space.takes_aligned and self._alignment is not None:  # such a space has the model's scaling
            scaled = self._alignment.onnx(scaled)
        if np.isfinite(space.limit):
            low, high = (scaled.graph.constant(np.float64(sign * space.limit)) for sign in (-1, 1))
            scaled = scaled.graph.apply("Clip", scaled, low, high)
        return scaled if space.axes is None else scaled @ space.axes


def voice_score(voices: Voices, views: OnnxViews, head_score: Value) -> Value:
    """Return the score of rows, given that of the heads."""
    around, trust = voices.surroundings, voices.trust
    nearest = _nearest(views.in_space(around.space), around.rows, min(around.number + 1, len(around.rows)))[1]
    heads = _ranked(voices.head_rank, head_score) + _mean_of(around.heads, nearest)
    score = _ranked(voices.smooth_head_rank, heads) * np.float64(trust.heads)
    if not trust.distances:
        return score
    ranked = zip(voices.distances, voices.ranks, voices.weights, strict=True)
    pooled = _sum([_ranked(rank, _distance(v, views)) * np.float64(weight) for v, rank, weight in ranked])
    distances = pooled + _mean_of(around.distances, nearest)
    return score + _ranked(voices.smooth_distance_rank, distances) * np.float64(trust.distances)


def _distance(voice: Distance, views: OnnxViews) -> Value:
    if not isinstance(voice, HiddenDistance):
        return _kth(views.in_space(voice.space), voice.references)
    scaling, x = voice.scaling, views.x
    if scaling.rule != "none":
        x = (x - scaling.mean.astype(np.float32)) * scaling.factor.astype(np.float32)
    layers = onnx_layers(x, voice.architecture, voice.weights)["shared"].as_type(np.float64)
    length = (layers * layers).over("Sum", -1, keep=True).map("Sqrt")
    units = layers / x.graph.apply("Max", length, x.graph.constant(np.float64(1e-300)))
    by_member = [
        (_kth(units.take(member), references) - np.float64(voice.centres[member]))
        / np.float64(voice.scales[member])
        for member, references in enumerate(voice.references)
    ]
    return _sum(by_member) / np.float64(len(by_member))


def _sum(parts: list[Value]) -> Value:
    return reduce(operator.add, parts)


def _kth(rows: Value, references: NDArray[np.float32]) -> Value:
    return _nearest(rows, references, min(NEIGHBOUR, len(references)))[0].take(-1, axis=1)


def _nearest(rows: Value, references: NDArray[np.float32], k: int) -> tuple[Value, Value]:
    """Return distances (rows, k) to the nearest references, nearest first, and their indices."""
    known = references.astype(np.float64)
    centre = known.mean(axis=0)
    known = known - centre
    rows = rows - centre
    squared = (rows * rows).over("Sum", 1, keep=True) - (rows @ known.T) * np.float64(2)
    squared = (squared + np.einsum("ij,ij->i", known, known)).map("Relu")
    values, indices = squared.smallest(k)
    return values.map("Sqrt"), indices


def _mean_of(values: NDArray[np.float64], nearest: Value) -> Value:
    return nearest.graph.constant(values).take(nearest).over("Mean", 1)


def _ranked(rank: TailRank, scores: Value) -> Value:
    beyond = (scores - rank.points[-1]).map("Relu") * np.float64(rank.slope)
    return interpolated(scores, rank.points, rank.heights) + beyond
