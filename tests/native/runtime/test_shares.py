"""Large steps are cut into more shares than there are threads: who computes one changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import Graph
from lite_engine.ops import infer_types
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan

from tests.small_models import Builder, image

from ..tiny import isas, load

pytestmark = pytest.mark.cpu

ROWS, WIDTH, HEADS, SIDE, CHANNELS = 203, 192, 3, 45, 37


def encoder() -> Graph:
    """Products, attention, norms and softmax; no tile and no number of threads divides the rows."""
    b = Builder((1, ROWS, WIDTH), "encoder")

    def split(perm: list[int]):
        product = b.add("MatMul", normed, b.weights(WIDTH, WIDTH))
        heads = b.add("Reshape", product, b.ints(1, ROWS, HEADS, WIDTH // HEADS))
        return b.add("Transpose", heads, perm=perm)

    normed = b.add("LayerNormalization", b.x, b.weights(WIDTH), b.weights(WIDTH))
    q, k, v = split([0, 2, 1, 3]), split([0, 2, 3, 1]), split([0, 2, 1, 3])
    scores = b.add("Mul", b.add("MatMul", q, k), b.scalar(9.0))
    mixed = b.add("Transpose", b.add("MatMul", b.add("Softmax", scores, axis=-1), v),
                  perm=[0, 2, 1, 3])  # fmt: skip
    joined = b.add("Reshape", mixed, b.ints(1, ROWS, WIDTH))
    y = b.add("Add", b.add("MatMul", joined, b.weights(WIDTH, WIDTH)), b.x)
    y = b.add("Softmax", b.add("Erf", y), axis=-1)
    return b.done(b.add("MatMul", b.add("Transpose", y, perm=[0, 2, 1]), normed))


def pictures() -> Graph:
    """Convolutions, pools, Resize, Concat and elementwise steps."""
    b = Builder((1, CHANNELS, SIDE, SIDE), "pictures")
    three = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    y = b.add("Sin", b.conv(b.x, CHANNELS, CHANNELS, 3, group=CHANNELS))
    y = b.add("Mul", b.conv(y, CHANNELS, CHANNELS, 1), b.x)
    y = b.add("MaxPool", y, **three)
    twice = b.graph.constant(np.array([1, 1, 2, 2], np.float32))
    y = b.add("Resize", y, None, twice, mode="linear")
    y = b.add("Concat", y, b.add("Cos", y), axis=1)
    return b.done(b.add("AveragePool", y, strides=[2, 2], **three))


def quantized() -> Graph:
    """The same kinds of layers in bytes."""
    b = Builder((1, CHANNELS, SIDE, SIDE), "quantized")
    coarse, fine = b.scalar(0.05), b.scalar(0.02)
    middle, zero = (b.graph.constant(np.array(*z)) for z in ((128, np.uint8), (0, np.int8)))

    def quantize(value):
        whole = b.add("QuantizeLinear", value, coarse, middle)
        return b.add("DequantizeLinear", whole, coarse, middle)

    def weights(*shape: int):
        whole = b.graph.constant(b.rng.integers(-90, 90, shape).astype(np.int8))
        return b.add("DequantizeLinear", whole, fine, zero)

    x = quantize(b.x)
    y = b.add("Conv", x, weights(CHANNELS, 1, 3, 3), group=CHANNELS, pads=[1, 1, 1, 1])
    y = quantize(b.add("Sigmoid", quantize(y)))
    y = quantize(b.add("Conv", y, weights(CHANNELS, CHANNELS, 1, 1)))
    y = quantize(b.add("Add", y, x))
    y = quantize(b.add("MaxPool", y, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    y = b.add("Reshape", y, b.ints(CHANNELS, SIDE * SIDE))
    return b.done(quantize(b.add("MatMul", y, weights(SIDE * SIDE, 190))))


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("network", [encoder, pictures, quantized])
def test_who_computes_a_share_changes_nothing(network, isa) -> None:
    graph = network()
    infer_types(graph)
    plan = make_plan(optimize_graph(graph), "cpu")
    x = list(image(graph).values())
    (alone,) = load(plan, threads=1, max_isa=isa).run(x)
    assert np.isfinite(alone).all() and alone.std() > 0
    for threads in (2, 3, 7):  # 7: some come late, and others take what they have left
        program = load(plan, threads=threads, max_isa=isa)
        for _ in range(3):
            (together,) = program.run(x)
            np.testing.assert_array_equal(together, alone)
