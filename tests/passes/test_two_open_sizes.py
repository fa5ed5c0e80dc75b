"""A text encoder whose batch and length are open: what is fused with fixed sizes is fused."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types

from tests.small_models import Builder


def head() -> Graph:
    """Two layers with biases over boxes, of which there may be none."""
    b = Builder(("batch", "boxes", 8))
    y = b.add("Relu", b.add("Add", b.add("MatMul", b.x, b.weights(8, 16)), b.weights(16)))
    graph = b.done(b.add("Add", b.add("MatMul", y, b.weights(16, 4)), b.weights(4)))
    infer_types(graph)
    return graph


@pytest.mark.cpu
@pytest.mark.parametrize("shape", [(1, 3, 8), (1, 0, 8), (0, 3, 8)])
def test_no_rows(shape: tuple[int, ...], rng) -> None:
    graph, x = head(), rng.standard_normal(shape).astype(np.float32)
    (y,) = Predictor(optimize(graph)).run({"x": x}).values()
    (wanted,) = Predictor(graph, "reference").run({"x": x}).values()
    assert y.shape == (*shape[:2], 4)
    np.testing.assert_allclose(y, wanted, atol=1e-5)


def test_a_table_that_is_made_longer_is_no_longer_as_long_as_the_input(rng) -> None:
    """n positions of 64 and one more: of one token they are two, which the sum repeats."""
    b = Builder(("n", 8))
    length = b.add("Gather", b.add("Shape", b.x), b.ints(0), axis=0)
    rows = b.add("Slice", b.weights(64, 8), b.ints(0), length, b.ints(0))
    longer = b.add("Concat", rows, b.weights(1, 8), axis=0)
    graph = b.done(b.add("Add", b.add("Relu", b.x), longer))
    infer_types(graph)
    x = rng.standard_normal((1, 8)).astype(np.float32)
    (y,) = Predictor(optimize(graph)).run({"x": x}).values()
    (wanted,) = Predictor(graph, "reference").run({"x": x}).values()
    assert y.shape == (2, 8)
    np.testing.assert_allclose(y, wanted, atol=1e-6)


def encoder() -> Graph:
    """Positions of a table, a mask of the keys that are there, one block of attention."""
    b = Builder(("batch", "length", 16))
    mask = Value("mask", DType.F32, ("batch", "length"))
    b.graph.inputs.append(mask)
    size = b.add("Shape", b.x)
    parts = [b.add("Gather", size, b.ints(i), axis=0) for i in (0, 1)]
    rows = b.add("Slice", b.weights(1, 32, 16), b.ints(0), parts[1], b.ints(1))
    x = b.add("Add", b.x, rows)
    heads = b.add("Concat", *parts, b.ints(2, 8), axis=0)
    hides = b.add("Unsqueeze", b.add("Sub", mask, b.scalar(1)), b.ints(1, 2))
    hides = b.add("Mul", hides, b.scalar(1e4))
    q, k, v = (
        b.add("Reshape", b.add("Add", b.weights(16), b.add("MatMul", x, b.weights(16, 16))), heads)
        for _ in "qkv"
    )
    scores = b.add(
        "MatMul", b.add("Transpose", q, perm=[0, 2, 1, 3]), b.add("Transpose", k, perm=[0, 2, 3, 1])
    )
    y = b.add("Softmax", b.add("Add", scores, hides), axis=-1)
    y = b.add("MatMul", y, b.add("Transpose", v, perm=[0, 2, 1, 3]))
    merged = b.add("Concat", *parts, b.ints(16), axis=0)
    y = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), merged)
    graph = b.done(b.add("MatMul", y, b.weights(16, 16)))
    infer_types(graph)
    return graph


def test_products_and_attention_are_found() -> None:
    ops = [n.op for n in optimize(encoder()).graph.nodes]
    assert ops.count("Attention") == 1 and ops.count("Gemm") == 4
    assert "MatMul" not in ops and "Softmax" not in ops
    assert ops.count("Add") == 1  # of the positions; biases are in the products


@pytest.mark.cpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_size_has_the_numbers_of_the_reference(precision: str, rng) -> None:
    graph = encoder()
    fused, plain = Predictor(optimize(graph), precision=precision), Predictor(graph, "reference")
    bound = 1e-5 if precision == "fp32" else 2e-2  # bf16 keeps 8 bits of each factor
    for batch, length in ((2, 5), (1, 1), (3, 32), (2, 5)):
        feeds = {
            "x": rng.standard_normal((batch, length, 16)).astype(np.float32),
            "mask": (np.arange(length) < rng.integers(1, length + 1, (batch, 1))).astype("f4"),
        }
        (y,), (wanted,) = fused.run(feeds).values(), plain.run(feeds).values()
        np.testing.assert_allclose(y, wanted, atol=bound * np.abs(wanted).max())
