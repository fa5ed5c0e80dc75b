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


def exported() -> Graph:
    """Attention as torch.export writes it: views by computed sizes whose 0 is a 0, two heads of
    keys that four of queries share, rotated by positions that are counted as floats, a causal mask.
    """
    b = Builder(("batch", "length", 32))

    def view(x: Value, *sizes: Value | int) -> Value:
        parts = [b.ints(n) if isinstance(n, int) else n for n in sizes]
        return b.add("Reshape", x, b.add("Concat", *parts, axis=0), allowzero=1)

    def heads(count: int) -> Value:
        y = b.add("MatMul", b.x, b.weights(32, count * 8))
        return b.add("Transpose", view(y, batch, length, count, 8), perm=[0, 2, 1, 3])

    def repeated(x: Value) -> Value:
        x = b.add("Expand", b.add("Unsqueeze", x, b.ints(2)), b.ints(1, 1, 2, 1, 1))
        return view(x, batch, -1, length, 8)

    batch, length = (b.add("Shape", b.x, start=i, end=i + 1) for i in (0, 1))
    one = b.add("Squeeze", length, b.ints(0))
    limit = b.add("Cast", one, to=DType.F32)
    positions = b.add("Range", b.scalar(0), limit, b.scalar(1))
    turns = b.add("Cos", b.add("Unsqueeze", positions, b.ints(1)))
    q, k, v = (b.add("Mul", heads(n), turns) for n in (4, 2, 2))
    scores = b.add("MatMul", q, b.add("Transpose", repeated(k), perm=[0, 1, 3, 2]))
    ones = b.add("Expand", b.scalar(1), b.add("Concat", length, length, axis=0))
    later = b.add("Equal", b.add("Trilu", ones, upper=0), b.scalar(0))
    hides = b.add("Where", later, b.scalar(-1e9), b.scalar(0))
    y = b.add("Softmax", b.add("Add", scores, hides), axis=-1)
    y = b.add("MatMul", y, repeated(v))
    y = view(b.add("Transpose", y, perm=[0, 2, 1, 3]), batch, length, 32)
    graph = b.done(b.add("Add", b.x, b.add("MatMul", y, b.weights(32, 32))))
    infer_types(graph)
    return graph


def test_views_of_computed_sizes_do_not_hide_attention() -> None:
    ops = [n.op for n in optimize(exported()).graph.nodes]
    assert ops.count("Attention") == 1 and ops.count("Gemm") == 4
    assert "MatMul" not in ops and "Softmax" not in ops


@pytest.mark.cpu
@pytest.mark.parametrize("shape", [(2, 5), (1, 1), (3, 17), (2, 0), (0, 5)])
def test_a_decoder_of_open_sizes_has_the_numbers_of_the_reference(shape, rng) -> None:
    graph = exported()
    x = rng.standard_normal((*shape, 32)).astype(np.float32)
    (y,) = Predictor(optimize(graph)).run({"x": x}).values()
    (wanted,) = Predictor(graph, "reference").run({"x": x}).values()
    assert y.shape == wanted.shape == x.shape
    np.testing.assert_allclose(y, wanted, atol=1e-5 * max(1, np.abs(wanted).max(initial=0)))


def test_heads_in_the_batch_are_seen(rng) -> None:
    """As nn.MultiheadAttention has them: (length, batch·heads, 8) between two views."""
    b = Builder(("batch", "length", 32))
    batch, length = (b.add("Shape", b.x, start=i, end=i + 1) for i in (0, 1))
    y = b.add("Transpose", b.x, perm=[1, 0, 2])
    both = b.add("Concat", length, b.add("Mul", batch, b.ints(4)), b.ints(8), axis=0)
    y = b.add("Transpose", b.add("Reshape", y, both, allowzero=1), perm=[1, 0, 2])
    four = b.add("Concat", batch, b.ints(4), length, b.ints(8), axis=0)
    graph = b.done(b.add("Relu", b.add("Reshape", y, four, allowzero=1)))
    infer_types(graph)
    made = optimize(graph)
    assert made.graph.outputs[0].shape == ("batch", 4, "length", 8)
    x = rng.standard_normal((3, 5, 32)).astype(np.float32)
    (y,) = Predictor(made).run({"x": x}).values()
    np.testing.assert_array_equal(y, np.maximum(x.reshape(3, 5, 4, 8).transpose(0, 2, 1, 3), 0))
