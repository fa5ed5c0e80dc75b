"""Volumes: convolutions and pools over depth as ones over frames, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from lite_engine.errors import ShapeError
from lite_engine.importers import load
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import optimize
from lite_engine.ops import run_node
from lite_engine.runtime import Predictor
from onnx import TensorProto, helper, numpy_helper

onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

RNG = np.random.default_rng(5)
#: Shape of x, shape of the weight, attributes.
CONVOLUTIONS = {
    "3x3x3": ((1, 16, 5, 12, 11), (20, 16, 3, 3, 3), {"pads": [1] * 6}),
    "batch": ((3, 4, 5, 6, 7), (5, 4, 3, 3, 3), {"pads": [1] * 6}),
    "strided": ((2, 4, 7, 9, 8), (6, 4, 3, 3, 3), {"pads": [1] * 6, "strides": [2, 2, 2]}),
    "uneven": ((1, 3, 6, 7, 8), (4, 3, 2, 3, 5), {"pads": [1, 0, 2, 0, 1, 2]}),
    "depth alone": ((1, 8, 6, 5, 5), (8, 8, 3, 1, 1), {"pads": [1, 0, 0, 1, 0, 0]}),
    "depth and rows": ((2, 3, 6, 7, 5), (4, 3, 3, 5, 1), {"pads": [1, 2, 0, 1, 2, 0]}),
    "depth and rows, strided": (
        (1, 4, 7, 6, 5),
        (4, 2, 3, 2, 1),
        {"strides": [2, 1, 1], "dilations": [1, 3, 1], "group": 2},
    ),
    "depth and columns": ((1, 3, 6, 4, 9), (5, 3, 3, 1, 4), {"pads": [1, 0, 2, 1, 0, 1]}),
    "depth and columns, strided": (
        (2, 4, 8, 4, 9),
        (5, 4, 3, 1, 3),
        {"strides": [1, 1, 2], "dilations": [2, 1, 1]},
    ),
    "depth and rows of each second column": (
        (1, 3, 6, 7, 6),
        (4, 3, 3, 3, 1),
        {"strides": [1, 1, 2]},
    ),
    "one channel": ((1, 1, 9, 8, 16), (4, 1, 5, 5, 1), {"pads": [2, 2, 0, 2, 2, 0]}),
    "frames alone": ((1, 8, 4, 9, 9), (8, 8, 1, 3, 3), {"pads": [0, 1, 1, 0, 1, 1]}),
    "shortcut": ((1, 8, 4, 6, 6), (16, 8, 1, 1, 1), {"strides": [2, 2, 2]}),
    "dilated": ((1, 4, 9, 8, 8), (4, 4, 3, 3, 3), {"pads": [2] * 6, "dilations": [2, 2, 2]}),
    "depthwise": ((1, 12, 5, 8, 8), (12, 1, 3, 3, 3), {"pads": [1] * 6, "group": 12}),
    "depthwise, strided": (
        (2, 6, 7, 9, 8),
        (6, 1, 3, 3, 3),
        {"pads": [1] * 6, "strides": [1, 2, 2], "group": 6},
    ),
    "depthwise, uneven": (
        (1, 6, 6, 7, 8),
        (12, 1, 2, 3, 4),
        {"pads": [1, 0, 2, 0, 1, 2], "dilations": [3, 1, 2], "group": 6},
    ),
    "depthwise, depth alone": (
        (1, 8, 6, 5, 5),
        (8, 1, 3, 1, 1),
        {"dilations": [2, 2, 2], "group": 8},
    ),
    "groups": ((1, 8, 5, 6, 6), (12, 4, 3, 3, 3), {"group": 2, "strides": [2, 1, 1]}),
    "all of depth": ((1, 4, 5, 6, 6), (7, 4, 5, 1, 1), {}),
    "same": ((1, 4, 6, 7, 7), (4, 4, 3, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2, 2]}),
    "a dilation of one tap": ((2, 3, 5, 6, 4), (3, 3, 1, 4, 1), {"dilations": [2, 1, 1]}),
    "many taps": ((1, 2, 12, 5, 5), (3, 2, 9, 1, 3), {"pads": [4, 0, 1, 4, 0, 1]}),
    "most taps outside": ((1, 2, 2, 5, 5), (3, 2, 7, 3, 3), {"pads": [5, 1, 1, 4, 1, 1]}),
    "nothing but padding": ((1, 2, 1, 5, 5), (3, 2, 3, 1, 1), {"pads": [4, 0, 0, 4, 0, 0]}),
    "one frame": ((1, 2, 1, 5, 5), (3, 2, 3, 3, 3), {"pads": [1] * 6}),
    "shrinks": ((1, 4, 9, 5, 5), (3, 4, 3, 3, 3), {"dilations": [2, 1, 1]}),
    "cut off": ((1, 4, 6, 7, 7), (4, 4, 2, 2, 2), {"strides": [3, 3, 3]}),
}
POOLS = {
    "plain": {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]},
    "padded": {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2], "pads": [1] * 6},
    "depth alone": {"kernel_shape": [3, 1, 1], "strides": [1, 1, 1], "pads": [1, 0, 0, 1, 0, 0]},
    "each second": {"kernel_shape": [1, 1, 1], "strides": [2, 2, 2]},
    "ceil": {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2], "ceil_mode": 1},
    "a dilation of one tap": {"kernel_shape": [1, 2, 2], "strides": [1, 2, 2],
                              "dilations": [2, 1, 1]},
    "frames": {"kernel_shape": [1, 3, 3], "strides": [1, 2, 2], "pads": [0, 1, 1, 0, 1, 1]},
    "same": {"kernel_shape": [2, 3, 3], "strides": [1, 2, 2], "auto_pad": "SAME_LOWER"},
}  # fmt: skip

TRANSPOSED = {
    "doubled": ((2, 5, 3, 4, 5), (5, 6, 2, 2, 2), {"strides": [2, 2, 2]}),
    "overlapping": ((1, 4, 4, 5, 4), (4, 5, 3, 3, 3), {"strides": [2, 2, 2], "pads": [1] * 6}),
    "more behind": (
        (1, 4, 4, 5, 4), (4, 5, 3, 3, 3),
        {"strides": [2, 2, 2], "pads": [1] * 6, "output_padding": [1, 1, 1]},
    ),
    "four taps": ((1, 3, 3, 4, 4), (3, 4, 4, 4, 4), {"strides": [2, 2, 2], "pads": [1] * 6}),
    "stride 1": ((1, 3, 5, 4, 4), (3, 4, 3, 3, 3), {"pads": [1] * 6}),
    "gaps": ((1, 3, 3, 4, 4), (3, 4, 2, 2, 2), {"strides": [3, 3, 3]}),
    "dilated": ((1, 3, 4, 4, 4), (3, 4, 3, 2, 2), {"strides": [2, 2, 2], "dilations": [2, 1, 1]}),
    "depth alone": ((1, 3, 4, 4, 4), (3, 4, 2, 1, 1), {"strides": [2, 1, 1]}),
    "frames alone": ((1, 3, 4, 4, 4), (3, 4, 1, 2, 2), {"strides": [1, 2, 2]}),
    "a dilation of one tap": (
        (1, 3, 4, 4, 4), (3, 4, 1, 2, 2), {"strides": [1, 2, 2], "dilations": [2, 1, 1]},
    ),
    "same": ((1, 3, 4, 4, 4), (3, 4, 3, 3, 3), {"strides": [2, 2, 2], "auto_pad": "SAME_UPPER"}),
}  # fmt: skip
RESIZES = {
    "nearest": ({"mode": "nearest"}, [1, 1, 2, 2, 2]),
    "asymmetric": (
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        [1, 1, 2, 3, 2],
    ),
    "linear": ({"mode": "linear"}, [1, 1, 2, 2, 2]),
    "corners": ({"mode": "linear", "coordinate_transformation_mode": "align_corners"},
                [1, 1, 1.5, 2, 2.5]),
    "depth alone": ({"mode": "linear"}, [1, 1, 3, 1, 1]),
    "frames alone": ({"mode": "linear"}, [1, 1, 1, 2, 2]),
    "smaller": ({"mode": "linear"}, [1, 1, 0.5, 0.5, 0.5]),
}  # fmt: skip


def model(nodes, shape, out="y", **constants):
    values = [numpy_helper.from_array(v, k) for k, v in constants.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info(out, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], values)
    opset = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()


def answers(data, shape, tmp_path, backend, tolerance):
    """A predictor whose answer is onnxruntime's."""
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    x = RNG.standard_normal(shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    # Without VNNI its sums of products of bytes saturate, unless they are asked to be exact.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": x})
    made = Predictor(optimize(load(path), targets=[backend]), backend)
    (got,) = made.run({"x": x}).values()
    assert got.shape == want.shape
    scale = max(1.0, float(np.abs(want).max()))
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)
    return made


