"""Weights in 4 bits: against onnxruntime's MatMulNBits, its quantizer and ONNX's blocked scales."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from lite_engine import Predictor, optimize
from lite_engine.errors import CalibrationError, ShapeError, UsageError
from lite_engine.importers import load
from lite_engine.ir import Graph, from_text
from lite_engine.ops import infer_types
from lite_engine.ops.matmul_nbits import group_count, pack_bits, unpack_bits
from lite_engine.quantize import Groups, quantize_weights_int4, reference_run
from lite_engine.quantize.groups import (
    compensated_in_groups,
    input_scales,
    nearest_in_groups,
    output_error,
)
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi._pybind_state import quantize_matmul_4bits

RNG = np.random.default_rng(11)
BACKENDS = [
    pytest.param("x86", marks=pytest.mark.cpu),
    pytest.param("arm", marks=pytest.mark.arm),
    pytest.param("opencl", marks=pytest.mark.opencl),
]


def f32(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def relative(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def test_bits_are_packed_low_half_first():
    assert pack_bits(np.array([[1, 2, 15]], np.uint8), 4).tolist() == [[0x21, 0x0F]]
    for bits in (2, 4, 8):
        q = RNG.integers(0, 1 << bits, (3, 24), dtype=np.uint8)
        np.testing.assert_array_equal(unpack_bits(pack_bits(q, bits), bits), q)


def _ort_model(path, k, n, size, rows, zeros, bias):
    """A MatMulNBits that onnxruntime runs, with random weights."""
    groups = group_count(k, size)
    constants = {
        "b": RNG.integers(0, 256, (n, groups, size // 2), dtype=np.uint8),
        "scales": np.abs(f32(n * groups, scale=0.1)),
    }
    if zeros:
        constants["zeros"] = RNG.integers(0, 256, n * group_count(groups, 2), dtype=np.uint8)
    if bias:
        constants["bias"] = f32(n)
    names = ["x", "b", "scales", "zeros" if zeros else "", "", "bias" if bias else ""]
    while not names[-1]:
        names.pop()
    node = helper.make_node(
        "MatMulNBits", names, ["y"], domain="com.microsoft", K=k, N=n, bits=4, block_size=size
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [*rows, k])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [*rows, n])
    made = [numpy_helper.from_array(a, name) for name, a in constants.items()]
    _save(path, helper.make_graph([node], "g", [x], [y], made))


def _save(path, graph, opset=21):
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), str(path))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("rows", "k", "n", "size", "zeros", "bias"),
    [
        ((1, 1), 64, 48, 32, False, False),
        ((3,), 100, 33, 32, True, True),
        ((2, 20), 256, 65, 128, True, False),
        ((1, 9), 48, 16, 16, False, True),
    ],
)
def test_an_imported_product_gives_the_numbers_of_onnxruntime(
    tmp_path, backend, rows, k, n, size, zeros, bias
):
    _ort_model(tmp_path / "m.onnx", k, n, size, rows, zeros, bias)
    x = f32(*rows, k)
    (want,) = ort.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})
    graph = load(tmp_path / "m.onnx")
    model = optimize(graph, targets=[backend])
    assert [node.op for node in model.graph.nodes] == ["MatMulNBits"]
    got = Predictor(model, backend).run({"x": x})["y"]
    assert relative(got, want) < 1e-5  # onnxruntime sums in another order


@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
@pytest.mark.parametrize("turned", [False, True])
def test_blocks_of_dequantize_linear_become_one_operator(tmp_path, kind, turned):
    """As exporters write it: DequantizeLinear with block_size, a bias and an activation behind."""
    k, n, size = 64, 24, 32
    low = -8 if kind == "INT4" else 0
    shape, axis = ((n, k), 1) if turned else ((k, n), 0)
    blocks = tuple(d // size if i == axis else d for i, d in enumerate(shape))
    q = RNG.integers(low, low + 16, shape).astype(np.int8)
    z = RNG.integers(low, low + 16, blocks).astype(np.int8)
    dtype = getattr(TensorProto, kind)
    constants = [
        helper.make_tensor("q", dtype, shape, q.ravel()),
        helper.make_tensor("z", dtype, blocks, z.ravel()),
        numpy_helper.from_array(np.abs(f32(*blocks)), "s"),
        numpy_helper.from_array(f32(n), "bias"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=axis, block_size=size)
    ]
    if turned:
        nodes.append(helper.make_node("Transpose", ["w"], ["wt"], perm=[1, 0]))
    nodes += [
        helper.make_node("MatMul", ["x", "wt" if turned else "w"], ["p"]),
        helper.make_node("Add", ["p", "bias"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 5, k])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5, n])
    _save(tmp_path / "m.onnx", helper.make_graph(nodes, "g", [x], [y], constants))
    feed = {"x": f32(2, 5, k)}
    options = ort.SessionOptions()  # its fused form would round activations to int8
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    (want,) = ort.InferenceSession(tmp_path / "m.onnx", options).run(None, feed)
    model = optimize(load(tmp_path / "m.onnx"), targets=["x86"])
    (node,) = model.graph.nodes
    assert node.op == "MatMulNBits" and node.attrs["activation"] == "Relu"
    assert relative(reference_run(model.graph, feed)["y"], want) < 1e-5


@pytest.mark.parametrize("size", [32, 64, 128])
@pytest.mark.parametrize("symmetric", [True, False])
def test_errors_are_no_larger_than_those_of_onnxruntimes_quantizer(size, symmetric):
    """The same group size, outputs of the same inputs."""
    w = f32(256, 64, scale=0.1)
    groups = 256 // size
    packed = np.zeros((64, groups, size // 2), np.uint8)
    scales, zeros = np.zeros(64 * groups, np.float32), np.zeros(64 * group_count(groups, 2), "u1")
    quantize_matmul_4bits(packed, w, scales, zeros, size, 64, 256, symmetric)
    q = unpack_bits(packed, 4).reshape(64, 256).astype(np.float32)
    z = unpack_bits(zeros.reshape(64, -1), 4)[:, :groups]
    at = np.arange(256) // size
    theirs = (q - (8 if symmetric else z[:, at])) * scales.reshape(64, groups)[:, at]
    x = f32(500, 256)
    ours = nearest_in_groups(w.T, Groups(size, symmetric)).real()
    assert relative(x @ ours.T, x @ w) <= relative(x @ theirs.T, x @ w)


def _correlated(columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with loud columns that depend on each other, and E[xxᵀ]."""
    x = f32(2000, columns // 4) @ f32(columns // 4, columns) * np.exp(f32(columns))
    return x, x.T.astype(np.float64) @ x / len(x)


@pytest.mark.parametrize("groups", [Groups(32), Groups(64, False)])
def test_compensation_and_scaling_lower_the_output_error(groups):
    _, h = _correlated(96)
    w = f32(40, 96)
    plain = output_error(nearest_in_groups(w, groups).real() - w, h)
    assert output_error(compensated_in_groups(w, groups, h).real() - w, h) < 0.5 * plain
    s = input_scales([w], groups, h)
    assert s is not None
    assert output_error(nearest_in_groups(w * s, groups).real() / s - w, h) < plain


def transformer_block() -> Graph:
    text = """graph "g" {
      input x: f32[1,20,64]
      const s: f32[64] = @0
      const b: f32[64] = @1
      const w: f32[64,256] = @2
      const c: f32[256] = @3
      const v: f32[256,64] = @4
      "n": n = LayerNormalization(x, s, b) {axis=-1}
      "m": m = MatMul(n, w)
      "a": a = Add(m, c)
      "r": r = Gelu(a)
      "o": o = MatMul(r, v)
      output o
    }"""
    arrays = [np.exp(2 * f32(64)), f32(64), f32(64, 256, scale=0.1), f32(256), f32(256, 64)]
    graph = from_text(text, arrays)
    infer_types(graph)
    return optimize(graph, targets=["x86"]).graph


def test_every_method_is_judged_on_held_out_samples():
    graph = transformer_block()
    mix = f32(64, 64)
    feeds = [{"x": f32(1, 20, 64) @ mix} for _ in range(10)]
    made = quantize_weights_int4(graph, source=feeds)
    assert set(made.tried) == {"nearest", "gptq", "awq"}
    assert made.tried[made.method] == max(made.tried.values()) == round(made.verdict.sqnr_db, 3)
    assert made.verdict.held_out and not made.float_layers
    floats = sum(v.const.nbytes for v in graph.constants())
    assert sum(v.const.nbytes for v in made.graph.constants()) < 0.17 * floats  # 4.5 of 28 bits…
    for name in ("gptq", "awq"):
        own = quantize_weights_int4(graph, source=feeds, method=name)
        assert own.tried == {name: made.tried[name]}
    with pytest.raises(CalibrationError, match="below the threshold") as error:
        quantize_weights_int4(graph, source=feeds, threshold_db=90.0)
    for part in ("or asymmetric groups", "weights in 8 bits"):
        assert part in str(error.value)
    for part in ("method", "learned"):  # are of int8, or were tried
        assert part not in str(error.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_1x1_convolution_has_a_4_bit_form(backend):
    text = """graph "g" {
      input x: f32[1,32,6,5]
      const w: f32[48,32,1,1] = @0
      const b: f32[48] = @1
      const d: f32[48,48,3,3] = @2
      "c": y = Conv(x, w, b) {activation="Relu"}
      "d": z = Conv(y, d) {pads=[1, 1, 1, 1]}
      output z
    }"""
    graph = from_text(text, [f32(48, 32, 1, 1), f32(48), f32(48, 48, 3, 3)])
    infer_types(graph)
    made = quantize_weights_int4(graph)
    assert [layer["name"] for layer in made.layers] == ["c"]
    assert "1x1" in made.float_layers["d"]
    assert made.verdict is None and made.method == "nearest"
    feed = {"x": f32(1, 32, 6, 5)}
    want = reference_run(made.graph, feed)["z"]
    got = Predictor(optimize(made.graph, targets=[backend]), backend).run(feed)["z"]
    assert relative(got, want) < 1e-5
    assert relative(got, reference_run(graph, feed)["z"]) < 0.12  # 4 bits in groups of 32


def test_what_cannot_be_done_says_why():
    graph = transformer_block()
    with pytest.raises(UsageError, match="group size 48 is not one of 16, 32"):
        Groups(48)
    with pytest.raises(UsageError, match="gptq needs samples"):
        quantize_weights_int4(graph, method="gptq")
    with pytest.raises(UsageError, match="not one of auto, nearest"):
        quantize_weights_int4(graph, method="kl")
    names = frozenset(n.name for n in graph.nodes)
    with pytest.raises(CalibrationError, match="no layer has float weights"):
        quantize_weights_int4(graph, keep=names)
    wrong = from_text(
        'graph "g" {\n  input x: f32[2,32]\n  const b: u8[4,1,16] = @0\n'
        "  const s: f32[3] = [1, 1, 1]\n"
        '  "p": y = MatMulNBits(x, b, s) {K=32, N=4, block_size=32}\n  output y\n}',
        [np.zeros((4, 1, 16), np.uint8)],
    )
    with pytest.raises(ShapeError, match="expected 4 values in scales, found 3"):
        infer_types(wrong, strict=True)
