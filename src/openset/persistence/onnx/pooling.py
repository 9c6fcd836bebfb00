"""Pooling of members as ONNX nodes, as ``NetworkBase._pooled`` does it in numpy."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.persistence.onnx.graph import Value


def pooled_logits(logits: Value, members: int) -> Value:
    """Return the log of the members' mean probability: (members, rows, k) to (rows, k)."""
    if members == 1:
        return logits.take(0)
    return logits.map("LogSoftmax", axis=-1).over("LogSumExp", 0) - np.float64(np.log(members))


def pooled_scores(scores: Value, model: Any) -> Value:
    """Return the mean of the members' scores on their common scale: (members, rows) to (rows,)."""
    members = model.architecture_.members
    if members == 1:
        return scores.take(0)
    ranked = bool(model.pool_references_)  # else members share one head, whose logits are averaged directly
    on_scale = [_on_common_scale(scores.take(m), model, m) if ranked else scores.take(m) for m in range(members)]
    return reduce(operator.add, on_scale) / np.float64(members)


def _on_common_scale(scores: Value, model: Any, member: int) -> Value:
    """Return ``rank_log_odds`` among the member's references, shifted as the method does it."""
    reference = np.asarray(model.pool_references_[member], dtype=np.float64)
    anchors = np.unique(reference)
    at_anchors = model._on_common_scale(member, anchors, model.pool_references_)
    spread = np.float64(np.std(reference) or 1.0)
    above = (scores - anchors[-1]).map("Relu") / spread
    below = -(-(scores - anchors[0])).map("Relu") / spread
    return interpolated(scores, anchors, at_anchors) + above + below


def interpolated(x: Value, points: NDArray[np.float64], heights: NDArray[np.float64]) -> Value:
    """Return ``np.interp`` of (rows,) values by bisection; the number of steps is that of bits of len(points)."""
    graph = x.graph
    steps = [1 << bit for bit in reversed(range((len(points) - 1).bit_length()))]
    padded = np.full(2 * steps[0] if steps else 1, np.inf)
    padded[: len(points)] = points
    slopes = np.append(np.diff(heights) / np.diff(points), 0.0)
    table = graph.constant(padded)
    before = (x * np.float64(0)).as_type(np.int64)  # index of the last point that is not above x, or 0
    for step in steps:
        probe = before + np.int64(step)
        before = before.where(table.take(probe) > x, probe)
    along = (x - table.take(before)).map("Relu")
    return graph.constant(heights).take(before) + graph.constant(slopes).take(before) * along
