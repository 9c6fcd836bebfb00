"""What every aligner does, the two kinds of fitted alignment, and checks of rows and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from openset._utils.arrays import as_labels

if TYPE_CHECKING:
    from openset.persistence.onnx.graph import Value

Rows = NDArray[np.float64]

MAX_GATE_COMPONENTS = 100
"""Principal components in which an aligner clusters rows or predicts their classes."""


class Alignment(Protocol):
    """A fitted alignment: moves target rows to where source rows of the same kind are."""

    @property
    def name(self) -> str:
        """The name of the aligner that fitted it, such as "classes"."""

    def transform_target(self, rows: Any) -> Rows:
        """Return target rows, moved; any number of rows, in float64."""

    def onnx(self, x: Value) -> Value:
        """Return the same transformation as nodes of an ONNX graph, in the precision of ``x``."""


class Aligner(Protocol):
    """Fits an alignment to the rows of both domains, which the caller has scaled."""

    @property
    def name(self) -> str:
        """The name by which ``align=`` asks for it."""

    def fit(self, X: Any, X_target: Any, y: Any = None) -> Alignment:
        """Return the alignment of these domains; ``y`` has the known classes of the source rows."""


@dataclass(frozen=True)
class Affine:
    """x ↦ (x · matrix) · factor + shift; what is None is left out."""

    name: str
    matrix: Rows | None = None
    factor: Rows | None = None
    shift: Rows | None = None

    def transform_target(self, rows: Any) -> Rows:
        """Return target rows, moved; any number of rows, in float64."""
        moved = check_later_rows(rows, None if self.shift is None else len(self.shift))
        if self.matrix is not None:
            moved = moved @ self.matrix
        if self.factor is not None:
            moved = moved * self.factor
        return moved if self.shift is None else moved + self.shift

    def onnx(self, x: Value) -> Value:
        """Return the same transformation as nodes of an ONNX graph, in the precision of ``x``."""
        if self.matrix is not None:
            x = x @ _constant_like(x, self.matrix)
        if self.factor is not None:
            x = x * _constant_like(x, self.factor)
        return x if self.shift is None else x + _constant_like(x, self.shift)


@dataclass(frozen=True)
class Offsets:
    """x ↦ x + gate(x) · offsets: each row is moved by the offset of its part of the space.

    The gate is computed from (x − centre) · weights + intercept, with one column for each offset. If ``hard``,
    a row gets the offset of its largest column, else the mean of all offsets with softmax weights.
    """

    name: str
    centre: Rows
    weights: Rows
    intercept: Rows
    offsets: Rows
    hard: bool

    def gate(self, rows: Rows) -> Rows:
        """The weight of every offset in the move of each row; each row sums to 1."""
        from scipy.special import softmax

        logits = (rows - self.centre) @ self.weights + self.intercept
        if self.hard:
            return np.eye(len(self.offsets))[logits.argmax(axis=1)]
        return np.asarray(softmax(logits, axis=1))

    def transform_target(self, rows: Any) -> Rows:
        """Return target rows, moved; any number of rows, in float64."""
        moved = check_later_rows(rows, len(self.centre))
        return moved + self.gate(moved) @ self.offsets

    def onnx(self, x: Value) -> Value:
        """Return the same transformation as nodes of an ONNX graph, in the precision of ``x``."""
        weights, intercept = _constant_like(x, self.weights), _constant_like(x, self.intercept)
        logits = (x - _constant_like(x, self.centre)) @ weights + intercept
        offsets = _constant_like(x, self.offsets)
        if self.hard:
            return x + offsets.take(logits.map("ArgMax", axis=-1, keepdims=0))
        return x + logits.map("Softmax", axis=-1) @ offsets


def _constant_like(x: Value, numbers: Rows) -> Value:
    """Numbers in the precision of ``x``, which a value of a graph does not know before the graph runs."""
    return x.graph.apply("CastLike", x.graph.constant(numbers), x)


def check_rows(X: Any, X_target: Any) -> tuple[Rows, Rows]:
    """Rows of both domains as float64 arrays that can be compared; a ValueError says what is wrong."""
    source, target = _finite_table(X, "X"), _finite_table(X_target, "X_target")
    for name, rows in (("X", source), ("X_target", target)):
        if len(rows) < 2:
            raise ValueError(f"{name} has {len(rows)} rows: an alignment needs at least 2.")
    if source.shape[1] != target.shape[1]:
        raise ValueError(f"X has {source.shape[1]} columns and X_target has {target.shape[1]}: they must agree.")
    return source, target


def check_later_rows(rows: Any, n_columns: int | None) -> Rows:
    """Rows to be moved, as a float64 array with the columns of the fit."""
    table = _finite_table(rows, "rows")
    if n_columns is not None and table.shape[1] != n_columns:
        raise ValueError(f"rows have {table.shape[1]} columns, the alignment was fitted on {n_columns}.")
    return table


def check_classes(y: Any, n: int) -> NDArray[np.intp]:
    """The known classes of n source rows as codes 0, 1, …"""
    if y is None:
        raise ValueError("this alignment needs y: give the known class of every source row.")
    labels = as_labels(y)
    if len(labels) != n:
        raise ValueError(f"y has {len(labels)} labels for {n} source rows.")
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _finite_table(rows: Any, name: str) -> Rows:
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"{name} must have rows and columns, but its shape is {table.shape}.")
    if not np.isfinite(table).all():
        raise ValueError(f"{name} contains NaN or infinity.")
    return table
