"""Scores of logits as ONNX nodes, for the methods' ``_onnx_scores``: the formulas of ``openset.stats.scores``.

Values are (members, rows, k) of float64; scores are (members, rows).
"""

from __future__ import annotations

import numpy as np

from openset.persistence.onnx.graph import Value


def onnx_msp(logits: Value, temperature: float = 1.0) -> Value:
    """1 − max softmax probability, over the last axis."""
    rest, _ = _others(logits, temperature)
    return rest / (rest + np.float64(1))


def onnx_entropy(logits: Value, temperature: float = 1.0) -> Value:
    """Entropy of the softmax, over the last axis."""
    rest, weighted = _others(logits, temperature)
    whole = rest + np.float64(1)
    return whole.map("Log") + weighted / whole


def onnx_energy(logits: Value, temperature: float = 1.0) -> Value:
    """−T·log Σ exp(logits / T), over the last axis."""
    by = np.float64(temperature)
    return -(logits / by).over("LogSumExp", -1) * by


def onnx_highest_logit(logits: Value) -> Value:
    """−max logit, over the last axis."""
    return -logits.over("Max", -1)


def _others(logits: Value, temperature: float) -> tuple[Value, Value]:
    """Σ exp(−gap) and Σ exp(−gap)·gap over all classes but the top one."""
    tempered = logits / np.float64(temperature)
    gaps = tempered.over("Max", -1, keep=True) - tempered
    weights = (-gaps).map("Exp")
    # two classes may tie at the top: only one of them is taken out
    rest = weights.over("Sum", -1) - np.float64(1)
    return rest, (weights * gaps).over("Sum", -1)
