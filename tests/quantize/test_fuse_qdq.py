"""DQ → operator → Q against integers: the same steps, and nothing left in floats that need not."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import Journal, from_text
from lite_engine.ops import infer_types
from lite_engine.passes import optimize_graph
from lite_engine.passes.fold_pad import fold_pad
from lite_engine.passes.quantize_fuse_qdq import quantize_fuse_qdq
from lite_engine.plan import make_plan
from lite_engine.quantize import Ranges, quantize_static, reference_run
from lite_engine.runtime import host_target

from tests.quantize.qdq_graphs import CONV, IN, OUT, RNG, SAME, fuse, ops, qdq, weights
from tests.small_models import Builder, image


def test_the_network_runs_in_integers(calibrated, samples):
    parent, _, ranges, scheme = calibrated
    qdq = quantize_static(parent, ranges, scheme)
    fused = optimize_graph(qdq)
    assert Counter(n.op for n in fused.nodes) == {
        "QLinearConv": 4, "QLookup": 3, "QLinearGlobalAveragePool": 2, "QLinearMul": 1,
        "Concat": 1, "MaxPool": 1, "Flatten": 1, "QGemm": 1,
        "QuantizeLinear": 1, "DequantizeLinear": 1, "Softmax": 1,
    }  # fmt: skip
    both = {v.name for n in qdq.nodes for v in n.outputs}
    taps = [v.name for n in fused.nodes if (v := n.output).dtype.itemsize == 1 and v.name in both]
    for x in samples[:2]:
        a, b = (reference_run(g, {"x": x}, taps) for g in (qdq, fused))
        for name in taps:
            steps = np.abs(a[name].astype(int) - b[name].astype(int))
            assert steps.max() <= 1 and np.mean(steps > 0) < 0.02, name
        np.testing.assert_allclose(a["y"], b["y"], atol=0.02)


@pytest.mark.parametrize(
    "call, expected",
    [
        ("Sigmoid(xd)", ["QLookup"]),
        ("HardSwish(xd)", ["QLookup"]),
        ("Gelu(xd)", ["QLookup"]),
        ("Exp(xd)", ["QLookup"]),
        ("LeakyRelu(xd) {alpha=0.1}", ["QLookup"]),
        ("Relu(xd)", ["QLookup"]),
        ("Add(xd, xd)", ["QLinearAdd"]),
        ("Mul(xd, xd)", ["QLinearMul"]),
        ("Add(xd, xd) {activation=\"Relu\"}", ["QLinearAdd", "QLookup"]),
        ("GlobalAveragePool(xd)", ["QLinearGlobalAveragePool"]),
        ("AveragePool(xd) {kernel_shape=[2, 2]}", ["QLinearAveragePool"]),
        ("Softmax(xd) {axis=1}", ["QLinearSoftmax"]),
        ("Concat(xd, xd) {axis=1}", ["QLookup", "QLookup", "Concat"]),
        ("MatMul(xd, xd)", ["QLinearMatMul"]),
        ("MaxPool(xd) {kernel_shape=[2, 2]}", ["MaxPool", "QLookup"]),
        ("Identity(xd)", ["Identity", "QLookup"]),
        ("Transpose(xd) {perm=[0, 2, 3, 1]}", ["Transpose", "QLookup"]),
    ],
)  # fmt: skip
def test_operator(call, expected):
    graph, _ = fuse(qdq(IN + f'  "op": y = {call}' + OUT))
    assert ops(graph) == expected


FORMULAS = {
    "gelu": ('"a": a = Div(xd, r)\n"b": b = Erf(a)\n"c": c = Add(b, o)\n"d": d = Mul(xd, c)\n'
             '"op": y = Mul(d, h)', ["QLookup"]),
    "swish": ('"a": a = Sigmoid(xd)\n"op": y = Mul(xd, a)', ["QLookup"]),
    "no number": ('"a": a = IsNaN(xd)\n"op": y = Where(a, h, xd)', ["QLookup"]),
    "two tensors": ('"r": rq = QuantizeLinear(x, s2, z2)\n"dr": rd = DequantizeLinear(rq, s2, z2)\n'
                    '"a": a = Exp(rd)\n"op": y = Mul(xd, a)', None),
    "along an axis": ('"a": a = Exp(xd)\n"op": y = Mul(a, k)', None),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_several_nodes(name):
    """Without quantization between them: one table where all come from the same bytes."""
    body, expected = FORMULAS[name]
    consts = """
  const r: f32[] = [1.4142135]
  const o: f32[] = [1.0]
  const h: f32[] = [0.5]
  const k: f32[4,1,1] = [1.0, 2.0, 3.0, 4.0]
