"""Nodes of a damaged ONNX file that import keeps: the table says why nothing runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import LiteError, ModelFormatError, UnsupportedOperatorError
from lite_engine.importers import load
from lite_engine.ir import DType, Graph, Node, Value
from lite_engine.ops import get_op
from lite_engine.plan import kernels_for
from lite_engine.runtime.support import model_info

onnx = pytest.importorskip("onnx", reason="pip install onnx")
from onnx import TensorProto, helper  # noqa: E402

from tests.importers.onnx_files import onnx_bytes  # noqa: E402


def _floats(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def test_keys_without_heads_beside_a_mask(tmp_path: Path) -> None:
    """Found by mutants of the ONNX project's cases: a condition of a kernel raised."""
    node = helper.make_node("Attention", ["q", "k", "v", "m"], ["y"], q_num_heads=3, kv_num_heads=3)
    inputs = [_floats("q", 2, 4, 24), _floats("k", 2, 24), _floats("v", 2, 6, 24),
              _floats("m", 4, 6)]  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(onnx_bytes([node], inputs, [_floats("y", 2, 4, 24)]))
    rows = model_info(load(tmp_path / "m.onnx"), "m").support
    assert rows and not any(row.supported for row in rows)
    assert all("needs q_num_heads and kv_num_heads" in row.reason for row in rows)


def test_an_attribute_that_a_kernel_asks_for_is_missing() -> None:
    """The same: KeyError for a Cast without a type, on OpenCL only."""
    graph = Graph("g")
    x = Value("x", DType.F32, (2, 3))
    node = graph.add("Cast", [x], {}, name="n")
    with pytest.raises(UnsupportedOperatorError, match="Cast needs attribute 'to'"):
        kernels_for(node, [x.type], "opencl")


def test_text_that_is_a_number() -> None:
    """The same: AttributeError for an equation of Einsum that is an integer."""
    x = Value("x", DType.F32, (2, 3))
    node = Node("Einsum", [x], [Value("y")], {"equation": 7}, name="n")
    with pytest.raises(LiteError, match=r"n \(Einsum\)"):
        get_op("Einsum").infer_types(node, [x.type])
    with pytest.raises(LiteError, match=r"n \(Einsum\)"):
        get_op("Einsum").run(node, [np.zeros((2, 3), np.float32)])


def test_a_fault_of_a_condition_is_not_the_file_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the operator's types hold, an error of a kernel's condition stays one."""
    graph = Graph("g")
    x = Value("x", DType.F32, (2, 3))
    node = graph.add("Cast", [x], {"to": DType.F16}, name="n")
    monkeypatch.setattr("lite_engine.ops.cast._ON_DEVICE", None)
    with pytest.raises(AttributeError):
        kernels_for(node, [x.type], "opencl")


@pytest.mark.parametrize("key", ["value_float", "value_ints"])
def test_numbers_of_a_constant_that_are_text(key: str, tmp_path: Path) -> None:
    """The same: the line of error had Python's words."""
    node = helper.make_node("Constant", [], ["y"], name="c", **{key: ["", "x"]})
    (tmp_path / "m.onnx").write_bytes(onnx_bytes([node], [], [_floats("y", 2)]))
    with pytest.raises(ModelFormatError, match=f"c: attribute '{key}' does not hold numbers"):
        load(tmp_path / "m.onnx")


def test_a_word_where_an_older_form_has_a_number(tmp_path: Path) -> None:
    """The same, of LpPool before opset 2."""
    node = helper.make_node("LpPool", ["x"], ["y"], name="n", kernel_shape=[2, 2], p="many")
    graph = helper.make_graph([node], "g", [_floats("x", 1, 1, 4, 4)], [_floats("y", 1, 1, 3, 3)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 1)])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelFormatError, match="n: its attributes do not fit LpPool"):
        load(tmp_path / "m.onnx")


@pytest.mark.parametrize("data", [b"\x08", b"\x08\x07", b"\x08\x07\x12"])
def test_the_first_bytes_of_a_model(data: bytes, tmp_path: Path) -> None:
    """The same: the formats were asked in turn, and ONNX looked at the third byte."""
    (tmp_path / "m.bin").write_bytes(data)
    with pytest.raises(ModelFormatError, match=r"m\.bin: not a model in a supported format"):
        load(tmp_path / "m.bin")


@pytest.mark.cpu
def test_axes_that_are_counted_from_the_end(tmp_path: Path) -> None:
    """The same: ValueError while a Transpose whose axes are negative was planned."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, -1, 1]),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    data = onnx_bytes(nodes, [_floats("x", 2, 3, 4)], [_floats("y", 2, 4, 3)])
    (tmp_path / "m.onnx").write_bytes(data)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (y,) = Predictor(tmp_path / "m.onnx").run({"x": x}).values()
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1))
