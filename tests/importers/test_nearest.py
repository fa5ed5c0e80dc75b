"""The nearest pixel where ratios are not whole: onnxruntime's of ONNX, LiteRT's of TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.importers.onnx import read_bytes
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table

COORDINATES = (
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric",
)  # fmt: skip
ROUNDINGS = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
#: Sizes before and after at which some position is whole, or in the middle between two pixels.
PAIRS = ((7, 9), (7, 1), (7, 17), (7, 2), (13, 2), (14, 1), (14, 19), (14, 39), (28, 31), (14, 2))


def check_onnx(coordinates: str, rounding: str, n_in: int, key: str, to: np.ndarray) -> None:
    """`to` are the `sizes` or the `scales`, whichever `key` says."""
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    helper = onnx.helper
    node = helper.make_node(
        "Resize", ["x", "", *([key] if key == "scales" else ["", key])], ["y"], mode="nearest",
        nearest_mode=rounding, coordinate_transformation_mode=coordinates,
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "resize", [helper.make_tensor_value_info("x", 1, [1, 1, 1, n_in])],
        [helper.make_tensor_value_info("y", 1, None)], [onnx.numpy_helper.from_array(to, key)],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()
    x = np.arange(n_in, dtype=np.float32).reshape(1, 1, 1, n_in)
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x})
    for backend in ("cpu", "reference"):
        (y,) = Execution(make_plan(read_bytes(model), backend), threads=1).run([x])
        np.testing.assert_array_equal(y, wanted, f"{n_in} to {key} {to[-1]} on {backend}")


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_onnx(coordinates: str, rounding: str) -> None:
    for n_in, n_out in PAIRS:
        check_onnx(coordinates, rounding, n_in, "sizes", np.array([1, 1, 1, n_out]))


#: Sizes and scales whose product is not whole; equal sizes onnxruntime copies, whatever the mode.
SCALES = ((5, 0.3), (5, 0.6), (10, 0.6), (5, 2.5), (7, 1.7), (7, 3.3), (23, 0.6), (23, 1.7))


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_onnx_with_a_symmetric_grid(rounding: str) -> None:
    for n_in, scale in SCALES:
        scales = np.array([1, 1, 1, scale], np.float32)
        check_onnx("half_pixel_symmetric", rounding, n_in, "scales", scales)


@pytest.mark.parametrize(("corners", "half"), [(0, 0), (1, 0), (0, 1)])
def test_tflite(tmp_path, corners: int, half: int) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="pip install ai-edge-litert")
    for n_in, n_out in (*PAIRS, (28, 2), (28, 39)):
        m = TinyModel()
        x = m.tensor("x", "float32", (1, n_in, 1, 1))
        size = m.tensor("size", "int32", (2,), [n_out, 1])
        y = m.tensor("y", "float32", (1, n_out, 1, 1))
        m.op(97, [x, size], [y], Table(_0=Num("?", corners), _1=Num("?", half)), kind=74)
        content = m.bytes([x], [y])
        given = np.arange(n_in, dtype=np.float32).reshape(1, n_in, 1, 1)
        net = litert.Interpreter(model_content=content, num_threads=1)
        net.allocate_tensors()
        net.set_tensor(net.get_input_details()[0]["index"], given)
        net.invoke()
        wanted = net.get_tensor(net.get_output_details()[0]["index"])
        (tmp_path / "m.tflite").write_bytes(content)
        (found,) = Execution(make_plan(load(tmp_path / "m.tflite"), "cpu"), threads=1).run([given])
        np.testing.assert_array_equal(found, wanted, f"{n_in} to {n_out}")
