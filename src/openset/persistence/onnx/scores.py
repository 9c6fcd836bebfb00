"""Scores of logits as ONNX nodes, for the methods' ``_onnx_scores``; the formulas of ``openset.stats.scores``.

Logits are (members, rows, k) in float64; scores are (members, rows).
"""

from __future__ import annotations

import numpy as np

from openset.persistence.onnx.graph import Value


def onnx_msp(logits: Value, temperature: float = 1.0) -> Value:
    """Return 1 − max softmax probability, over the last axis."""
    rest, _ = _others(logits, temperature)
    return rest / (rest + np.float64(1))


def onnx_entropy(logits: Value, temperature: float = 1.0) -> Value:
    """Return the entropy of the softmax, over the last axis."""
    rest, weighted = _others(logits, temperature)
    whole = rest + np.float64(1)
    return whole.map("Log") + weighted / whole


def onnx_energy(logits: Value, temperature: float = 1.0) -> Value:
    """Return −T·log Σ exp(logits / T), over the last axis."""
    by = np.float64(temperature)
    return -(logits / by).over("LogSumExp", -1) * by


def onnx_highest_logit(logits: Value) -> Value:
    """Return −max logit, over the last axis."""
    return -logits.over("Max", -1)


def _others(logits: Value, temperature: float) -> tuple[Value, Value]:
    """Return Σ exp(−gap) and Σ exp(−gap)·gap over all classes except the largest."""
    tempered = logits / np.float64(temperature)
    gaps = tempered.over("Max", -1, keep=True) - tempered
    weights = (-gaps).map("Exp")
    # two classes may tie for the largest: only one of them is removed
    rest = weights.over("Sum", -1) - np.float64(1)
    return rest, (weights * gaps).over("Sum", -1)
