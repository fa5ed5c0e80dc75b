"""Attention in integers: chosen, fused, close to the float network; and why some stays float."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.ir import Graph, Journal, from_text, verify
from lite_engine.ops import infer_types
from lite_engine.ops.expand import expand_missing
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.quantize import (
    Scheme,
    calibrate,
    integer_nodes,
    named_layers,
    prepare,
    quantize_static,
    reference_run,
)
from lite_engine.quantize.analyze import sensitivity

from tests.small_models import Builder
from tests.small_models import attention as attention_block

RNG = np.random.default_rng(11)
SAMPLES = [{"x": RNG.standard_normal((1, 12, 32)).astype(np.float32)} for _ in range(6)]


@pytest.fixture(scope="module")
def parent() -> Graph:
    return prepare(optimize(attention_block(), targets=["x86"]).graph)


@pytest.fixture(scope="module")
def ranges(parent):
    return calibrate(parent, SAMPLES).ranges("minmax")


def snr_db(want: np.ndarray, got: np.ndarray) -> float:
    return float(10 * np.log10((want**2).sum() / ((want - got) ** 2).sum()))


def test_a_block_computes_its_attention_in_integers(parent, ranges):
    chosen, _ = integer_nodes(parent)
    assert next(n.name for n in parent.nodes if n.op == "Attention") in chosen
    name = parent.outputs[0].name
    qdq = quantize_static(parent, ranges, Scheme())
    verify(qdq)
    fused = optimize_graph(qdq)
    ops = [n.op for n in fused.nodes]
    assert "QLinearAttention" in ops and "Attention" not in ops
    assert ops.count("QuantizeLinear") == 1  # of the input: nothing leaves the integers between
    for feed in SAMPLES[:3]:
        want, got = (reference_run(g, feed)[name] for g in (parent, fused))
        assert snr_db(want, got) > 30
    native = Predictor(optimize(qdq, targets=["x86"]), "x86")
    assert "i8_attention" in [step.kernel for step in native.plan().steps]
    np.testing.assert_array_equal(
        native.run(SAMPLES[0])[name], reference_run(fused, SAMPLES[0])[name]
    )


def test_operands_that_are_parts_of_one_product_are_read_where_they_lie():
    """Queries, keys and values of one Gemm: views of it with its pitch, also with an odd width."""
    b = Builder((1, 21, 12), "packed")
    whole = b.add("MatMul", b.x, b.weights(12, 3 * 18), name="qkv")
    parts = b.graph.add("Split", [whole], {"axis": 2, "num_outputs": 3}, outputs=3).outputs
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    y = b.add("MatMul", b.add("Attention", *parts, name="a", **heads), b.weights(18, 12), name="o")
    graph = prepare(optimize(b.done(y), targets=["x86"]).graph)
    feeds = [{"x": RNG.standard_normal((1, 21, 12)).astype(np.float32)} for _ in range(4)]
    qdq = quantize_static(graph, calibrate(graph, feeds).ranges("minmax"), Scheme())
    native = Predictor(optimize(qdq, targets=["x86"]), "x86")
    plan = native.plan()
    (step,) = [s for s in plan.steps if s.kernel == "i8_attention"]
    pitches = {plan.tensors[step.inputs[i]].pitch for i in (0, 3, 6)}
    assert pitches == {54}
    name = graph.outputs[0].name
    want = reference_run(optimize_graph(qdq), feeds[0])[name]
    np.testing.assert_array_equal(native.run(feeds[0])[name], want)


def test_attention_is_a_layer_that_may_stay_in_floats(parent, ranges):
    (layer,) = [n for n in parent.nodes if n.op == "Attention"]
    found = {entry["name"]: entry for entry in sensitivity(parent, ranges, Scheme(), SAMPLES[:2])}
    assert 20 < found[layer.name]["output_sqnr_db"] < 100


@pytest.mark.parametrize("target", ["x86", "opencl"])
def test_attention_kept_in_floats_stays_there_between_integers(target):
    b = Builder((1, 12, 32), "between")
    parts = [b.add("MatMul", b.x, b.weights(32, 32), name=part) for part in "qkv"]
    y = b.graph.add("Attention", parts, {"q_num_heads": 4, "kv_num_heads": 4}, name="a").output
    graph = prepare(optimize(b.done(b.add("MatMul", y, b.weights(32, 8))), targets=["x86"]).graph)
    found = calibrate(graph, SAMPLES).ranges("minmax")
    for keep, wanted in (((), "QLinearAttention"), (("a",), "Attention")):
        names = named_layers(graph, keep)
        qdq = quantize_static(graph, found, Scheme(keep_float=names))
        ops = [n.op for n in optimize(qdq, targets=[target]).graph.nodes]
        assert wanted in ops and ops.count("QGemm") == 4


def _attention(attrs: str = "", more: str = "", mask: str = "") -> Graph:
    graph = from_text(
        f"""graph "g" {{
          input q: f32[1,2,9,8]
          input k: f32[1,2,7,8]
          input v: f32[1,2,7,8]
          {more}
          "a": y = Attention(q, k, v{mask}) {{{attrs}}}
          output y
        }}"""
    )
    infer_types(graph)
    return graph


@pytest.mark.parametrize(
    "attrs, more, mask, reason",
    [
        ("softcap=3.0", "", "", "soft cap"),
        ("left_window_size=2", "", "", "window"),
        ("", "input p: f32[1,2,3,8]", ", _, p, p", "past keys"),
    ],
)
def test_what_stays_in_floats_says_why(attrs, more, mask, reason):
    graph = _attention(attrs, more, mask)
    chosen, why = integer_nodes(graph)
    assert "a" not in chosen and reason in why["a"]


def test_a_mask_stays_a_number_and_its_rows_may_see_nothing():
    graph = _attention(more="input m: f32[9,7]", mask=", m")
    feeds = [
        {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in (
            ("q", (1, 2, 9, 8)), ("k", (1, 2, 7, 8)), ("v", (1, 2, 7, 8)), ("m", (9, 7)))}
        for _ in range(4)
    ]  # fmt: skip
    found = calibrate(graph, feeds).ranges("minmax")
    fused = optimize_graph(quantize_static(graph, found, Scheme()))
    (node,) = [n for n in fused.nodes if n.op == "QLinearAttention"]
    assert node.input(11).name == "m"
    hidden = {**feeds[0], "m": np.where(np.arange(9)[:, None] < 2, -np.inf, feeds[0]["m"])}
    hidden["m"] = hidden["m"].astype(np.float32)
    want, got = (reference_run(g, hidden)["y"] for g in (graph, fused))
    assert not want[:, :, :2].any() and not got[:, :, :2].any()
    assert snr_db(want, got) > 25


def test_a_backend_without_the_kernel_gets_it_written_out(parent, ranges):
    fused = optimize_graph(quantize_static(parent, ranges, Scheme()))
    name = parent.outputs[0].name
    want = reference_run(fused, SAMPLES[0])[name]
    expand_missing(fused, lambda node, _: node.op == "Attention")
    ops = [n.op for n in fused.nodes]
    assert ops.count("Attention") == 1 and "QLinearAttention" not in ops
    np.testing.assert_allclose(reference_run(fused, SAMPLES[0])[name], want, atol=0.05)
    expand_missing(fused, lambda *_: False)
    assert "Attention" not in [n.op for n in fused.nodes]


def test_opencl_computes_it_in_floats_between_integer_products(parent, ranges):
    """No device is needed for a plan."""
    fused = optimize_graph(quantize_static(parent, ranges, Scheme()))
    steps = make_plan(fused, "opencl").steps
    kernels = [s.kernel for s in steps if s.backend == "opencl"]
    assert "attention" in kernels and kernels.count("i8_gemm") == 3
    assert {s.backend for s in steps} == {"opencl"}


def test_operands_of_other_widths_are_refused():
    journal = Journal()
    text = """graph "g" {
      input q: u8[1,2,9,8]
      input k: f32[1,2,7,8]
      const s: f32[] = 0.05
      const z: u8[] = 128
      "d": d = DequantizeLinear(q, s, z)
      "a": a = Attention(d, k, k)
      "o": y = QuantizeLinear(a, s, z)
      output y
    }"""
    graph = from_text(text)
    infer_types(graph)
    assert "Attention" in [n.op for n in optimize_graph(graph, journal=journal).nodes]
    assert "an operand is not quantized to 8 bits" in str(journal)
