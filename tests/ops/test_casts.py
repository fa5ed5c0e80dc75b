"""Casts of numbers that int64 cannot hold, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.importers import onnx as importer

onnx = pytest.importorskip("onnx", reason="pip install onnx")
ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
from onnx import TensorProto, helper  # noqa: E402

from tests.ops.each_backend import ON_EACH_BACKEND  # noqa: E402

X = np.array([2**64 - 1, 2**63, 2**63 - 1, 70_000, 5, 0], np.uint64)


def _cast(to: int, like: bool) -> bytes:
    """x, u64 → y in the element type `to`, as Cast or as CastLike."""
    zero = helper.make_tensor("zero", to, [1], [0])
    node = helper.make_node("CastLike" if like else "Cast", ["x", "zero"][: 1 + like], ["y"],
                            **({} if like else {"to": to}))  # fmt: skip
    graph = helper.make_graph(
        [node], "cast", [helper.make_tensor_value_info("x", TensorProto.UINT64, ["n"])],
        [helper.make_tensor_value_info("y", to, ["n"])], [zero] if like else [],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@ON_EACH_BACKEND
@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("to", ["FLOAT", "DOUBLE", "FLOAT16", "INT64", "UINT32", "BOOL"])
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_large_unsigned_numbers(to: str, like: bool, backend: str) -> None:
    model = _cast(getattr(TensorProto, to), like)
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": X})
    (y,) = Predictor(importer.read_bytes(model), backend).run({"x": X}).values()
    np.testing.assert_array_equal(y, wanted, strict=True)