def check(data, shape, tmp_path, wide=(), tolerance=2e-6):
    """The answer is onnxruntime's; of `wide` operators none is left whose window spans depth."""
    made = answers(data, shape, tmp_path, "x86", tolerance)
    steps = made.plan().steps
    assert not [s.op for s in steps if s.kernel == "numpy" and s.op in wide]
    return [s.kernel for s in steps]


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions(case, tmp_path):
    shape, weight, attrs = CONVOLUTIONS[case]
    w = (RNG.standard_normal(weight) / np.sqrt(np.prod(weight[1:]))).astype(np.float32)
    b = RNG.standard_normal(weight[0]).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"], **attrs)]
    check(model(nodes, shape, w=w, b=b), shape, tmp_path, {"Conv"})


@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolutions(case, tmp_path):
    shape, weight, attrs = TRANSPOSED[case]
    w = (RNG.standard_normal(weight) / np.sqrt(weight[0])).astype(np.float32)
    b = RNG.standard_normal(weight[1]).astype(np.float32)
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], **attrs),
        helper.make_node("LeakyRelu", ["c"], ["y"]),
    ]
    check(model(nodes, shape, w=w, b=b), shape, tmp_path, {"ConvTranspose", "LeakyRelu"})


@pytest.mark.parametrize("by_sizes", [False, True])
@pytest.mark.parametrize("case", RESIZES)
def test_resizes(case, by_sizes, tmp_path):
    shape, (attrs, scales) = (2, 3, 4, 6, 4), RESIZES[case]
    sizes = np.array([int(d * s) for d, s in zip(shape, scales, strict=True)], np.int64)
    given = {"sizes": sizes} if by_sizes else {"scales": np.array(scales, np.float32)}
    inputs = ["x", "", "", "sizes"] if by_sizes else ["x", "", "scales"]
    nodes = [helper.make_node("Resize", inputs, ["y"], **attrs)]
    check(model(nodes, shape, **given), shape, tmp_path, {"Resize"})


