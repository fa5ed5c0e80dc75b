"""DQ → operator → Q against integers: the same steps, and nothing left in floats that need not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from lite_engine.ir import Graph, Journal, from_text, verify
from lite_engine.ops import infer_types
from lite_engine.passes import optimize_graph
from lite_engine.passes.fold_pad import fold_pad
from lite_engine.passes.quantize_fuse_add import quantize_fuse_add
from lite_engine.passes.quantize_fuse_qdq import quantize_fuse_qdq
from lite_engine.passes.quantize_merge_lookup_tables import quantize_merge_lookup_tables
from lite_engine.passes.quantize_move_views import quantize_move_views
from lite_engine.quantize import Ranges, quantize_static, reference_run

RNG = np.random.default_rng(5)


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


def qdq(text: str, arrays: list[np.ndarray] | None = None) -> Graph:
    graph = from_text('graph "g" {\n' + text + "\n}", arrays or [])
    infer_types(graph)
    return graph


IN = """
  input x: f32[1,4,6,6]
  const s: f32[] = [0.05]
  const z: u8[] = [120]
  const s2: f32[] = [0.08]
  const z2: u8[] = [10]
  "q": xq = QuantizeLinear(x, s, z)
  "dq": xd = DequantizeLinear(xq, s, z)
"""
OUT = '\n  "q2": yq = QuantizeLinear(y, s2, z2)\n'
OUT += '  "dq2": out = DequantizeLinear(yq, s2, z2)\n  output out'
SAME = OUT.replace("s2, z2", "s, z")


def fuse(graph: Graph) -> tuple[Graph, Journal]:
    out, journal = graph.copy(), Journal()
    for one in (quantize_move_views, quantize_fuse_qdq, quantize_merge_lookup_tables):
        one(out, journal)
    out.remove_unread()
    infer_types(out)
    verify(out)
    feeds = {"x": (3 * RNG.standard_normal((1, 4, 6, 6))).astype(np.float32)}
    for name, array in reference_run(graph, feeds).items():
        step = 0.08 if "yq" in {v.name for v in graph.values()} else 0.05
        np.testing.assert_allclose(reference_run(out, feeds)[name], array, atol=1.01 * step)
    return out, journal


def ops(graph: Graph) -> list[str]:
    """Operators between the first Q and the last DQ."""
    return [n.op for n in graph.nodes][1:-1]


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
        ("MaxPool(xd) {kernel_shape=[2, 2]}", ["MaxPool", "QLookup"]),
        ("Identity(xd)", ["Identity", "QLookup"]),
        ("Transpose(xd) {perm=[0, 2, 3, 1]}", ["Transpose", "QLookup"]),
    ],
)  # fmt: skip
def test_operator(call, expected):
    graph, _ = fuse(qdq(IN + f'  "op": y = {call}' + OUT))
    assert ops(graph) == expected


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


CONV = """
  const w: i8[3,4,3,3] = @0
  const ws: f32[3] = [0.01, 0.02, 0.03]
  const wz: i8[3] = [0, 0, 0]
  "dw": wd = DequantizeLinear(w, ws, wz) {axis=0}
  const b: i32[3] = [100, -200, 300]
  const bs: f32[3] = [0.0005, 0.001, 0.0015]
  const bz: i32[3] = [0, 0, 0]
  "db": bd = DequantizeLinear(b, bs, bz) {axis=0}