"""
    graph, _ = fuse(qdq(IN + consts + body + OUT))
    if expected is None:
        assert "QLookup" not in ops(graph) and "Exp" in ops(graph)
    else:
        assert ops(graph) == expected


def test_a_formula_that_changes_nothing_is_gone():
    body = 'const h: f32[] = [0.5]\n"a": a = IsNaN(xd)\n"op": y = Where(a, h, xd)'
    graph, _ = fuse(qdq(IN + body + SAME))
    assert ops(graph) == ["Identity"]


@pytest.mark.parametrize(
    "call, expected",
    [
        ("MaxPool(xd) {kernel_shape=[2, 2]}", ["MaxPool"]),
        ("Concat(xd, xd) {axis=1}", ["Concat"]),
        ("Transpose(xd) {perm=[0, 2, 3, 1]}", ["Transpose"]),
    ],
)
def test_equal_parameters_need_no_table(call, expected):
    graph, _ = fuse(qdq(IN + f'  "op": y = {call}' + SAME))
    assert ops(graph) == expected


def test_a_product_of_two_computed_matrices():
    """onnxruntime's numbers, but for a step where a sum lies between two; OpenCL gets floats."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    graph = qdq(IN + '  "op": y = MatMul(xd, xd)' + OUT)
    fused = optimize_graph(graph)
    assert ops(fused) == ["QLinearMatMul"]
    feeds = {"x": (3 * RNG.standard_normal((1, 4, 6, 6))).astype(np.float32)}
    (want,) = onnxruntime.InferenceSession(write_bytes(graph)).run(None, feeds)
    (got,) = Predictor(graph).run(feeds).values()
    steps = np.abs(got - want) / 0.08
    assert steps.max() < 1.01 and np.mean(steps > 0.5) < 0.02
    steps = make_plan(fused, "opencl").steps
    assert "matmul" in [s.kernel for s in steps] and {s.backend for s in steps} == {"opencl"}


def test_pad_uses_the_zero_point():
    text = IN + '  const p: i64[8] = [0, 0, 1, 1, 0, 0, 1, 1]\n  "op": y = Pad(xd, p)' + SAME
    graph, _ = fuse(qdq(text))
    assert ops(graph) == ["Pad"]
    assert graph.node("op").inputs[2].const == 120


def test_split_gives_integers_to_all_readers():
    text = (
        IN
        + """
  const n: i64[2] = [1, 3]
  "split": a, b = Split(xd, n) {axis=1}
  "qa": aq = QuantizeLinear(a, s, z)
  "qb": bq = QuantizeLinear(b, s, z)
  "da": ad = DequantizeLinear(aq, s, z)
  "db": bd = DequantizeLinear(bq, s, z)
  output ad
  output bd
"""
    )
    graph, _ = fuse(qdq(text))
    assert [n.op for n in graph.nodes] == ["QuantizeLinear", "Split", *["DequantizeLinear"] * 2]


def test_conv_with_a_clamp_that_is_free_and_one_that_is_not():
    body = IN + CONV + '  "c": y = Conv(xd, wd, bd) {pads=[1, 1, 1, 1], activation="Relu"}'
    graph, _ = fuse(qdq(body + OUT, weights()))
    assert ops(graph) == ["QLinearConv", "QLookup"]  # zero point 10: −0.8 … 0 must go
    free = (body + OUT).replace("z2: u8[] = [10]", "z2: u8[] = [0]")
    graph, _ = fuse(qdq(free, weights()))
    assert ops(graph) == ["QLinearConv"]
    assert graph.node("c").inputs[8].name == "b"
    assert set(graph.node("c").sources) == {"c", "q2"} or graph.node("c").sources


def test_bias_of_another_scale_is_converted():
    body = IN + CONV.replace("0.0005", "0.001") + '  "c": y = Conv(xd, wd, bd)' + OUT
    graph, _ = fuse(qdq(body, weights()))
    assert graph.node("c").inputs[8].const.tolist() == [200, -200, 300]


