"""Constants that should be one number and are none or several, and axes that are not there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from lite_engine.errors import LiteError
from lite_engine.importers import load

from tests.importers import tiny_pir
from tests.importers import tiny_tensorflow as tf
from tests.importers.paddle_files import PaddleProgram

pytestmark = pytest.mark.cpu
NONE, TWO = np.empty(0, np.int32), np.int32([0, 1])
NO_RANGE = np.empty(0, np.float32)
ONE = "has [02] numbers, expected one"


@pytest.mark.parametrize("axis", [NONE, TWO], ids=["none", "two"])
@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("Cumsum", ("x", "axis"), {}),
        ("ArgMax", ("x", "axis"), {}),
        ("ExpandDims", ("x", "axis"), {}),
        ("ConcatV2", ("x", "x", "axis"), {}),
        ("Concat", ("axis", "x", "x"), {}),
        ("Split", ("axis", "x"), {"num_split": 2}),
        ("SplitV", ("x", "sizes", "axis"), {"num_split": 2}),
        ("GatherV2", ("x", "sizes", "axis"), {}),
    ],
)
def test_an_axis_of_tensorflow(tensorflow_imported, axis, op, inputs, attrs) -> None:
    nodes = [
        tf.placeholder("x", (2, 2)),
        tf.const("axis", axis),
        tf.const("sizes", np.int32([1, -1])),
    ]
    with pytest.raises(LiteError, match=ONE):
        tensorflow_imported([*nodes, tf.node("y", op, *inputs, **attrs)])


def test_an_axis_that_is_not_there(tensorflow_imported) -> None:
    nodes = [
        tf.placeholder("x", (2, 2)), tf.const("axis", np.int32(2)),
        tf.const("sizes", np.int32([1, -1])),
        tf.node("y", "SplitV", "x", "sizes", "axis", num_split=2),
    ]  # fmt: skip
    with pytest.raises(LiteError, match="axis 2 is outside a rank-2 tensor"):
        tensorflow_imported(nodes)


def test_a_range_of_no_number(tensorflow_imported) -> None:
    nodes = [
        tf.placeholder("x", (2, 2)), tf.const("low", NO_RANGE), tf.const("high", NO_RANGE),
        tf.node("y", "FakeQuantWithMinMaxVars", "x", "low", "high"),
    ]  # fmt: skip
    with pytest.raises(LiteError, match=r"ranges of shape \[0\] need an axis"):
        tensorflow_imported(nodes)


@pytest.mark.parametrize(
    ("axis", "said"),
    [([], "takes one axis"), ([0, 1], "takes one axis"), ([7], "axis 7 is outside")],
)
def test_tile_of_the_first_opset(tmp_path: Path, axis: list[int], said: str) -> None:
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy")
    constants = [
        onnx.numpy_helper.from_array(np.array(values, np.int64), name)
        for name, values in (("tiles", [2]), ("axis", axis))
    ]
    node = onnx.helper.make_node("Tile", ["x", "tiles", "axis"], ["y"])
    path = tmp_path / "m.onnx"
    graph = onnx.helper.make_graph([node], "g", [x], [y], constants)
    first = onnx.helper.make_opsetid("", 1)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[first]), path)
    with pytest.raises(LiteError, match=said):
        load(path)


@pytest.mark.parametrize("place", ["index", "length"])
def test_numbers_of_a_tensorflow_list(tensorflow_imported, place: str) -> None:
    number = {"index": np.int32(0), "length": np.int32(2), place: TWO}
    nodes = [
        tf.placeholder("x", (2,)), tf.const("shape", np.int32([2])),
        *(tf.const(name, value) for name, value in number.items()),
        tf.node("list", "TensorListReserve", "shape", "length"),
        tf.node("set", "TensorListSetItem", "list", "index", "x"),
        tf.node("y", "TensorListStack", "set", "shape"),
    ]  # fmt: skip
    with pytest.raises(LiteError, match=ONE):
        tensorflow_imported(nodes)


def test_bounds_of_linspace(tmp_path: Path) -> None:
    p = PaddleProgram()
    p.feed("x", (3,))
    p.weight("first", np.float32([0, 1]))
    p.weight("last", np.float32([4]))
    p.weight("count", np.int32([3]))
    p.op("linspace", {"Start": "first", "Stop": "last", "Num": "count"}, {"Out": "points"})
    p.op("elementwise_add", {"X": "x", "Y": "points"}, {"Out": "y"})
    p.fetch("y")
    with pytest.raises(LiteError, match="bounds are not single numbers"):
        load(p.save(tmp_path))


@pytest.mark.parametrize("tensors", [0, 2])
@pytest.mark.parametrize("kind", ["full", "full_int_array"])
def test_a_constant_of_pir_that_is_a_list(tmp_path: Path, kind: str, tensors: int) -> None:
    path = tiny_pir.save(tmp_path)
    ops = tiny_pir.small_ops()
    out = next(op for op in ops if op["#"] == f"1.{kind}")["O"][0]
    out["TT"] = {"#": "0.t_vec", "D": [tiny_pir._tensor([1, 48])] * tensors}
    path.write_text(json.dumps(tiny_pir.program(ops)))
    with pytest.raises(LiteError, match=f"is {tensors} tensors, expected one"):
        load(path)
