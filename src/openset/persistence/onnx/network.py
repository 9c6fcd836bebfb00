"""A network's bodies and heads as nodes, from its weights alone. Values are (members, rows, width)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.persistence.onnx.graph import Value

Outputs = dict[str, Value]
Weights = dict[str, NDArray[np.float32]]


def head_values(x: Value, model: Any) -> Outputs:
    """Every head's outputs for scaled rows, as ``openset.learn.network.Network`` computes them."""
    architecture = model.architecture_
    found: Outputs = {}
    for name, widths in architecture.bodies.items():
        body, head = (_under(model.weights_, f"{part}.{name}.") for part in ("bodies", "heads"))
        z = _BODIES[architecture.body_kinds.get(name, "relu")](x, body)
        found |= _HEADS[architecture.kinds.get(name, "linear")](z, head, widths)
    return found


def _under(weights: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): array for name, array in weights.items() if name.startswith(prefix)}


def _relu_body(x: Value, weights: Weights) -> Value:
    return (x @ weights["weight"] + weights["bias"]).map("Relu")


def _bottleneck_body(x: Value, weights: Weights) -> Value:
    from openset.learn.bottleneck import _EPSILON

    factor = weights["scale"] / np.sqrt(weights["running_variance"] + np.float32(_EPSILON))
    return (x @ weights["weight"] - weights["running_mean"]) * factor + weights["shift"]


def _linear_heads(z: Value, weights: Weights, widths: dict[str, int]) -> Outputs:
    logits = z @ weights["weight"] + weights["bias"]
    ends = np.cumsum(list(widths.values()))
    return {
        name: logits.take(np.arange(end - width, end), axis=2)
        for (name, width), end in zip(widths.items(), ends, strict=True)
    }


def _reciprocal_heads(z: Value, weights: Weights, widths: dict[str, int]) -> Outputs:
    points = weights["points"]
    product = z @ points.transpose(0, 2, 1)
    lengths = np.square(points).sum(-1)[:, None, :]
    twice, width = np.float32(2), np.float32(points.shape[2])
    distance = ((z * z).over("Sum", 2, keep=True) - product * np.asarray(twice) + lengths) / np.asarray(width)
    return {"classes": distance - product, "distances": distance}


def _weight_norm_heads(z: Value, weights: Weights, widths: dict[str, int]) -> Outputs:
    norm = np.linalg.norm(weights["direction"], axis=1, keepdims=True)
    return {"classes": z @ (weights["direction"] * (weights["length"] / norm)) + weights["bias"]}


_BODIES = {"relu": _relu_body, "bottleneck": _bottleneck_body}
_HEADS = {
    "linear": _linear_heads,
    "reciprocal": _reciprocal_heads,
    "weight_norm": _weight_norm_heads,
    "cells": _linear_heads,  # a linear head; the discriminators beside it serve training only
}
