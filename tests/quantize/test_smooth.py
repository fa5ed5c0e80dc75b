"""Outlier channels of normalizations: the function stays, and integers come close to it."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import Graph
from lite_engine.ops import infer_types
from lite_engine.quantize import Options, quantize, reference_run
from lite_engine.quantize.norm_scaling import normalized_products
from lite_engine.quantize.smooth import _Channels, factors, smooth

from tests.small_models import Builder

WIDTH = 32
RNG = np.random.default_rng(5)
SAMPLES = [{"x": RNG.standard_normal((1, 12, WIDTH)).astype(np.float32)} for _ in range(10)]


def network(gain: float, also_output: bool = False) -> Graph:
    """A normalization, three channels of which are loud, and two products that read it."""
    b = Builder((1, 12, WIDTH), "norm")
    scale = np.ones(WIDTH, np.float32)
    scale[[3, 9, 30]] = gain
    y = b.add("LayerNormalization", b.x, b.graph.constant(scale),
              b.graph.constant(0.1 * scale), name="n", axis=-1)  # fmt: skip
    ends = []
    for name in ("p", "q"):
        w = b.weights(WIDTH, 24).const / scale[:, None]
        ends.append(b.add("MatMul", y, b.graph.constant(w.astype(np.float32)), name=name))
    out = b.add("Add", *ends, name="sum")
    graph = b.done(*([y, out] if also_output else [out]))
    infer_types(graph)
    return graph


def test_the_function_in_floats_stays():
    graph = network(50)
    (name,) = [v.name for v in graph.outputs]
    before = [reference_run(graph, feed)[name] for feed in SAMPLES]
    assert smooth(graph, SAMPLES) == ["n"]
    scale = graph.node("n").inputs[1].const
    assert np.abs(scale).max() / np.abs(scale).min() < 15  # it was 50
    for feed, want in zip(SAMPLES, before):
        np.testing.assert_allclose(reference_run(graph, feed)[name], want, rtol=1e-4, atol=1e-4)


def test_integers_come_closer_to_the_float_network():
    options = Options(method="minmax", rounding="nearest", threshold_db=0)
    graph = network(50)
    plain, smoothed = (
        quantize(graph, SAMPLES, Options(**{**vars(options), "equalize": on})).finished().verdict
        for on in (False, True)
    )
    assert smoothed.sqnr_db > plain.sqnr_db + 12


def test_samples_of_a_generator_serve_for_all_passes():
    options = Options(method="minmax", rounding="learned", threshold_db=0)
    whole = quantize(network(50), SAMPLES, options).finished().verdict
    once = quantize(network(50), iter(SAMPLES), options).finished().verdict
    assert once.sqnr_db == whole.sqnr_db


@pytest.mark.parametrize("kept", [("p",), ("q",), ("p", "q")])
def test_what_floats_read_stays_as_it_is(kept):
    graph = network(50)
    text = graph.node("n").inputs[1].const.copy()
    assert smooth(graph, SAMPLES, frozenset(kept)) == []
    np.testing.assert_array_equal(graph.node("n").inputs[1].const, text)


def test_an_output_of_the_graph_is_not_scaled():
    graph = network(50, also_output=True)
    assert list(normalized_products(graph, frozenset("pq"))) == []


def test_channels_alike_need_no_factors():
    rows = np.tile(np.array([[1.0], [-1.0]]), (8, WIDTH))
    assert factors(np.ones((4, WIDTH)), _Channels.of(rows)) is None


def test_factors_follow_the_noise_that_they_save():
    """Against the error of products with both sides rounded."""
    x = RNG.standard_normal((400, WIDTH))
    x[:, 7] *= 80
    w = RNG.standard_normal((20, WIDTH))
    w[:, 7] /= 80

    def error(s: np.ndarray) -> float:
        a, b = x / s, w * s
        step = np.ptp(a) / 255
        steps = np.abs(b).max(axis=1, keepdims=True) / 127
        rounded = (np.rint(a / step) * step) @ (np.rint(b / steps) * steps).T
        return float(((rounded - x @ w.T) ** 2).mean())

    s = factors(w, _Channels.of(x))
    assert s is not None and error(s) < 0.01 * error(np.ones(WIDTH))