@pytest.mark.parametrize(
    "body, reason",
    [
        ('  "c": y = Conv(xd, wd, bd) {activation="HardSwish"}', "needs a range of its own"),
        (
            '  const v: f32[6] = [1, 2, 3, 4, 5, 6]\n  "q3": vq = QuantizeLinear(v, s, z)\n'
            '  "dq3": vd = DequantizeLinear(vq, s, z)\n  "c": y = MatMul(xd, vd)',
            "is a vector",
        ),
        ('  "e": y = Hardmax(xd)', "Hardmax has no integer form"),
        ('  "c": y = Conv(xd, wd, bd)\n  output y', "Conv output has another reader"),
        ('  "m": y = ReduceMax(xd)', "ReduceMax has no integer form"),
    ],
)
def test_refusals_name_the_reason(body, reason):
    out = Journal()
    graph = qdq(IN + CONV + body + OUT, weights())
    quantize_fuse_qdq(graph, out)
    assert any(reason in e.reason for e in out.entries if e.action == "refused"), str(out)


def test_requantising_between_two_scales():
    text = (
        IN + '  "q2": yq = QuantizeLinear(xd, s2, z2)\n  "dq2": out = DequantizeLinear(yq, s2, z2)'
    )
    graph, _ = fuse(qdq(text + "\n  output out"))
    assert ops(graph) == ["QLookup"]
    same = text.replace("xd, s2, z2", "xd, s, z").replace("yq, s2, z2", "yq, s, z")
    graph, _ = fuse(qdq(same + "\n  output out"))
    assert ops(graph) == ["Identity"]


def test_a_view_before_a_float_operator_moves_bytes_not_floats():
    text = (
        IN + '  const r: i64[2] = [4, 36]\n  "v": v = Reshape(xd, r)\n'
        '  "s": y = Softmax(v)\n  output y'
    )
    graph, _ = fuse(qdq(text))
    assert [n.op for n in graph.nodes] == [
        "QuantizeLinear", "Reshape", "DequantizeLinear", "Softmax",
    ]  # fmt: skip


@pytest.mark.parametrize("group", [1, 2])
def test_a_transposed_convolution_in_integers(group, calibrated):
    """From floats to a fused integer operator; groups share the scales of the weight's axis 1."""
    text = """graph "g" {
  input x: f32[1,4,6,6]
  const w: f32[4,3,4,4] = @0
  const b: f32[%d] = @1
  "up": y = ConvTranspose(x, w, b) {strides=[2, 2], pads=[1, 1, 1, 1], group=%d, activation="Relu"}
  output y
}"""
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal((4, 3, 4, 4)).astype(np.float32),
        rng.standard_normal(3 * group).astype(np.float32),
    ]
    graph = from_text(text % (3 * group, group), arrays)
    infer_types(graph)
    feeds = {"x": rng.standard_normal((1, 4, 6, 6)).astype(np.float32)}
    want = reference_run(graph, feeds)["y"]
    ranges = Ranges({"x": (-4.0, 4.0), "y": (0.0, float(want.max()))})
    fused = optimize_graph(quantize_static(graph, ranges, calibrated[3]))
    assert [n.op for n in fused.nodes] == [
        "QuantizeLinear",
        "QLinearConvTranspose",
        "DequantizeLinear",
    ]
    error = reference_run(fused, feeds)["y"] - want
    assert np.linalg.norm(error) < 0.02 * np.linalg.norm(want)


def test_a_hard_swish_that_is_spelt_out_becomes_one_table():
    """x · clip(x + 3, 0, 6) / 6 with a rounding behind every step, and the same answers."""
    text = (
        IN
        + """
  const three: u8[] = [60]
  const low: f32[] = [0]
  const high: f32[] = [6]
  const six: f32[1,1,1,1] = [6]
  "d3": three.r = DequantizeLinear(three, s, z)
  "add": t1 = Add(xd, three.r)
  "q1": t1q = QuantizeLinear(t1, s2, z2)
  "dq1": t1d = DequantizeLinear(t1q, s2, z2)
  "clip": t2 = Clip(t1d, low, high)
  "q3": t2q = QuantizeLinear(t2, s2, z2)
  "dq3": t2d = DequantizeLinear(t2q, s2, z2)
  "div": t3 = Div(t2d, six)
  "q4": t3q = QuantizeLinear(t3, s, z)
  "dq4": t3d = DequantizeLinear(t3q, s, z)
  "mul": y = Mul(xd, t3d)
"""
        + OUT
    )
    graph = qdq(text)
    fused, _ = fuse(graph)
    assert ops(fused) == ["QLookup"]
    every = (np.arange(144) - 72).reshape(1, 4, 6, 6).astype(np.float32) * 0.05
    for name, want in reference_run(graph, {"x": every}).items():
        assert np.array_equal(reference_run(fused, {"x": every})[name], want)
    (table,) = (n for n in fused.nodes if n.op == "QLookup")
    assert table.name == "mul"


