"""Weights of a quantised model: adaptive rounding, bias correction, equalisation, weight-only."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.errors import UsageError
from lite_engine.ir import Graph, from_text, verify
from lite_engine.ops import infer_types
from lite_engine.quantize import (
    Scheme,
    calibrate,
    equalize,
    quantize_static,
    quantize_weights,
    reference_run,
)
from lite_engine.quantize.bias_correction import _shift, corrected_biases
from lite_engine.quantize.rounding import adaptive_rounding, nearest, preserve_sums
from lite_engine.quantize.scheme import weight_scale

RNG = np.random.default_rng(3)


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
