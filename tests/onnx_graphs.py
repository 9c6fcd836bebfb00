"""Run small ONNX graphs, for the tests of what is exported."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime

from openset.persistence.onnx.graph import IR_VERSION, OPSET, Graph


def evaluated(make, **inputs):
    """What ``make(values...)`` computes for arrays, given to it by name as graph values."""
    graph = Graph()
    make(*(graph.value(name) for name in inputs)).map("Identity", name="found")
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    content = onnx.helper.make_graph(
        graph.nodes,
        "g",
        [onnx.helper.make_tensor_value_info(name, kinds[name], inputs[name].shape) for name in inputs],
        [onnx.ValueInfoProto(name="found")],
        graph.constants,
    )
    model = onnx.helper.make_model(
        content, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    session = onnxruntime.InferenceSession(onnx.shape_inference.infer_shapes(model).SerializeToString())
    (found,) = session.run(None, {name: np.ascontiguousarray(array) for name, array in inputs.items()})
    return found
