from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_graphs import evaluated
from openset.persistence.onnx.graph import Graph

X = np.random.default_rng(0).normal(size=(2, 5, 3))
Y = np.random.default_rng(1).normal(size=(2, 5, 3))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, y: x + y, X + Y),
        (lambda x, y: x - y, X - Y),
        (lambda x, y: x * y, X * Y),
        (lambda x, y: x / y, X / Y),
        (lambda x, y: -x, -X),
        (lambda x, y: x > y, X > Y),
        (lambda x, y: x * np.float64(2) + np.ones(3), X * 2 + 1),
        (lambda x, y: (x - np.arange(3.0)) / np.float64(4), (X - np.arange(3)) / 4),
        (lambda x, y: x @ np.ones((3, 2)), X @ np.ones((3, 2))),
        (lambda x, y: x.map("Relu"), np.maximum(X, 0)),
        (lambda x, y: x.map("Softmax", axis=-1), np.exp(X) / np.exp(X).sum(axis=-1, keepdims=True)),
        (lambda x, y: x.over("Sum", -1), X.sum(axis=-1)),
        (lambda x, y: x.over("Max", 0, keep=True), X.max(axis=0, keepdims=True)),
        (lambda x, y: x.over("LogSumExp", 1), np.log(np.exp(X).sum(axis=1))),
        (lambda x, y: x.take(1), X[1]),
        (lambda x, y: x.take(0, axis=2), X[:, :, 0]),
        (lambda x, y: x.take(np.array([2, 0]), axis=2), X[:, :, [2, 0]]),
        (lambda x, y: x.where(y > np.float64(0), y), np.where(Y > 0, X, Y)),
        (lambda x, y: x.where(y > np.float64(0), np.float64(7)), np.where(Y > 0, X, 7)),
        (lambda x, y: x.as_type(np.float32), X.astype(np.float32)),
    ],
)
def test_every_operation_is_numpys(make, expected):
    found = evaluated(make, x=X, y=Y)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_index_may_be_computed_in_the_graph():
    found = evaluated(lambda x, i: x.take(i), x=X[0, :, 0], i=np.array([4, 0, 4]))
    np.testing.assert_array_equal(found, X[0, [4, 0, 4], 0])


def test_nodes_and_constants_are_kept_in_the_order_they_were_asked_for():
    graph = Graph()
    (graph.value("x") - np.zeros(2)) * np.ones(2)
    assert [node.op_type for node in graph.nodes] == ["Sub", "Mul"]
    assert [list(node.input) for node in graph.nodes] == [["x", "c0"], ["v0", "c1"]]
    assert [onnx.numpy_helper.to_array(constant).tolist() for constant in graph.constants] == [[0, 0], [1, 1]]


def test_a_result_may_have_a_name_of_its_own():
    graph = Graph()
    value = graph.value("x").as_type(np.float32, name="novelty_score")
    assert value.name == "novelty_score" and list(graph.nodes[0].output) == ["novelty_score"]


def test_the_smallest_elements_of_each_row_and_their_indices():
    rows = np.random.default_rng(0).normal(size=(6, 9))
    values, indices = (evaluated(lambda x, part=part: x.smallest(4)[part], x=rows) for part in (0, 1))
    np.testing.assert_array_equal(values, np.sort(rows, axis=1)[:, :4])
    np.testing.assert_array_equal(indices, np.argsort(rows, axis=1)[:, :4])
