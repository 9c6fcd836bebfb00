"""Several members to one, as ``NetworkClassifier._outputs`` pools their probabilities and scores."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.persistence.onnx.graph import Value


def pooled_logits(logits: Value, members: int) -> Value:
    """(members, rows, k) to (rows, k): the log of the members' mean probability."""
    if members == 1:
        return logits.take(0)
    return logits.map("LogSoftmax", axis=-1).over("LogSumExp", 0) - np.float64(np.log(members))


def pooled_scores(scores: Value, model: Any) -> Value:
    """(members, rows) to (rows,): the mean of the members' scores on their common scale."""
    members = model.architecture_.members
    if members == 1:
        return scores.take(0)
    ranked = bool(model.pool_references_)  # else members share one head, whose logits are averaged as they are
    on_scale = [_on_common_scale(scores.take(m), model, m) if ranked else scores.take(m) for m in range(members)]
    return reduce(operator.add, on_scale) / np.float64(members)


def _on_common_scale(scores: Value, model: Any, member: int) -> Value:
    """``rank_log_odds`` among the member's references, less what the method's own scale takes off."""
    reference = np.asarray(model.pool_references_[member], dtype=np.float64)
    anchors = np.unique(reference)
    at_anchors = model._on_common_scale(member, anchors, model.pool_references_)
    spread = np.float64(np.std(reference) or 1.0)
    above = (scores - anchors[-1]).map("Relu") / spread
    below = -(-(scores - anchors[0])).map("Relu") / spread
    return interpolated(scores, anchors, at_anchors) + above + below


def interpolated(x: Value, places: NDArray[np.float64], heights: NDArray[np.float64]) -> Value:
    """``np.interp`` of (rows,) values, in as many steps of bisection as the number of places has bits."""
    graph = x.graph
    steps = [1 << bit for bit in reversed(range((len(places) - 1).bit_length()))]
    padded = np.full(2 * steps[0] if steps else 1, np.inf)
    padded[: len(places)] = places
    slopes = np.append(np.diff(heights) / np.diff(places), 0.0)
    table = graph.constant(padded)
    before = (x * np.float64(0)).as_type(np.int64)  # the last place that is not above x, or the first
    for step in steps:
        probe = before + np.int64(step)
        before = before.where(table.take(probe) > x, probe)
    along = (x - table.take(before)).map("Relu")
    return graph.constant(heights).take(before) + graph.constant(slopes).take(before) * along
