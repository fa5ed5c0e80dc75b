"""Pools that round up, of images smaller than their window, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import ShapeError
from lite_engine.importers import onnx as importer

onnx = pytest.importorskip("onnx", reason="pip install onnx")
ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
from onnx import TensorProto, helper  # noqa: E402

from tests.ops.each_backend import ON_EACH_BACKEND  # noqa: E402

#: Size of the image, of the window, its stride and dilation.
SIZES = [(2, 3, 2, 1), (1, 2, 2, 1), (2, 3, 4, 1), (3, 4, 3, 1), (2, 2, 2, 2)]


def _pool(op: str, window: int, stride: int, dilation: int, rank: int, **attrs: int) -> bytes:
    """x (n, 20, h, …) → y, a pool that rounds up."""
    node = helper.make_node(
        op, ["x"], ["y"], kernel_shape=[window] * rank, strides=[stride] * rank,
        dilations=[dilation] * rank, ceil_mode=1, **attrs,
    )  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 20] + ["h"] * rank)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "pool", [x], [y])
    opsets = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@ON_EACH_BACKEND
@pytest.mark.parametrize(
    ("op", "attrs"),
    [("MaxPool", {}), ("AveragePool", {}), ("AveragePool", {"count_include_pad": 1})],
)
def test_the_only_window_ends_behind_the_data(op: str, attrs: dict[str, int], backend: str) -> None:
    for size, window, stride, dilation in SIZES:
        for rank in (1, 2, 3):
            model = _pool(op, window, stride, dilation, rank, **attrs)
            session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
            predictor = Predictor(importer.read_bytes(model), backend)
            for more in (0, 3):  # and an image of the usual size
                shape = (2, 20, *[size + more] * rank)
                x = np.random.default_rng(rank).standard_normal(shape).astype(np.float32)
                (wanted,) = session.run(None, {"x": x})
                (y,) = predictor.run({"x": x}).values()
                assert y.shape == wanted.shape, (size, window, stride, dilation, rank)
                np.testing.assert_allclose(y, wanted, 1e-5, 1e-6)


@pytest.mark.parametrize(("size", "window", "stride"), [(1, 3, 2), (2, 3, 1)])
def test_no_window_fits(size: int, window: int, stride: int) -> None:
    """Rounded up, too, there are no positions."""
    predictor = Predictor(importer.read_bytes(_pool("MaxPool", window, stride, 1, 2)), "reference")
    with pytest.raises(ShapeError, match="is larger than its input"):
        predictor.run({"x": np.zeros((1, 20, size, size), np.float32)})
