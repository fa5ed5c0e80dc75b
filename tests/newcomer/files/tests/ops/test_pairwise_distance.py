"""PairwiseDistance against its formula, from an ONNX file on."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ShapeError
from lite_engine.importers.onnx import read_bytes
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_outputs
from lite_engine.runtime import Predictor

onnx = pytest.importorskip("onnx", reason="writes the file")


def read() -> Graph:
    ports = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in
             (("a", [2, 3, 5]), ("b", [2, 3, 5]), ("y", [2, 3]))]  # fmt: skip
    node = onnx.helper.make_node("PairwiseDistance", ["a", "b"], ["y"], domain="com.microsoft")
    graph = onnx.helper.make_graph([node], "g", ports[:2], ports[2:])
    return read_bytes(onnx.helper.make_model(graph).SerializeToString())


@pytest.mark.cpu
def test_values() -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 2, 3, 5)).astype(np.float32)
    (y,) = Predictor(read()).run({"a": a, "b": b}).values()
    np.testing.assert_allclose(y, np.linalg.norm(a - b + 1e-6, axis=-1), rtol=1e-6)


def test_shapes_that_differ_are_refused() -> None:
    graph = Graph("g")
    node = graph.add(
        "PairwiseDistance", [Value("a", DType.F32, (2, 3)), Value("b", DType.F32, (2, 4))]
    )
    with pytest.raises(ShapeError, match="expected two inputs of one shape"):
        infer_outputs(node, strict=True)
