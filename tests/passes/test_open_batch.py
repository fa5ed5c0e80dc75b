"""Networks whose number of samples is open are rewritten as those of a fixed number are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import Graph, Value
from lite_engine.ops import infer_types

from tests.small_models import Builder

L, C, H = 16, 32, 2  # tokens of a sample, numbers of a token, heads


def turned(b: Builder, x: Value, count: int) -> Value:
    """(…, count, L, C / H) transposed, as torch.export turns keys around."""
    y = b.add("Transpose", b.add("Reshape", x, b.ints(-1, L, C // H)), perm=[0, 2, 1])
    return b.add("Reshape", y, b.ints(-1, count, C // H, L))


def block(b: Builder, bias: bool = False) -> Value:
    """Attention over heads whose three parts one product made, a projection, and x beside it."""
    y = b.add("MatMul", b.x, b.weights(C, 3 * C))
    y = b.add("Reshape", y, b.ints(-1, L, 3, H, C // H))
    q, k, v = (
        b.add("Transpose", b.add("Gather", y, b.scalar_int(i), axis=2), perm=[0, 2, 1, 3])
        for i in range(3)
    )
    scores = b.add("Mul", b.add("MatMul", q, turned(b, k, H)), b.scalar(0.25))
    if bias:
        scores = b.add("Add", scores, b.weights(1, H, L, L))
    y = b.add("MatMul", b.add("Softmax", scores, axis=-1), v)
    y = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), b.ints(-1, L, C))
    return b.add("Add", b.x, b.add("MatMul", y, b.weights(C, C)))


def biased_block(b: Builder) -> Value:
    return block(b, bias=True)


def shared_keys(b: Builder) -> Value:
    """Four heads of queries share two of keys and values."""

    def heads(count: int) -> Value:
        y = b.add("MatMul", b.x, b.weights(C, count * 8))
        return b.add("Transpose", b.add("Reshape", y, b.ints(-1, L, count, 8)), perm=[0, 2, 1, 3])

    def repeated(x: Value) -> Value:
        x = b.add("Expand", b.add("Unsqueeze", x, b.ints(2)), b.ints(1, 1, 2, 1, 1))
        return b.add("Reshape", x, b.ints(-1, 4, L, 8))

    q, k, v = heads(4), repeated(heads(2)), repeated(heads(2))
    scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2]))
    y = b.add("MatMul", b.add("Softmax", scores, axis=-1), v)
    return b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), b.ints(-1, L, C))


def shifted_windows(b: Builder) -> Value:
    """4x4 tokens moved by one in each direction, in windows of 2x2, through a product, and back."""

    def moved(x: Value, by: int) -> Value:
        for axis in (1, 2):
            parts = [
                b.add("Slice", x, b.ints(i), b.ints(j), b.ints(axis))
                for i, j in ((by, 2**40), (0, by))
            ]
            x = b.add("Concat", *parts, axis=axis)
        return x

    x = moved(b.add("Relu", b.add("Reshape", b.x, b.ints(-1, 4, 4, C))), 1)
    x = b.add("Transpose", b.add("Reshape", x, b.ints(-1, 2, 2, 2, 2, C)), perm=[0, 1, 3, 2, 4, 5])
    x = b.add("Relu", b.add("MatMul", b.add("Reshape", x, b.ints(-1, 4, C)), b.weights(C, C)))
    x = b.add("Transpose", b.add("Reshape", x, b.ints(-1, 2, 2, 2, 2, C)), perm=[0, 1, 3, 2, 4, 5])
    return b.add("Relu", moved(b.add("Reshape", x, b.ints(-1, 4, 4, C)), -1))


def repeated_table(b: Builder) -> Value:
    """Positions, once for each sample, before attention."""
    samples = b.add("Shape", b.x, start=0, end=1)
    table = b.add("Tile", b.weights(1, L, C), b.add("Concat", samples, b.ints(1, 1), axis=0))
    b.x = b.add("Add", b.add("Relu", b.x), table)
    return block(b)


FORMS = (biased_block, block, repeated_table, shared_keys, shifted_windows)


def built(form: Callable[[Builder], Value], samples: int | str) -> Graph:
    b = Builder((samples, L, C))
    graph = b.done(form(b))
    infer_types(graph)
    return graph


@pytest.mark.parametrize("form", FORMS)
def test_the_layers_are_those_of_a_fixed_number(form) -> None:
    found = [
        Counter(n.op for n in optimize(built(form, samples)).graph.nodes) for samples in ("n", 3)
    ]
    for ops in found:  # which views lie between them is another question
        for view in ("Concat", "Expand", "Identity", "Reshape", "Shape", "Tile", "Unsqueeze"):
            ops.pop(view, None)
    assert found[0] == found[1]
    if form is not shifted_windows:
        assert found[0]["Attention"] == 1 and not found[0]["MatMul"] and not found[0]["Softmax"]
    else:
        assert found[0]["Gather"] == 2 and not found[0]["Slice"]


@pytest.mark.cpu
@pytest.mark.parametrize("form", FORMS)
def test_each_number_of_samples_has_the_answers_of_the_reference(form, rng) -> None:
    graph = built(form, "n")
    fused, plain = Predictor(optimize(graph)), Predictor(graph, "reference")
    for samples in (1, 3, 2, 7, 0):
        feeds = {"x": rng.standard_normal((samples, L, C)).astype(np.float32)}
        (y,), (wanted,) = fused.run(feeds).values(), plain.run(feeds).values()
        assert y.shape == wanted.shape
        np.testing.assert_allclose(y, wanted, atol=1e-5 * max(1, np.abs(wanted).max(initial=0)))


def biased(samples: int | str, length: int | str, bias: tuple[int, ...]) -> Graph:
    b = Builder((samples, length, C))
    q, k, v = (
        b.add(
            "Transpose",
            b.add("Reshape", b.add("MatMul", b.x, b.weights(C, C)), b.ints(0, 0, H, C // H)),
            perm=[0, 2, 1, 3],
        )
        for _ in range(3)
    )
    scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2]))
    y = b.add("Softmax", b.add("Add", scores, b.weights(*bias)), axis=-1)
    y = b.add("Transpose", b.add("MatMul", y, v), perm=[0, 2, 1, 3])
    graph = b.done(b.add("Reshape", y, b.ints(0, 0, C)))
    infer_types(graph)
    return graph


@pytest.mark.parametrize("opset", [None, 20, 23])
@pytest.mark.parametrize("bias", [(1, 1, 1, L), (H, 1, L), (H, L, L), (L,), (H, 1, 1)])
def test_attention_with_a_bias_is_written_for_onnxruntime(bias, opset, rng) -> None:
    """Its own Attention wants as many rows of a mask as there are queries."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    graph = biased("n", L, bias)
    made = optimize(graph).graph
    assert [n.op for n in made.nodes].count("Attention") == 1
    run = onnxruntime.InferenceSession(write_bytes(made, opset=opset)).run
    for samples in (1, 3):
        x = rng.standard_normal((samples, L, C)).astype(np.float32)
        (wanted,) = Predictor(graph, "reference").run({"x": x}).values()
        np.testing.assert_allclose(run(None, {"x": x})[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("shape", "bias"), [((0, L), (1, H, 1, 1)), ((0, L), (L,)), ((2, 0), (1, H, 1, 1))]
)
def test_fixed_sizes_of_zero_are_left_alone(shape, bias) -> None:
    graph = biased(*shape, bias)
    x = np.zeros((*shape, C), np.float32)
    (y,) = Predictor(optimize(graph)).run({"x": x}).values()
    assert y.shape == x.shape


@pytest.mark.cpu
@pytest.mark.parametrize("cut", [1, 4])
def test_parts_of_an_open_axis_are_no_samples(cut: int, rng) -> None:
    """Up to four rows, x[4:] before x[:4] is x."""
    b = Builder(("n", C))
    x = b.add("Relu", b.x)
    ends = ((cut, 2**40), (0, cut))
    parts = [b.add("Slice", x, b.ints(i), b.ints(j), b.ints(0)) for i, j in ends]
    graph = b.done(b.add("Concat", *parts, axis=0))
    infer_types(graph)
    made = Predictor(optimize(graph))
    for rows in (1, 3, 4, 9):
        x = rng.standard_normal((rows, C)).astype(np.float32)
        (y,) = made.run({"x": x}).values()
        np.testing.assert_array_equal(y, np.roll(np.maximum(x, 0), -cut if rows > cut else 0, 0))
