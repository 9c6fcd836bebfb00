"""Each method's class logits and novelty score as nodes: what its ``_member_scores`` says in numpy.

Values come in as (members, rows, width) of float64 and scores leave as (members, rows).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from openset.persistence.onnx.graph import Value
from openset.persistence.onnx.network import Outputs

Score = Callable[[Outputs, Any], Value]


def class_logits(outputs: Outputs, model: Any) -> Value:
    """Logits of the known classes, (members, rows, k)."""
    classes = outputs["classes"]
    if hasattr(model, "class_shift_"):  # PULSE
        classes = classes + model.class_shift_[:, None, :].astype(np.float64)
    if hasattr(model, "anchors_"):  # CAC
        return -_rejection(classes, model)
    return classes


def member_scores(outputs: Outputs, model: Any) -> Value:
    """Each member's score, by the class that defines it, so that a subclass with its own is not mistaken."""
    owner = next(cls.__name__ for cls in type(model).__mro__ if "_member_scores" in vars(cls))
    if owner not in _SCORES:
        raise ValueError(f"{type(model).__name__} has a score of its own, unknown to the export to ONNX.")
    return _SCORES[owner](outputs, model)


def doubt(logits: Value, temperature: float = 1.0) -> Value:
    """1 − max softmax, over the last axis."""
    rest, _ = _others(logits, temperature)
    return rest / (rest + np.float64(1))


def _others(logits: Value, temperature: float) -> tuple[Value, Value]:
    """Σ exp(−gap) and Σ exp(−gap)·gap over all classes but the top one."""
    tempered = logits / np.float64(temperature)
    gaps = tempered.over("Max", -1, keep=True) - tempered
    weights = (-gaps).map("Exp")
    # two classes may tie at the top: only one of them is taken out
    rest = weights.over("Sum", -1) - np.float64(1)
    return rest, (weights * gaps).over("Sum", -1)


def _entropy(logits: Value, temperature: float = 1.0) -> Value:
    rest, weighted = _others(logits, temperature)
    whole = rest + np.float64(1)
    return whole.map("Log") + weighted / whole


def _normalised_entropy(outputs: Outputs, model: Any) -> Value:
    entropy, n_classes = _entropy(outputs["classes"]), len(model.classes_)
    return entropy / np.float64(np.log(n_classes)) if n_classes > 1 else entropy


def _energy(outputs: Outputs, model: Any) -> Value:
    temperature = np.float64(model.temperature)
    return -(outputs["classes"] / temperature).over("LogSumExp", -1) * temperature


def _rejection(classes: Value, model: Any) -> Value:
    anchors = model.anchors_[:, :, None, :]  # (members, anchors, 1, k)
    graph = classes.graph
    apart = graph.apply("Unsqueeze", classes, graph.constant(np.array([1]))) - anchors
    distances = graph.apply("Transpose", (apart * apart).over("Sum", -1).map("Sqrt"), perm=[0, 2, 1])
    if anchors.shape[1] == 1:
        return distances
    return distances - distances * (-distances).map("Softmax", axis=-1)


def _selected_heads(outputs: Outputs, model: Any) -> Value:
    novelty, graph = outputs["novelty"], outputs["novelty"].graph
    chosen = np.broadcast_to(model.selected_["head"], model.architecture_.members)
    members = [novelty.take(np.array([m])).take(int(head), axis=2) for m, head in enumerate(chosen)]
    return members[0] if len(members) == 1 else graph.apply("Concat", *members, axis=0)


def _first_novelty(outputs: Outputs, model: Any) -> Value:
    return outputs["novelty"].take(0, axis=2)


def _highest_logit(outputs: Outputs, model: Any) -> Value:
    return -outputs["classes"].over("Max", -1)


_SCORES: dict[str, Score] = {
    "CoLOR": _selected_heads,
    "DomainDiscriminator": _first_novelty,
    "UPU": _first_novelty,
    "BODA": lambda outputs, model: outputs["unknown"].take(0, axis=2) - outputs["classes"].over("LogSumExp", -1),
    "SHOT": _normalised_entropy,
    "ARPL": _highest_logit,
    "MLS": _highest_logit,
    "CAC": lambda outputs, model: _rejection(outputs["classes"], model).over("Min", -1),
    "SourceOnly": lambda outputs, model: doubt(outputs["classes"]),
    "MSP": lambda outputs, model: doubt(outputs["classes"], model.temperature),
    "Entropy": lambda outputs, model: _entropy(outputs["classes"], model.temperature),
    "Energy": _energy,
}
