"""Compare: two sides that both hold integers, of weights alone or of activations as well."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.compare import Side, compare
from lite_engine.compare.comparison import Comparison
from lite_engine.compare.widened import integers_of, rounded_apart, widen
from lite_engine.ir import Graph
from lite_engine.quantize import (
    Groups,
    Options,
    quantize,
    quantize_weights,
    quantize_weights_int4,
)
from lite_engine.runtime import host_target

from tests.small_models import Builder, classifier, image

FORMS = ("int4", "other int4", "int8 weights", "int8", "minmax")


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    """The classifier, its weights or all of it in integers."""
    graph = optimize(classifier()).graph
    rng = np.random.default_rng(0)
    shape = image(graph)["x"].shape
    samples = [{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(8)]
    made = [
        quantize_weights_int4(graph, Groups(16)).graph,
        quantize_weights_int4(graph, Groups(32, symmetric=False)).graph,
        quantize_weights(graph),
        quantize(graph, samples).graph,
        quantize(graph, samples, Options(method="minmax")).graph,
    ]
    return {name: optimize(g).graph for name, g in zip(FORMS, made, strict=True)}


def native(graph: Graph, **how: object) -> Side:
    return Side(Predictor(graph, host_target(), threads=1, **how))


@pytest.mark.cpu
@pytest.mark.parametrize(("a", "b"), [*permutations(FORMS, 2)])
def test_both_roundings_explain_the_difference(a, b, graphs) -> None:
    result = compare(native(graphs[a]), native(graphs[b]), image(classifier()))
    assert result.finding.kind in ("agree", "outputs_differ"), result.verdict
    assert all(x.within for x in result.layers), result.verdict
    assert result.answer is not None and result.answer.integers == "both"
    assert "float" not in result.verdict


@pytest.mark.cpu
@pytest.mark.parametrize("other", ["int4", "int8 weights"])
def test_a_fault_is_no_rounding(other, graphs) -> None:
    name = next(n.name for n in graphs["int8"].nodes if "wide" in n.sources)
    faulty = native(graphs["int8"], faults={name: "swap_channels"})
    result = compare(native(graphs[other]), faulty, image(classifier()))
    found = result.first_divergence
    assert found is not None and "wide" in found["sources"], result.verdict
    assert result.finding.side == "candidate"


@pytest.mark.cpu
def test_the_same_integers_are_no_other_rounding(graphs) -> None:
    """Two files of one rounding, one with wrong scales: nothing is explained."""
    broken = graphs["int4"].copy()
    product = next(n for n in broken.nodes if n.op == "MatMulNBits")
    scales = product.inputs[2].const.copy()
    scales[3] *= -1
    product.set_input(2, broken.constant(scales))
    assert not rounded_apart(graphs["int4"], broken)
    result = compare(native(graphs["int4"]), native(broken), image(classifier()))
    found = result.first_divergence
    assert found is not None and set(product.sources) <= set(found["sources"]), result.verdict


@pytest.mark.parametrize("form", ["int4", "other int4", "int8 weights"])
def test_weights_are_off_by_half_a_step(form, graphs) -> None:
    """The layers give what they gave, but for as much."""
    graph = graphs[form].copy()
    exact = Predictor(graph, "reference").run(image(classifier()))
    widen(graph, graphs[form])
    assert integers_of(graph) == integers_of(graphs[form])  # of the same rounding: as they are
    widen(graph, Graph("none"))
    assert not integers_of(graph)
    for name, y in Predictor(graph, "reference").run(image(classifier())).items():
        assert 0 < np.abs(y - exact[name]).max() < 0.2


def quantized_twice(scale: float) -> Graph:
    b = Builder((1, 3, 6, 6), "scales")
    zero = b.graph.constant(np.array(128, np.uint8))
    y = b.add("DequantizeLinear", b.add("QuantizeLinear", b.x, b.scalar(0.05), zero),
              b.scalar(0.05), zero)  # fmt: skip
    y = b.conv(y, 3, 4, 3, name="first")
    y = b.add("DequantizeLinear", b.add("QuantizeLinear", y, b.scalar(scale), zero, name="q"),
              b.scalar(scale), zero)  # fmt: skip
    return optimize(b.done(b.add("Relu", y, name="last"))).graph


def of_scales(*scales: float) -> Comparison:
    sides = [Side(Predictor(quantized_twice(scale), "reference")) for scale in scales]
    x = np.random.default_rng(0).standard_normal((1, 3, 6, 6), np.float32)
    return compare(sides[0], sides[1], {"x": x})


@pytest.mark.parametrize("sign", [1, -1])
def test_other_steps_are_roundings_whatever_their_sign(sign: int) -> None:
    assert of_scales(sign * 0.05, sign * 0.06).finding.kind == "agree"


def test_a_scale_of_the_other_sign_says_the_same() -> None:
    assert of_scales(0.05, -0.05).verdict.startswith("the outputs are equal on both sides; ")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("scale", [0.0, np.nan])
def test_precision_does_not_explain_a_scale_that_is_no_number(scale: float) -> None:
    """Of two quantized models, one has lost the scale of a layer's output."""
    found = of_scales(0.05, scale)
    assert (found.finding.kind, found.finding.layer) == ("layer_fails", "q")
    assert np.isfinite(found.finding.tolerance)