@pytest.mark.parametrize("group", [1, 8])
def test_a_residual_and_an_activation_come_along(group, tmp_path):
    shape = (1, 8, 5, 9, 9)
    w = (RNG.standard_normal((8, 8 // group, 3, 3, 3)) / 15).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6, group=group),
        helper.make_node("Add", ["c", "x"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    kernels = check(model(nodes, shape, w=w), shape, tmp_path, {"Conv", "Add", "Relu"})
    assert not any("binary" in k or "unary" in k for k in kernels)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("case", POOLS)
def test_pools(op, case, tmp_path):
    shape = (2, 5, 6, 9, 8)
    more = [{}, {"count_include_pad": 1}] if op == "AveragePool" else [{}]
    for attrs in more:
        nodes = [helper.make_node(op, ["x"], ["y"], **POOLS[case], **attrs)]
        check(model(nodes, shape), shape, tmp_path, {op})


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(op, tmp_path):
    shape = (2, 5, 4, 6, 7)
    check(model([helper.make_node(op, ["x"], ["y"])], shape), shape, tmp_path, {op})


def test_a_batch_norm_that_no_convolution_takes_in(tmp_path):
    shape = (2, 5, 4, 6, 7)
    names = ("scale", "bias", "mean", "var")
    values = dict(zip(names, RNG.uniform(0.5, 2, (4, 5)).astype(np.float32), strict=True))
    nodes = [helper.make_node("BatchNormalization", ["x", *names], ["y"])]
    check(model(nodes, shape, **values), shape, tmp_path, {"BatchNormalization", "Conv"})


DILATED_ROWS = ((1, 4, 5, 7, 6), (4, 1, 3, 3, 3), {"dilations": [1, 2, 1], "group": 4})


@pytest.mark.parametrize("case", [*CONVOLUTIONS, "dilated rows"])
def test_integers(case, tmp_path):
    """The zero point stands around the volume; groups with dilated rows keep their window."""
    shape, weight, attrs = CONVOLUTIONS.get(case, DILATED_ROWS)
    w = RNG.integers(-127, 128, weight).astype(np.int8)
    scale, zero = np.float32(0.03), np.uint8(117)
    apart = RNG.uniform(0.005, 0.02, weight[0]).astype(np.float32)
    spread = np.float32(0.03 * 0.01 * 70 * np.sqrt(np.prod(weight[1:])) / 2)
    constants = {"s": np.array(scale), "z": np.array(zero), "ws": apart,
                 "wz": np.zeros(weight[0], np.int8), "ys": np.array(spread), "w": w}  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node(
            "QLinearConv", ["q", "s", "z", "w", "ws", "wz", "ys", "z"], ["c"], **attrs
        ),
        helper.make_node("DequantizeLinear", ["c", "ys", "z"], ["y"]),
    ]  # fmt: skip
    wide = {"QLinearConv"} if case in CONVOLUTIONS else ()
    check(model(nodes, shape, **constants), shape, tmp_path, wide)


@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_integers(case, tmp_path):
    """Against NumPy's reference, since onnxruntime has no such operator: no bit differs."""
    shape, weight, attrs = TRANSPOSED[case]
    graph, channels = Graph("g", [Value("x", DType.U8, shape)]), weight[1]
    constants = [
        np.array(np.float32(0.03)), np.array(np.uint8(117)),
        RNG.integers(-127, 128, weight).astype(np.int8),
        RNG.uniform(0.005, 0.02, channels).astype(np.float32), np.zeros(channels, np.int8),
        np.array(np.float32(0.1)), np.array(np.uint8(120)),
        RNG.integers(-900, 900, channels).astype(np.int32),
    ]  # fmt: skip
    inputs = [*graph.inputs, *map(graph.constant, constants)]
    graph.outputs = [graph.add("QLinearConvTranspose", inputs, attrs).output]
    data = RNG.integers(0, 256, shape).astype(np.uint8)
    (want,) = run_node(graph.nodes[0], [data, *constants])
    made = Predictor(optimize(graph, targets=["x86"]), "x86")
    (got,) = made.run({"x": data}).values()
    np.testing.assert_array_equal(got, want)
    assert want.std() > 10
    assert not [s for s in made.plan().steps if s.kernel == "numpy" and "Conv" in s.op]


def test_an_unknown_depth_keeps_its_window(tmp_path):
    w = (RNG.standard_normal((4, 4, 3, 3, 3)) / 10).astype(np.float32)
    data = model([helper.make_node("Conv", ["x", "w"], ["y"])], (1, 4, "d", 8, 8), w=w)
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    graph = optimize(load(path), targets=["x86"]).graph
    assert [n.op for n in graph.nodes] == ["Conv"]
    assert onnx.load_from_string(data).graph.node[0].op_type == "Conv"


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "MaxPool"])
def test_very_many_taps_keep_their_window(op, tmp_path):
    """Each would be some nodes more."""
    shape, weight = (1, 1, 66, 2, 2), (1, 1, 65, 1, 1)
    attrs = {"kernel_shape": weight[2:]}
    constants = {} if op == "MaxPool" else {"w": RNG.standard_normal(weight).astype(np.float32)}
    data = model([helper.make_node(op, ["x", *constants], ["y"], **attrs)], shape, **constants)
    made = answers(data, shape, tmp_path, "x86", 2e-6)
    assert [(s.op, s.kernel) for s in made.plan().steps] == [(op, "numpy")]


def test_a_window_that_fits_no_size_is_named(tmp_path):
    """While the batch is open, nothing is said of the sizes that are known; the run names it."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 3, 3], name="tall")
    data = model([node], ("n", 2, 1, 5, 5))
    (tmp_path / "m.onnx").write_bytes(data)
    made = Predictor(optimize(load(tmp_path / "m.onnx")), "reference")
    with pytest.raises(ShapeError, match=r"^tall \(MaxPool of .* is larger than its input of 1"):
        made.run({"x": np.zeros((1, 2, 1, 5, 5), np.float32)})


def _constants(weight, channels):
    w = (RNG.standard_normal(weight) / np.sqrt(np.prod(weight[1:]))).astype(np.float32)
    return {"w": w, "b": RNG.standard_normal(channels).astype(np.float32)}


def _on_opencl():
    for case in ("3x3x3", "batch", "strided", "depthwise", "shortcut", "same"):
        shape, weight, attrs = CONVOLUTIONS[case]
        yield case, "Conv", shape, attrs, _constants(weight, weight[0])
    for case in ("doubled", "more behind", "frames alone"):
        shape, weight, attrs = TRANSPOSED[case]
        yield case, "ConvTranspose", shape, attrs, _constants(weight, weight[1])
    line = {"strides": [2], "pads": [1, 1], "output_padding": [1]}
    yield "line", "ConvTranspose", (2, 5, 7), line, _constants((5, 6, 3), 6)
    for op in ("MaxPool", "AveragePool"):
        for case in ("padded", "frames", "ceil"):
            yield case, op, (2, 5, 6, 9, 8), POOLS[case], {}
    for case in ("linear", "depth alone", "frames alone", "asymmetric"):
        attrs, scales = RESIZES[case]
        yield case, "Resize", (2, 3, 4, 6, 4), attrs, {"scales": np.array(scales, np.float32)}
    for mode in ("DCR", "CRD"):
        yield mode, "DepthToSpace", (2, 12, 3, 4), {"blocksize": 2, "mode": mode}, {}
    yield "blocks", "SpaceToDepth", (2, 3, 4, 6), {"blocksize": 2}, {}


ON_OPENCL = {f"{op}, {case}": call for case, op, *call in _on_opencl()}


@pytest.mark.opencl
@pytest.mark.parametrize("case", ON_OPENCL)
def test_on_opencl(case, tmp_path):
    """On the device, by kernels for images between views; the host may order the result."""
    shape, attrs, constants = ON_OPENCL[case]
    op = case.split(",")[0]
    names = ["", "scales"] if op == "Resize" else list(constants)
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node(op, ["n", *names], ["y"], **attrs),
    ]
    made = answers(model(nodes, shape, **constants), shape, tmp_path, "opencl", 2e-6)
    steps = [step for step in made.plan().steps if step.op != "Relayout"]
    assert {step.backend for step in steps} == {"opencl"}
