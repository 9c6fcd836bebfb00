"""Export a fitted model to an ONNX file: rows in; novelty score, probabilities and label out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from openset._utils.extras import require
from openset._utils.files import write_atomically
from openset._version import __version__
from openset.persistence.onnx.graph import IR_VERSION, OPSET, Graph, Value
from openset.persistence.onnx.pooling import pooled_logits, pooled_scores
from openset.persistence.onnx.scores import onnx_msp


@dataclass(frozen=True)
class Inputs:
    """Inputs in place of ``x``: their names, whether they are text, and ``nodes(graph)``, which makes x of them.

    ``domains`` are further sets of operators, with their versions.
    """

    names: Sequence[tuple[str, bool]]
    nodes: Callable[[Graph], Value]
    domains: Mapping[str, int]


def to_onnx(model: Any, path: str | PathLike[str], inputs: Inputs | None = None) -> None:
    """Write a fitted network to a file; see :meth:`openset.OpenSetClassifier.to_onnx`."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    _check_exportable(model)
    require("onnx", "Export to ONNX", "onnx")
    from onnx import TensorProto, checker, helper

    graph = Graph()
    x = graph.value("x") if inputs is None else inputs.nodes(graph)
    score, probabilities, label = _answers(x, model)
    outputs: list[tuple[Value, int, list[str | int]]] = [
        (score.as_type(np.float32, name="novelty_score"), TensorProto.FLOAT, ["n"]),
        (probabilities.as_type(np.float32, name="probabilities"), TensorProto.FLOAT, ["n", len(_labels(model))]),
        (label.as_type(np.int64, name="label"), TensorProto.INT64, ["n"]),
    ]
    content = helper.make_graph(
        graph.nodes,
        type(model).__name__,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *_row_shape(model)])]
        if inputs is None
        else [
            helper.make_tensor_value_info(name, TensorProto.STRING if is_text else TensorProto.DOUBLE, ["n"])
            for name, is_text in inputs.names
        ],
        [helper.make_tensor_value_info(value.name, kind, shape) for value, kind, shape in outputs],
        graph.constants,
    )
    proto = helper.make_model(
        content,
        opset_imports=[
            helper.make_opsetid(domain, version)
            for domain, version in {"": OPSET, **(inputs.domains if inputs is not None else {})}.items()
        ],
        ir_version=IR_VERSION,
        producer_name="openset",
        producer_version=__version__,
    )
    helper.set_model_props(proto, _properties(model))
    checker.check_model(proto, full_check=True)
    write_atomically(Path(path), proto.SerializeToString())


def _check_exportable(model: Any) -> None:
    name = type(model).__name__
    if not hasattr(model, "architecture_"):
        raise ValueError(
            f"{name} has no network, so it has no ONNX graph: export color, dd or another method with a network, "
            "or use save()."
        )
    if _owner(model, "_member_scores") is not _owner(model, "_onnx_scores"):
        raise ValueError(f"{name} defines _member_scores but not _onnx_scores, so it cannot be exported.")
    if model.backbone is not None:
        raise ValueError(
            f"this {name} has a backbone, which is not exported: export the backbone with torch.onnx, and a "
            f"{name} fitted on its outputs with to_onnx()."
        )
    if hasattr(model, "classifier_"):
        raise ValueError(
            f"the known classes of this {name} come from {type(model.classifier_).__name__}, which is not "
            "exported: fit without classifier=, or use save()."
        )


def _owner(model: Any, method: str) -> type:
    """Return the class that defines a method."""
    return next(cls for cls in type(model).__mro__ if method in vars(cls))


def _answers(x: Value, model: Any) -> tuple[Value, Value, Value]:
    """Return score (n,), probabilities (n, labels) and the index of each row's label, as in ``predictions``."""
    raw = model._onnx_heads(model._onnx_aligned(_scaled(x, model)))
    outputs = {name: value.as_type(np.float64) for name, value in raw.items()}
    logits = pooled_logits(model._onnx_class_logits(outputs), model.architecture_.members)
    if model._adapts and not model.n_target_:
        score = onnx_msp(logits)
    else:
        score = model._onnx_score(x, pooled_scores(model._onnx_scores(outputs), model))
    known, label = logits.map("Softmax", axis=-1), logits.map("ArgMax", axis=-1, keepdims=0)
    if not model.n_target_:
        return score, known, label
    graph = x.graph
    is_novel = score > np.float64(model.threshold_)
    # finite, because some runtimes do not define σ(−∞); no score is near it
    margin = score - np.float64(min(model.threshold_, np.finfo(np.float64).max))
    novel = graph.apply("Unsqueeze", margin.map("Sigmoid"), graph.constant(np.array([1])))
    probabilities = graph.apply("Concat", known - known * novel, novel, axis=1)
    return score, probabilities, graph.constant(np.int64(len(model.classes_))).where(is_novel, label)


def _scaled(x: Value, model: Any) -> Value:
    scaling = model.scaling_
    if scaling.rule != "none":
        x = (x - scaling.mean.astype(np.float32)) * scaling.factor.astype(np.float32)
    return x if len(_row_shape(model)) == 1 else x.over("Mean", 1)  # of a map of cells, the mean is used


def _row_shape(model: Any) -> list[int]:
    kind = getattr(model, "row_kind_", None)
    return [model.n_features_in_] if kind is None else [int(size) for size in kind["shape"]]


def _labels(model: Any) -> list[Any]:
    known: list[Any] = model.classes_.tolist()
    return [*known, model.novel_label_] if model.n_target_ else known


def _properties(model: Any) -> dict[str, str]:
    return {
        "labels": json.dumps(_labels(model), ensure_ascii=False, default=str),
        "threshold": repr(float(model.threshold_)),
        "method": type(model).__name__,
    }
