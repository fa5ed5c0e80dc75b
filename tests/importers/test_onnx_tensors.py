"""TensorProtos of every type, in raw and in typed form, read as the onnx package reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load
from lite_engine.backends.reference import run_graph
from lite_engine.errors import ModelFormatError, UnsupportedOperatorError
from lite_engine.importers import onnx as importer
from lite_engine.importers._protobuf import Message
from lite_engine.importers.onnx.tensors import TensorReader, read_type
from lite_engine.ir import DType
from lite_engine.ir.bfloat16 import bf16_to_f32, f32_to_bf16

onnx = pytest.importorskip("onnx", reason="pip install onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

NAMES = [
    "FLOAT",
    "DOUBLE",
    "FLOAT16",
    "BFLOAT16",
    "INT8",
    "UINT8",
    "INT16",
    "UINT16",
    "INT32",
    "UINT32",
    "INT64",
    "UINT64",
    "BOOL",
]
VALUES = [0, 1, 3, 100, 2, 7]


def read(tensor: TensorProto) -> tuple[np.ndarray, DType]:
    return TensorReader(Path()).read(Message(tensor.SerializeToString()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("raw", [False, True])
def test_types(name: str, raw: bool) -> None:
    code = getattr(TensorProto, name)
    values = [v % 2 for v in VALUES] if name == "BOOL" else VALUES
    typed = helper.make_tensor("t", code, [2, 3], values)
    wanted = numpy_helper.to_array(typed)
    array, dtype = read(numpy_helper.from_array(wanted, "t") if raw else typed)
    assert array.dtype == dtype.np
    if dtype is DType.BF16:
        array, wanted = bf16_to_f32(array), wanted.astype(np.float32)
    np.testing.assert_array_equal(array, wanted)


PACKED = {
    "INT4": [-8, 7, -1, 0, 3],
    "UINT4": [15, 7, 1, 0, 3],
    "INT2": [-2, 1, -1, 0, 1],
    "UINT2": [3, 2, 1, 0, 3],
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("raw", [False, True])
def test_packed_integers_are_held_one_per_byte(name: str, raw: bool) -> None:
    tensor = helper.make_tensor("t", getattr(TensorProto, name), [5], PACKED[name])
    if raw:
        tensor = numpy_helper.from_array(numpy_helper.to_array(tensor), "t")
    array, dtype = read(tensor)
    assert str(dtype) == name.lower().replace("uint", "u").replace("int", "i")
    assert array.dtype == dtype.np and array.tolist() == PACKED[name]


def test_constants_of_four_bits_keep_kernels() -> None:
    """What computes with 4-bit weights sees 8-bit integers, which have kernels."""
    weight = helper.make_tensor("w", TensorProto.INT4, [5], PACKED["INT4"])
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [5])],
        [weight, helper.make_tensor("s", TensorProto.FLOAT, [], [0.5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    read_graph = importer.read_bytes(model.SerializeToString())
    assert read_graph.nodes[0].inputs[0].dtype is DType.I8
    np.testing.assert_array_equal(run_graph(read_graph, [])[0], np.multiply(PACKED["INT4"], 0.5))


@pytest.mark.parametrize("order", ["ab", "abc", "cab", "acb"])
def test_layers_share_a_constant_of_four_bits(order: str, tmp_path: Path) -> None:
    """Read as 8-bit integers by a and b, and as it is by c."""
    weight = helper.make_tensor("w", TensorProto.INT4, [5], PACKED["INT4"])
    scales = [helper.make_tensor(f"s{y}", TensorProto.FLOAT, [], [v]) for y, v in zip("ab", (1, 2))]
    nodes = {y: helper.make_node("DequantizeLinear", ["w", f"s{y}"], [y]) for y in "ab"}
    nodes["c"] = helper.make_node("Cast", ["w"], ["c"], to=TensorProto.FLOAT)
    ends = [helper.make_tensor_value_info(y, TensorProto.FLOAT, [5]) for y in order]
    graph = helper.make_graph([nodes[y] for y in order], "g", [], ends, [weight, *scales])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, tmp_path / "m.onnx")
    wanted = ReferenceEvaluator(model).run(None, {})
    np.testing.assert_array_equal(run_graph(load(tmp_path / "m.onnx"), []), wanted)


@pytest.mark.parametrize("linear", [False, True])
def test_sparse_becomes_dense(linear: bool) -> None:
    values = numpy_helper.from_array(np.float32([5, 6]), "s")
    places = np.array([1, 5] if linear else [[0, 1], [1, 2]], np.int64)
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(places, "i"), [2, 3])
    array, dtype, name = TensorReader(Path()).read_sparse(Message(sparse.SerializeToString()))
    assert (dtype, name) == (DType.F32, "s")
    np.testing.assert_array_equal(array, np.float32([[0, 5, 0], [0, 0, 6]]))


@pytest.mark.parametrize(
    "places",
    [[[0, 1, 0], [1, 2, 0]], [[0, 3], [1, 2]], [[-1, 0], [1, 2]], [[[1, 5]]], [1], [0.5, 1]],
)
def test_sparse_indices_must_fit_the_dimensions(places: list[object]) -> None:
    values = numpy_helper.from_array(np.float32([5, 6]), "s")
    array = np.array(places)
    sparse = onnx.SparseTensorProto(values=values, dims=[2, 3])
    sparse.indices.CopyFrom(numpy_helper.from_array(array, "i"))
    with pytest.raises(ModelFormatError, match="sparse indices do not fit"):
        TensorReader(Path()).read_sparse(Message(sparse.SerializeToString()))


@pytest.mark.parametrize(
    "location, why",
    [("a\0b", "outside"), ("../a", "outside"), ("/a", "outside"), ("a" * 300, "missing")],
)
def test_external_data_lies_in_the_models_folder(location: str, why: str, tmp_path: Path) -> None:
    tensor = helper.make_tensor("t", TensorProto.FLOAT, [1], [1])
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    with pytest.raises(ModelFormatError, match=why):
        TensorReader(tmp_path).read(Message(tensor.SerializeToString()))


def test_weights_stay_views_when_aligned() -> None:
    data = np.arange(64, dtype=np.float32)
    array, _ = read(numpy_helper.from_array(data, "t"))
    assert array.flags.aligned
    np.testing.assert_array_equal(array, data)


@pytest.mark.parametrize("dims", [[-1], [3], [1 << 62, 1 << 62], [0, 5]])
def test_dimensions_must_match_the_data(dims: list[int]) -> None:
    with pytest.raises(ModelFormatError, match="t"):
        read(TensorProto(name="t", data_type=1, dims=dims, raw_data=b"12345678"))


def test_dimensions_beyond_64_bits_beside_a_zero() -> None:
    for kind in (TensorProto.FLOAT, TensorProto.INT4):
        with pytest.raises(ModelFormatError, match="t: 0 elements do not fill dimensions"):
            read(TensorProto(name="t", data_type=kind, dims=[1 << 62, 0, 1 << 62], raw_data=b""))


def test_types_that_are_not_held() -> None:
    with pytest.raises(UnsupportedOperatorError, match="string"):
        read(helper.make_tensor("t", TensorProto.STRING, [1], [b"a"]))
    with pytest.raises(ModelFormatError, match="does not exist"):
        read(TensorProto(name="t", data_type=99, dims=[1], raw_data=b"1234"))


def test_unknown_dimensions() -> None:
    info = helper.make_tensor_value_info("x", 1, ["n", None, 3, -1])
    proto = Message(info.SerializeToString()).message(2)
    assert read_type(proto, "x") == (DType.F32, ("n", None, 3, None))


def test_bfloat16_rounds_half_to_even() -> None:
    x = np.float32([1, 1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, -0.0, np.inf, np.nan])
    y = bf16_to_f32(f32_to_bf16(x))
    np.testing.assert_array_equal(y, np.float32([1, 1, 1 + 2**-6, np.inf, -0.0, np.inf, np.nan]))


def test_second_names_of_an_initialiser_are_one_value(tmp_path: Path) -> None:
    """PyTorch shares equal initialisers through Identities, which branches may read too; one that
    is an output keeps its name. Oracle: onnx's own evaluator."""
    branches = {
        f"{side}_branch": helper.make_graph(
            [helper.make_node(op, ["w2", "w3"], [f"{side}_y"])],
            side,
            [],
            [helper.make_tensor_value_info(f"{side}_y", TensorProto.FLOAT, [3])],
        )
        for side, op in (("then", "Add"), ("else", "Sub"))
    }
    nodes = [
        helper.make_node("Identity", ["w"], ["w2"]),
        helper.make_node("Identity", ["w2"], ["w3"]),
        helper.make_node("If", ["yes"], ["b"], **branches),
        helper.make_node("Mul", ["x", "b"], ["y"]),
        helper.make_node("Identity", ["w3"], ["given"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("x", "y", "given")]
    yes = helper.make_tensor_value_info("yes", TensorProto.BOOL, [])
    w = numpy_helper.from_array(np.array([1, 2, 4], np.float32), "w")
    graph = helper.make_graph(nodes, "shared", [values[0], yes], values[1:], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "shared.onnx"
    onnx.save(model, path)
    made = load(path)
    assert [n.op for n in made.nodes] == ["If", "Mul", "Identity"]
    assert [v.name for v in made.outputs] == ["y", "given"]
    for answer in (True, False):
        feeds = {"x": np.array([3, 5, 7], np.float32), "yes": np.array(answer)}
        wanted = ReferenceEvaluator(model).run(None, feeds)
        got = Predictor(made, "reference").run(feeds)
        for name, array in zip(("y", "given"), wanted):
            np.testing.assert_array_equal(got[name], array)
