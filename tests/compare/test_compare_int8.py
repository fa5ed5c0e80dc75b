"""Compare: a quantised model beside the float one it was made from, as their files hold them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.compare import Side, compare
from lite_engine.compare.alignment import align
from lite_engine.compare.evidence import compared_values
from lite_engine.compare.side import quant_of, to_float
from lite_engine.errors import UsageError
from lite_engine.ir import Graph
from lite_engine.model_file import read_model
from lite_engine.quantize import quantize
from lite_engine.runtime import host_target

from tests.small_models import Builder, image

SHAPE = (1, 3, 12, 12)


def block() -> Graph:
    """Tables of every kind: read by a product, moved and pooled before, joined; and two layers
    with a ReLU between them, whose channels quantisation scales."""
    b = Builder(SHAPE, "block")
    y = b.conv(b.x, 3, 8, 3, name="stem", activation="HardSwish")
    z = b.add("GlobalAveragePool", y, name="pool")
    z = b.conv(z, 8, 4, 1, name="fc1", activation="Relu")
    z = b.conv(z, 4, 8, 1, name="fc2", activation="Sigmoid")
    y = b.add("Mul", y, z, name="excite")
    z = b.conv(y, 8, 8, 3, name="wide", activation="HardSwish")
    other = b.conv(y, 8, 8, 1, name="beside", activation="HardSwish")
    z = b.add("Concat", z, other, name="both", axis=1)
    z = b.add("MaxPool", z, name="max", kernel_shape=[2, 2], strides=[2, 2])
    z = b.add("Flatten", z, name="flat")
    return b.done(b.add("Gemm", z, b.weights(10, 576), b.weights(10), name="fc", transB=1))


@pytest.fixture(scope="module")
def versions(tmp_path_factory) -> tuple[Side, Side]:
    """The float model and the file of its int8 version."""
    rng = np.random.default_rng(0)
    samples = [{"x": rng.standard_normal(SHAPE).astype(np.float32)} for _ in range(12)]
    parent = optimize(block(), targets=[host_target()])
    path = tmp_path_factory.mktemp("int8") / "block.lite"
    optimize(quantize(parent.graph, samples).graph, targets=[host_target()]).save(path)
    return Side(Predictor(parent, "reference")), Side(Predictor(read_model(path), "reference"))


def test_rounding_explains_every_layer(versions) -> None:
    result = compare(*versions, image(block()))
    compared = {x.name for x in result.layers}
    assert compared >= {"stem", "pool", "fc2", "excite", "wide", "both", "fc"}
    assert result.agrees, result.verdict
    # fc1 makes four numbers, most of them near the zero of its ReLU
    assert max(x.isolated["rel_l2"] for x in result.layers if x.name != "fc1") < 0.05


def test_scaled_channels_are_compared_in_the_float_models_numbers() -> None:
    """The factors of a chain, found in its weights, are those between the values of both runs; and
    on two backends every integer is compared."""
    b = Builder(SHAPE, "chain")
    y = b.conv(b.x, 3, 8, 3, name="first", activation="Relu")
    y = b.conv(y, 8, 8, 3, name="depthwise", activation="Relu", group=8)
    y = b.conv(y, 8, 6, 1, name="last")
    float_model = optimize(b.done(y), targets=[host_target()])
    rng = np.random.default_rng(0)
    samples = [{"x": rng.standard_normal(SHAPE).astype(np.float32)} for _ in range(4)]
    model = optimize(quantize(float_model.graph, samples).graph, targets=[host_target()])
    sides = Side(Predictor(float_model, "reference")), Side(Predictor(model, "reference"))
    scaled = [p for p in align(*sides) if p.name_b.endswith(".equalized.q")]
    assert [p.node_a.name for p in scaled] == ["first", "depthwise"]
    exact = sides[0].values(samples[0], [p.name_a for p in scaled])
    held = sides[1].values(samples[0], [p.name_b for p in scaled])
    factors = []
    for pair in scaled:
        own, once = quant_of(sides[1].graph.find(pair.name_b)), quant_of(pair.value_b)
        factors += [*(once.scale / own.scale)]
        x, y = exact[pair.name_a], to_float(held[pair.name_b], once)
        slope = (x * y).sum((0, 2, 3)) / (y * y).sum((0, 2, 3))
        np.testing.assert_allclose(slope, 1, atol=0.02)  # steps of 8 bits, over 144 pixels
    assert max(factors) / min(factors) > 1.5  # or this tests nothing
    result = compare(sides[1], Side(Predictor(model, host_target())), samples[0])
    assert {x.name for x in result.layers} >= {n.name for n in model.graph.nodes if n.outputs}
    assert result.agrees and result.unaligned == 0, result.verdict
    with pytest.raises(
        UsageError, match=r"x\.q has no counterpart: reference and reference compute"
    ):
        compared_values(*sides, samples[0], "x.q")
    name = next(n.name for n in model.graph.nodes if "depthwise" in n.sources)
    faulty = Predictor(model, host_target(), faults={name: "swap_channels"})
    found = compare(sides[0], Side(faulty), samples[0]).first_divergence
    assert found is not None and "depthwise" in found["sources"]


@pytest.mark.cpu
@pytest.mark.parametrize("layer", ["stem", "fc2", "wide", "fc"])
def test_a_fault_in_integers_is_named(layer, versions) -> None:
    a, b = versions
    name = next(
        n.name for n in b.graph.nodes if layer in n.sources and n.op[:5] in ("QLine", "QGemm")
    )
    faulty = Predictor(b.predictor.model, host_target(), faults={name: "swap_channels"})
    result = compare(a, Side(faulty), image(block()))
    assert layer in (result.first_divergence or {})["sources"], result.verdict


def test_a_view_that_one_side_has_dropped_is_not_its_layer() -> None:
    """What the product before it loses is that product's row, not a Reshape's as well."""

    def product(*views: tuple[int, ...]) -> Graph:
        b = Builder((4, 8))
        y = b.add("Gemm", b.x, b.weights(8, 6), b.weights(6), name="product")
        made = y.producer
        for i, shape in enumerate(views):
            y = b.add("Reshape", y, b.ints(*shape), name=f"view{i}")
            made.sources = (*made.sources, f"view{i}")
        return b.done(b.add("Tanh", y, name="end"))

    a, b = product((1, 4, 6), (4, 6)), product()
    b.nodes[0].sources = ("product", "view0", "view1")
    pairs = align(SimpleNamespace(graph=a), SimpleNamespace(graph=b))
    assert [(p.node_a.name, p.node_b.name) for p in pairs] == [
        ("product", "product"), ("end", "end"),
    ]  # fmt: skip
