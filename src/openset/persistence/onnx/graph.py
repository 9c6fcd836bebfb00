"""ONNX graphs written as arithmetic: ``(x - mean) * factor`` adds two nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

Numbers = Union["Value", NDArray[Any], np.generic]

OPSET, IR_VERSION = 18, 8
"""Versions that runtimes since 2022 can read: ONNX 1.13, onnxruntime 1.14."""


@dataclass(eq=False)
class Graph:
    """Nodes and constants, in the order in which they were added."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def value(self, name: str) -> Value:
        """Return a value by its name, such as an input."""
        return Value(self, name)

    def constant(self, array: Any) -> Value:
        """Add numbers to the graph, and return them as a value."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return Value(self, name)

    def apply(self, operator: str, *inputs: Value, name: str | None = None, **attributes: Any) -> Value:
        """Add a node with one output, and return the output."""
        from onnx import helper

        name = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, [value.name for value in inputs], [name], **attributes))
        return Value(self, name)


@dataclass(frozen=True, eq=False)
class Value:
    """The output of a node. Numbers in an expression with it must have the same precision."""

    graph: Graph
    name: str

    def _with(self, operator: str, other: Numbers) -> Value:
        second = other if isinstance(other, Value) else self.graph.constant(other)
        return self.graph.apply(operator, self, second)

    def __add__(self, other: Numbers) -> Value:
        return self._with("Add", other)

    def __sub__(self, other: Numbers) -> Value:
        return self._with("Sub", other)

    def __mul__(self, other: Numbers) -> Value:
        return self._with("Mul", other)

    def __truediv__(self, other: Numbers) -> Value:
        return self._with("Div", other)

    def __matmul__(self, other: Numbers) -> Value:
        return self._with("MatMul", other)

    def __gt__(self, other: Numbers) -> Value:
        return self._with("Greater", other)

    def __neg__(self) -> Value:
        return self.graph.apply("Neg", self)

    def map(self, operator: str, **attributes: Any) -> Value:
        """Apply a function to each element, or to each row: "Relu", "Exp", "LogSoftmax"."""
        return self.graph.apply(operator, self, **attributes)

    def over(self, operator: str, axis: int, *, keep: bool = False) -> Value:
        """Reduce along one axis: "Max", "Sum", "Mean", "LogSumExp"."""
        return self.graph.apply(
            f"Reduce{operator}", self, self.graph.constant(np.array([axis])), keepdims=int(keep)
        )

    def take(self, indices: Numbers | int, axis: int = 0) -> Value:
        """Return elements along an axis; a single index removes the axis."""
        chosen = indices if isinstance(indices, Value) else self.graph.constant(np.asarray(indices, np.int64))
        return self.graph.apply("Gather", self, chosen, axis=axis)

    def smallest(self, k: int) -> tuple[Value, Value]:
        """Return the k smallest elements of each row, in order, and their indices."""
        from onnx import helper

        number = self.graph.constant(np.array([k]))
        names = [f"v{len(self.graph.nodes)}", f"i{len(self.graph.nodes)}"]
        self.graph.nodes.append(helper.make_node("TopK", [self.name, number.name], names, axis=-1, largest=0))
        return Value(self.graph, names[0]), Value(self.graph, names[1])

    def where(self, condition: Value, other: Numbers) -> Value:
        """Return this value where the condition holds, and the other elsewhere."""
        second = other if isinstance(other, Value) else self.graph.constant(other)
        return self.graph.apply("Where", condition, self, second)

    def as_type(self, dtype: Any, name: str | None = None) -> Value:
        """Return the value in another precision, optionally with a given name."""
        from onnx import helper

        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.graph.apply("Cast", self, to=to, name=name)