"""


def weights() -> list[np.ndarray]:
    return [RNG.integers(-127, 128, (3, 4, 3, 3)).astype(np.int8)]


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
        ('  "c": y = MatMul(xd, xd)', "not a constant matrix"),
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


def with_residual(second: str) -> Graph:
    weight = RNG.integers(-127, 128, (4, 4, 1, 1)).astype(np.int8)
    text = (
        IN
        + f"""
  const w: i8[4,4,1,1] = @0
  const ws: f32[] = [0.004]
  const wz: i8[] = [0]
  "wd": wf = DequantizeLinear(w, ws, wz)
  {second}
  "conv": y = Conv(xd, wf, _, r)"""
    )
    return qdq(text + OUT, [weight])


def test_a_quantised_residual_is_added_before_the_rounding():
    fused, _ = fuse(with_residual('"other": r = DequantizeLinear(xq, s2, z2)'))
    assert ops(fused) == ["QLinearConv"]
    conv = fused.nodes[1]
    assert [v.name for v in conv.inputs[9:]] == ["xq", "s2", "z2"]


def test_a_float_residual_is_refused():
    fused, journal = fuse(with_residual('"other": r = Relu(x)'))
    assert "QLinearConv" not in ops(fused)
    assert any("residual is not quantized" in str(e) for e in journal.entries)


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


ADDED = CONV.replace("[3,4,3,3]", "[4,4,3,3]").replace("[3]", "[4]").replace(
    "0.03]", "0.03, 0.02]").replace("300]", "300, 0]").replace("0.0015]", "0.0015, 0.001]").replace(
    "[0, 0, 0]", "[0, 0, 0, 0]") + """
  const s3: f32[] = [0.0473]
  const z3: u8[] = [90]
"""  # fmt: skip


def added(body: str) -> Graph:
    weight = RNG.integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)
    return qdq(IN + ADDED.replace("z2", "z") + body + OUT, [weight])


@pytest.mark.parametrize("order", ["c1, xd", "xd, c1"])
def test_an_addition_to_rounded_sums_is_part_of_the_convolution(order):
    """Both roundings stay: the integers of two operators, but for ties, which products break
    otherwise than divisions (none with these scales)."""
    graph = added(f"""
  "c": c = Conv(xd, wd, bd) {{pads=[1, 1, 1, 1]}}
  "q1": cq = QuantizeLinear(c, s3, z3)
  "dq1": c1 = DequantizeLinear(cq, s3, z3)
  "add": y = Add({order})""")
    apart, _ = fuse(graph)
    assert ops(apart) == ["QLinearConv", "QLinearAdd"]
    fused = apart.copy()
    assert quantize_fuse_add(fused, Journal()) == 1
    infer_types(fused)
    assert ops(fused) == ["QLinearConv"]
    conv = fused.nodes[1]
    assert [v.name for v in conv.inputs[6:8] + conv.inputs[9:]] == [
        "s2", "z2", "xq", "s", "z", "s3", "z3"]  # fmt: skip
    feeds = {"x": (3 * RNG.standard_normal((1, 4, 6, 6))).astype(np.float32)}
    a, b = (reference_run(g, feeds, ["yq"])["yq"] for g in (apart, fused))
    assert np.array_equal(a, b) and len(np.unique(a)) > 50


def test_of_two_convolutions_the_last_one_adds():
    """The first one's output is read a second time by no one, yet it is computed before."""
    branch = """
  "c{0}": c{0} = Conv(xd, wd, bd) {{pads=[1, 1, 1, 1]}}
  "q{0}": c{0}q = QuantizeLinear(c{0}, s3, z3)
  "dq{0}": d{0} = DequantizeLinear(c{0}q, s3, z3)"""
    graph, _ = fuse(added(branch.format(1) + branch.format(2) + '\n  "add": y = Add(d1, d2)'))
    journal = Journal()
    assert quantize_fuse_add(graph, journal) == 1
    assert [(n.op, n.name) for n in graph.nodes][1:-1] == [
        ("QLinearConv", "c1"), ("QLinearConv", "c2")]  # fmt: skip
    assert graph.node("c2").inputs[9] is graph.node("c1").output


def test_sums_read_with_another_scale_stay_apart():
    graph, _ = fuse(
        added("""
  "c": c = Conv(xd, wd, bd) {pads=[1, 1, 1, 1]}
  "q1": cq = QuantizeLinear(c, s3, z3)
  "dq1": c1 = DequantizeLinear(cq, s2, z3)
  "add": y = Add(c1, xd)""")
    )
    journal = Journal()
    assert quantize_fuse_add(graph, journal) == 0
    assert "another scale" in str(journal)


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
