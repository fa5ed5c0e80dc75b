"""From ranges to a QDQ graph, and what keeps it close to its parent."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.ir import DType, Graph, from_text, verify
from lite_engine.ops import infer_types
from lite_engine.quantize import (
    Ranges,
    Scheme,
    calibrate,
    conversions,
    equalize,
    integer_nodes,
    named_layers,
    prepare,
    quantize_static,
    quantize_weights,
    reference_run,
)
from lite_engine.quantize.bias_correction import _shift, corrected_biases
from lite_engine.quantize.rounding import _rows, adaptive_rounding, nearest, preserve_sums
from lite_engine.quantize.scheme import activation_params, weight_scale
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


# ---- weights


def test_sums_are_preserved():
    w = RNG.standard_normal((16, 8, 3, 3)).astype(np.float32)
    scale = weight_scale(w, 0)
    steps = w / scale[:, None, None, None]
    q = preserve_sums(w, scale, 0)
    assert q.dtype == np.int8 and np.abs(q - steps).max() < 1.01
    assert np.abs((q - steps).sum(axis=(1, 2, 3))).max() <= 0.5 + 1e-3
    plain = np.rint(steps)
    noise, more = np.square(plain - steps).mean(), np.square(q - steps).mean()
    assert more < 1.8 * noise


@pytest.mark.parametrize(
    "axis, shape", [(1, (6, 12)), (0, (12, 6)), (None, (5, 4, 3, 3)), (1, (4, 5, 2, 2))]
)
def test_sums_along_any_axis(axis, shape):
    w = RNG.standard_normal(shape).astype(np.float32)
    q = preserve_sums(w, weight_scale(w, axis), axis)
    assert q.shape == w.shape and q.dtype == np.int8


def _layer(group: int = 1) -> tuple[Graph, list[dict]]:
    """A convolution behind a ReLU: its inputs are correlated and have a mean."""
    w = RNG.standard_normal((6, 6 // group, 3, 3)).astype(np.float32)
    text = f"""graph "g" {{
      input x: f32[1,6,12,12]
      const w: f32[6,{6 // group},3,3] = @0
      const b: f32[6] = [0, 0, 0, 0, 0, 0]
      "c": y = Conv(x, w, b) {{group={group}, pads=[1, 1, 1, 1]}}
      output y
    }}"""
    graph = from_text(text, [w])
    infer_types(graph)
    feeds = []
    for _ in range(4):
        base = RNG.standard_normal((1, 1, 12, 12))
        x = np.maximum(base + 0.3 * RNG.standard_normal((1, 6, 12, 12)) + 0.5, 0)
        feeds.append({"x": x.astype(np.float32)})
    return graph, feeds


@pytest.mark.parametrize("group", [1, 6])
def test_adaptive_rounding_lowers_the_output_error(group):
    graph, feeds = _layer(group)
    rounding = adaptive_rounding(graph, feeds, Scheme())
    node, w = graph.nodes[0], graph.nodes[0].inputs[1].const
    scale = 8 * weight_scale(w, 0)  # coarse steps, so that rounding matters
    want = reference_run(graph, feeds[0])["y"]
    errors = []
    for method in (nearest, rounding):
        copy = graph.copy()
        copy.nodes[0].inputs[1].const = (
            method(node, w, scale, 0) * scale[:, None, None, None]
        ).astype(np.float32)
        errors.append(np.square(reference_run(copy, feeds[0])["y"] - want).mean())
    assert errors[1] < 0.9 * errors[0]


def test_bias_correction_removes_the_mean_shift(calibrated, samples):
    parent, calibration, ranges, scheme = calibrated
    biases = corrected_biases(parent, calibration.statistics, scheme, nearest)
    shifts = []
    for use in ({}, biases):
        graph = quantize_static(parent, ranges, scheme, rounding=nearest, biases=use)
        diff = [
            reference_run(graph, {"x": x}, ["c1.linear"])["c1.linear"]
            - reference_run(parent, {"x": x}, ["c1.linear"])["c1.linear"]
            for x in samples
        ]
        shifts.append(np.abs(np.mean(diff, axis=(0, 1, 3, 4))).mean())
    assert shifts[1] <= shifts[0]


def test_equalisation_keeps_the_function_and_evens_the_channels():
    text = """graph "g" {
      input x: f32[1,4,8,8]
      const w1: f32[4,4,1,1] = @0
      const b1: f32[4] = @1
      const w2: f32[4,1,3,3] = @2
      const w3: f32[5,4,1,1] = @3
      "a": a = Conv(x, w1, b1) {activation="Relu"}
      "b": b = Conv(a, w2) {group=4, activation="Relu"}
      "c": y = Conv(b, w3)
      output y
    }"""
    spread = np.array([1, 10, 100, 0.1], np.float32)
    arrays = [
        RNG.standard_normal((4, 4, 1, 1)) * spread[:, None, None, None],
        RNG.standard_normal(4) * spread,
        RNG.standard_normal((4, 1, 3, 3)),
        RNG.standard_normal((5, 4, 1, 1)) / spread[:, None, None],
    ]
    graph = from_text(text, [a.astype(np.float32) for a in arrays])
    infer_types(graph)
    even = graph.copy()
    assert equalize(even) == [("a", "b"), ("b", "c")]
    x = {"x": RNG.standard_normal((1, 4, 8, 8)).astype(np.float32)}
    a, b = (reference_run(g, x)["y"] for g in (graph, even))
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(a).max())

    def unevenness(g: Graph) -> float:
        reach = np.abs(g.nodes[0].inputs[1].const).max(axis=(1, 2, 3))
        return float(reach.max() / reach.min())

    assert unevenness(even) < 0.2 * unevenness(graph)


def one_convolution() -> Graph:
    return from_text(
        'graph "g" {\n  input x: f32[1,64,8,8]\n  const w: f32[96,64,3,3] = @0\n'
        '  "c": y = Conv(x, w) {pads=[1, 1, 1, 1]}\n  output y\n}',
        [RNG.standard_normal((96, 64, 3, 3)).astype(np.float32)],
    )


@pytest.mark.parametrize("bits, share, least_db", [(8, 0.28, 30), (16, 0.53, 70)])
def test_weight_only(sqnr, bits, share, least_db):
    big = one_convolution()
    small = quantize_weights(big, bits)
    verify(small)
    sizes = [sum(v.const.nbytes for v in g.constants()) for g in (small, big)]
    assert sizes[0] / sizes[1] < share
    x = {"x": RNG.standard_normal((1, 64, 8, 8)).astype(np.float32)}
    want, got = (reference_run(g, x)["y"] for g in (big, small))
    assert sqnr(want, got) > least_db


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("backend", [
    pytest.param("x86", marks=pytest.mark.cpu), pytest.param("opencl", marks=pytest.mark.opencl),
    pytest.param("arm", marks=pytest.mark.arm)])  # fmt: skip
def test_weight_only_on_every_backend(bits, backend):
    """The backends multiply what the integers stand for."""
    small = quantize_weights(one_convolution(), bits)
    x = {"x": RNG.standard_normal((1, 64, 8, 8)).astype(np.float32)}
    want = reference_run(small, x)["y"]
    got = Predictor(optimize(small, targets=[backend]), backend).run(x)["y"]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)  # values of up to 100


def test_weight_only_of_other_widths(network):
    with pytest.raises(UsageError, match="8 or 16 bits, got 4"):
        quantize_weights(network, 4)


def test_a_silent_channel_keeps_its_bias(samples):
    """Weights near 0 with an ordinary bias: the scale of the weights must not be near 0."""
    text = """graph "g" {
      input x: f32[1,3,16,16]
      const w: f32[2,3,1,1] = [1.0, -0.5, 0.25, 1e-15, 2e-15, -1e-15]
      const b: f32[2] = [0.5, 3.0]
      "c": y = Conv(x, w, b)
      output y
    }"""
    graph = from_text(text)
    infer_types(graph)
    ranges = calibrate(graph, samples).ranges("minmax")
    quantised = quantize_static(graph, ranges)
    assert np.abs(quantised.find("c.bias.q").const.astype(np.int64)).max() <= 1 << 30
    got = reference_run(quantised, {"x": samples[0]})["y"]
    np.testing.assert_allclose(got[0, 1], 3.0, atol=0.05)


def test_the_mean_shift_of_a_transposed_convolution():
    """Kernel = stride: every output is one tap, and outputs of a constant input tell the mean."""
    rng = np.random.default_rng(2)
    error = rng.standard_normal((6, 2, 2, 2)).astype(np.float32)  # two groups of 3 → 2 channels
    mean = rng.standard_normal(6).astype(np.float32)
    graph = from_text(
        """graph "g" {
  input x: f32[1,6,3,3]
  const w: f32[6,2,2,2] = @0
  "up": y = ConvTranspose(x, w) {strides=[2, 2], group=2}
  output y
}""",
        [error],
    )
    x = np.broadcast_to(mean.reshape(1, 6, 1, 1), (1, 6, 3, 3)).astype(np.float32)
    want = reference_run(graph, {"x": x})["y"].mean(axis=(0, 2, 3))
    got = _shift(graph.nodes[0], error, mean)
    np.testing.assert_allclose(got, want, rtol=1e-5)


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
    rows = _rows(graph.nodes[0], x, rng)
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
