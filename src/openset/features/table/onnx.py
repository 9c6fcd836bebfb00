"""A fitted table as nodes of an ONNX graph: one input for each column, numbers and categories as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from openset.features.table.fitted import FittedTable, TableColumn
from openset.persistence.onnx.graph import Graph, Value

ML_DOMAIN, ML_OPSET = "ai.onnx.ml", 3
"""Where the operator is that tells which level a text is."""


@dataclass(frozen=True)
class ColumnInput:
    """An input of the graph: a column's name, and whether it takes text. A missing number is NaN, a text ""."""

    name: str
    is_text: bool


def why_not(fitted: FittedTable) -> str:
    """Why a table has no nodes; empty if it has."""
    for column in fitted.used:
        if column.kind == "date":
            return f"column {column.name!r} is a date, which ONNX cannot read"
        if column.buckets:
            return f"column {column.name!r} has {len(column.levels)} hashed levels, and ONNX has no such hash"
    return ""


def inputs_of(fitted: FittedTable) -> list[ColumnInput]:
    """The inputs of the graph, in the order of columns."""
    return [ColumnInput(column.name, column.kind == "category") for column in fitted.used]


def table_nodes(graph: Graph, fitted: FittedTable) -> Value:
    """Add the nodes that make features of the inputs, and return the features: (rows, features) in float32."""
    parts = [part for column in fitted.used for part in _column_nodes(graph, column)]
    features = graph.apply("Concat", *parts, axis=1)
    if fitted.mean is not None and fitted.factor is not None:
        features = (features - np.array(fitted.mean)) * np.array(fitted.factor)
    return features.as_type(np.float32)


def _column_nodes(graph: Graph, column: TableColumn) -> list[Value]:
    own = graph.value(column.name)
    return _category_nodes(graph, own, column) if column.kind == "category" else _number_nodes(graph, own, column)


def _number_nodes(graph: Graph, own: Value, column: TableColumn) -> list[Value]:
    numbers = own.as_type(np.float64)
    is_missing = numbers.map("IsNaN")
    filled = graph.constant(np.float64(column.fill)).where(is_missing, numbers)
    if column.tail is not None:
        filled = _asinh(filled / np.float64(column.tail))
    found = [_as_column(graph, filled)]
    return [*found, _as_column(graph, is_missing.as_type(np.float64))] if column.has_flag else found


def _asinh(x: Value) -> Value:
    """asinh by its formula: runtimes have the operator in single precision only."""
    size = x.map("Abs")
    return x.map("Sign") * (size + (size * size + np.float64(1.0)).map("Sqrt")).map("Log")


def _category_nodes(graph: Graph, own: Value, column: TableColumn) -> list[Value]:
    """The row of a small table for each level: its indicators, and the flag."""
    places = {level: index for index, level in enumerate(column.levels)}
    other, missing = len(places), len(places) + 1
    table: Any = np.zeros((missing + 1, len(column.features)))
    table[np.arange(other + 1), np.arange(other + 1)] = 1.0
    table[missing, places[str(column.fill)]] = 1.0
    if column.has_flag:
        table[missing, -1] = 1.0
    keys = [*places, ""]
    codes = graph.apply(
        "LabelEncoder", own, domain=ML_DOMAIN,
        keys_strings=keys, values_int64s=[*places.values(), missing], default_int64=other,
    )  # fmt: skip
    return [graph.constant(table).take(codes)]


def _as_column(graph: Graph, value: Value) -> Value:
    return graph.apply("Unsqueeze", value, graph.constant(np.array([1])))