@pytest.mark.parametrize("call", ["Sub(c, xd)", "Div(xd, c)", "Mul(c, xd)", "Add(xd, c)"])
def test_arithmetic_with_a_number_is_a_table(call):
    graph = qdq(IN + f'  const c: f32[1] = [1.7]\n  "op": y = {call}' + OUT)
    fused, _ = fuse(graph)
    assert ops(fused) == ["QLookup"]
    feeds = {"x": (3 * RNG.standard_normal((1, 4, 6, 6))).astype(np.float32)}
    want, got = (next(iter(reference_run(g, feeds).values())) for g in (graph, fused))
    assert np.array_equal(got, want)


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_a_number_of_any_rank_is_one(rank):
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    graph = qdq("""
  input x: u8[1,4,1,4]
  const s: f32[] = [0.1]
  const z: u8[] = [128]
  "op": y = QLinearAdd(x, s, z, z, s, z, s, z)
  output y""")
    graph.nodes[0].set_input(3, graph.constant(np.full((1,) * rank, 50, np.uint8)))
    infer_types(graph)
    x = RNG.integers(0, 256, (1, 4, 1, 4)).astype(np.uint8)
    (want,) = onnxruntime.InferenceSession(write_bytes(graph)).run(None, {"x": x})
    fused = optimize_graph(graph)
    assert [n.op for n in fused.nodes] == ["QLookup"]
    (got,) = Predictor(fused).run({"x": x}).values()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("value, folded", [(120, True), (0, False)])
def test_integer_padding_with_the_zero_point_is_the_convolutions_own(value, folded):
    """120 is the zero point of x; 0 stands for −6."""
    weight = RNG.integers(-127, 128, (3, 4, 3, 3)).astype(np.int8)
    graph, _ = fuse(
        qdq(
            IN
            + CONV
            + f"""
  const p: i64[8] = [0, 0, 1, 1, 0, 0, 1, 1]
  const v: f32[] = [{(value - 120) * 0.05}]
  "pad": p1 = Pad(xd, p, v)
  "q1": pq = QuantizeLinear(p1, s, z)
  "dq1": p2 = DequantizeLinear(pq, s, z)
  "c": y = Conv(p2, wd, bd)"""
            + OUT,
            [weight],
        )
    )
    assert ops(graph) == ["Pad", "QLinearConv"]
    after = graph.copy()
    assert fold_pad(after, Journal()) == int(folded)
    infer_types(after)
    feeds = {"x": (3 * RNG.standard_normal((1, 4, 6, 6))).astype(np.float32)}
    a, b = (reference_run(g, feeds, ["yq"])["yq"] for g in (graph, after))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("scale", [0.0, math.nan, math.inf, -0.1])
def test_a_scale_that_is_no_step_stays_in_floats(scale: float) -> None:
    """A damaged export: integer kernels would divide by it, a table would hold NaN."""
    b = Builder((1, 3, 6, 6), "scales")
    zero = b.graph.constant(np.array(128, np.uint8))
    q = b.add("QuantizeLinear", b.x, b.scalar(0.05), zero)
    y = b.conv(b.add("DequantizeLinear", q, b.scalar(0.05), zero), 3, 4, 3, activation="Relu")
    made = b.add("QuantizeLinear", y, b.scalar(scale), zero, name="last")
    graph = optimize_graph(b.done(b.add("DequantizeLinear", made, b.scalar(scale), zero)))
    assert not any(n.op.startswith("QLinear") for n in graph.nodes)
    got, own = (Predictor(graph, b).run(image(graph)) for b in ("reference", host_target()))
    for values in (*got.values(), *own.values()):
        if scale < 0:  # the largest number is that of integer 0
            assert 0 < values.max() <= 12.8 and values.min() >= -12.7
        else:
            expected = {0.0: 0.0}.get(scale, math.nan)
            assert np.array_equal(values, np.full_like(values, expected), equal_nan=True)
    for a, b in zip(got.values(), own.values(), strict=True):
        np.testing.assert_allclose(a, b, atol=0.1001)
