"""From ranges to a QDQ graph, and what keeps it close to its parent."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.ir import DType, from_text, verify
from lite_engine.ops import infer_types
from lite_engine.quantize import (
    Ranges,
    Scheme,
    conversions,
    integer_nodes,
    named_layers,
    prepare,
    quantize_static,
    quantize_weights,
    reference_run,
)
from lite_engine.quantize.bias_correction import _shift, corrected_biases
from lite_engine.quantize.rounding import input_rows
from lite_engine.quantize.scheme import activation_params
from lite_engine.quantize.static import unrounded

RNG = np.random.default_rng(3)


def test_prepare_changes_no_number(network, samples):
    parent = prepare(network)
    verify(parent)
    ops = [n.op for n in parent.nodes]
    assert ops.count("HardSwish") == ops.count("HardSigmoid") == ops.count("Add") == 1
    assert all(n.input(3) is None for n in parent.nodes if n.op == "Conv")
    a, b = (reference_run(g, {"x": samples[0]})["y"] for g in (network, parent))
    np.testing.assert_allclose(a, b, rtol=1e-6)
    assert {s for n in parent.nodes for s in n.sources} == {n.name for n in network.nodes}


@pytest.mark.parametrize(
    "scheme", [Scheme(), Scheme("i8"), Scheme("i8", symmetric=True), Scheme("u8", symmetric=True)]
)
def test_outputs_stay_close(calibrated, samples, sqnr, scheme):
    parent, calibration, ranges, _ = calibrated
    biases = corrected_biases(parent, calibration.statistics, scheme)
    graph = quantize_static(parent, ranges, scheme, biases=biases)
    verify(graph)
    for x in samples[:3]:
        want, got = (reference_run(g, {"x": x}, ["l"])["l"] for g in (parent, graph))
        assert sqnr(want, got) > 22


def test_names_types_and_constants(calibrated):
    parent, _, ranges, scheme = calibrated
    graph = quantize_static(parent, ranges, scheme)
    assert [v.name for v in graph.outputs] == ["y"] and [v.name for v in graph.inputs] == ["x"]
    assert {v.name for v in parent.values() if not v.is_const} <= {v.name for v in graph.values()}
    weight = graph.find("stem.weight.q")
    assert weight.const.dtype == np.int8 and weight.const.min() >= -127
    assert graph.find("stem.weight.q.scale").const.shape == (8,)
    assert graph.find("stem.bias.q").const.dtype == np.int32
    assert graph.find("c0.q").dtype is DType.U8 and graph.find("c0.q").quant is not None


def test_sums_that_an_add_takes_are_not_rounded(calibrated):
    parent, _, ranges, scheme = calibrated
    graph = quantize_static(parent, ranges, scheme)
    add = next(n for n in graph.nodes if n.op == "Add")
    assert sorted(v.producer.op for v in add.inputs) == ["Conv", "DequantizeLinear"]
    kept = quantize_static(parent, ranges, Scheme(keep_float=frozenset({"point.conv"})))
    add = next(n for n in kept.nodes if n.op == "Add")
    assert all(v.producer.op == "DequantizeLinear" for v in add.inputs)


def test_layers_by_name(calibrated):
    """A layer that `prepare` split is called as before; a range takes all that lies between."""
    parent = calibrated[0]
    order = [n.name for n in parent.nodes]
    assert named_layers(parent, ["point"]) == {"point.conv", "point.add"}
    first, last = order.index("stem"), order.index("point.add")
    assert named_layers(parent, ["stem..point"]) == set(order[first : last + 1])
    with pytest.raises(UsageError, match="did you mean stem"):
        named_layers(parent, ["stemm"])
    with pytest.raises(UsageError, match=r"stem comes first; write stem\.\.point"):
        named_layers(parent, ["point..stem"])


def test_views_and_concat_share_parameters(calibrated):
    parent, _, ranges, scheme = calibrated
    graph = quantize_static(parent, ranges, scheme)
    scales = {n: float(graph.find(f"{n}.q").quant.scale) for n in ("j", "m", "s", "a", "f")}
    assert scales["m"] == scales["j"] == scales["s"]
    assert scales["f"] == scales["a"]


def test_only_what_pays_becomes_integer(calibrated):
    parent = calibrated[0]
    chosen, why = integer_nodes(parent)
    assert why == {"prob": "Softmax has no integer form"}
    assert conversions(parent, chosen) == [("x", "quantize"), ("l", "dequantize")]
    chosen, why = integer_nodes(parent, frozenset({"fc"}))
    assert why["fc"] == "kept in float on request"
    assert why["flat"] == "a conversion would cost more than it saves"


def test_kept_layers_stay_float(calibrated, samples):
    parent, _, ranges, _ = calibrated
    everything = frozenset(n.name for n in parent.nodes)
    graph = quantize_static(parent, ranges, Scheme(keep_float=everything))
    a, b = (reference_run(g, {"x": samples[0]})["y"] for g in (parent, graph))
    np.testing.assert_array_equal(a, b)


def test_missing_range_is_named(calibrated):
    parent, _, ranges, _ = calibrated
    values = {k: v for k, v in ranges.values.items() if k != "c2.conv"}
    with pytest.raises(CalibrationError, match="c2"):
        quantize_static(parent, Ranges({k: v for k, v in values.items() if "c2" not in k}))


def test_activation_parameters_represent_zero_exactly():
    for low, high in ((-1.0, 3.0), (0.0, 6.0), (-2.0, 0.0), (0.1, 4.0), (0.0, 0.0)):
        p = activation_params((low, high), Scheme())
        assert 0 <= p.zero_point <= 255
        step, zero = float(p.scale), int(p.zero_point)
        assert (0 - zero) * step <= min(low, 0) + step and (255 - zero) * step >= high - step
    assert activation_params((0.0, 6.0), Scheme()).zero_point == 0  # ReLU is free
    with pytest.raises(UsageError, match="u4"):
        Scheme("u4")


def test_what_leaves_the_integers_is_not_clipped(calibrated):
    """The last integer layer takes all that was seen, those before it what the method says."""
    parent, _, ranges, scheme = calibrated
    tight = {name: (0.5 * low, 0.5 * high) for name, (low, high) in ranges.values.items()}
    graph = quantize_static(parent, Ranges(tight, ranges.seen), scheme)
    low, high = ranges.seen["l"]
    assert float(graph.find("l.q").quant.scale) == pytest.approx((high - low) / 255)
    low, high = tight["c0"]
    assert float(graph.find("c0.q").quant.scale) == pytest.approx((high - low) / 255)


@pytest.mark.parametrize("group, whole", [(1, True), (4, False)])
def test_only_kernels_that_add_hand_their_sums_over(group, whole):
    """Those of depthwise convolutions add nothing: their output is rounded."""
    graph = from_text(f"""graph "g" {{
      input x: f32[1,4,5,5]
      const w: f32[4,{4 // group},1,1] = [{", ".join("1" for _ in range(16 // group))}]
      "r": r = Relu(x)
      "c": c = Conv(r, w) {{group={group}}}
      "y": y = Add(c, r)
      output y
    }}""")
    infer_types(graph)
    found = unrounded(graph, {"r", "c", "y"})
    assert found == ({id(graph.find("c"))} if whole else set())


def test_inputs_of_a_join_keep_their_resolution():
    """A narrow one does not take the scale of a joined value many times as wide."""
    graph = from_text("""graph "g" {
      input x: f32[1,1,4,4]
      const w: f32[1,1,1,1] = [1]
      const v: f32[1,1,1,1] = [2]
      const k: f32[1,2,1,1] = [1, 1]
      "a": a = Conv(x, w)
      "b": b = Conv(x, v)
      "y": y = Concat(a, b) {axis=1}
      "z": z = Conv(y, k)
      output z
    }""")
    infer_types(graph)
    wide = (-8.0, 8.0)
    for own, shared in ((4.0, True), (0.5, False)):
        narrow = (-own, own)
        ranges = Ranges({"x": wide, "a": narrow, "b": wide, "y": wide, "z": wide})
        scale = float(quantize_static(graph, ranges).find("a.q").quant.scale)
        assert scale == pytest.approx((16 if shared else 2 * own) / 255)


@pytest.mark.parametrize("group", [1, 2])
def test_rows_are_what_a_convolution_multiplies(group):
    """Each axis with its own stride, dilation and padding; positions come in any order."""
    rng = np.random.default_rng(4)
    w = rng.standard_normal((6, 4 // group, 3, 2)).astype(np.float32)
    graph = from_text(
        f"""graph "g" {{
  input x: f32[1,4,11,10]
  const w: f32[6,{4 // group},3,2] = @0
  "c": y = Conv(x, w) {{group={group}, strides=[1, 2], dilations=[2, 3], pads=[1, 0, 2, 3]}}
  output y
}}""",
        [w],
    )
    infer_types(graph)
    x = rng.standard_normal((1, 4, 11, 10)).astype(np.float32)
    rows = input_rows(graph.nodes[0], x, rng)
    found = np.concatenate([r @ f.reshape(6 // group, -1).T for r, f in zip(
        rows, w.reshape(group, 6 // group, -1), strict=True)], axis=1)  # fmt: skip
    wanted = reference_run(graph, {"x": x})["y"][0].reshape(6, -1).T
    assert found.shape == wanted.shape
    for a, b in zip(*(m[np.argsort(m[:, 0])] for m in (found, wanted)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transposed", [0, 1])
def test_a_gemm_either_way_round(transposed):
    """Its output channels are the columns of the weight, or the rows of a transposed one: 20 loud
    and quiet ones keep a scale each, and their mean shift."""
    rng = np.random.default_rng(6)
    w = (rng.standard_normal((16, 20)) * np.logspace(-3, 3, 20)).astype(np.float32)
    stored = np.ascontiguousarray(w.T) if transposed else w
    text = f"""graph "g" {{
      input x: f32[2,16]
      const w: f32[{",".join(map(str, stored.shape))}] = @0
      "g": y = Gemm(x, w) {{transB={transposed}}}
      output y
    }}"""
    graph = from_text(text, [stored])
    infer_types(graph)
    small = quantize_weights(graph)
    assert small.find("w.scale").const.shape == (20,)
    steps = np.abs(w).max(axis=0) / 127
    q = small.find("w.q").const
    assert (np.abs((q.T if transposed else q) * steps - w) < 1.01 * steps).all()
    error, mean = 0.01 * stored, rng.standard_normal(16)
    np.testing.assert_allclose(_shift(graph.nodes[0], error, mean), mean @ (0.01 * w), rtol=1e-4)
