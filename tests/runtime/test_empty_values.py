"""Values without elements: a batch of no samples, a text of no tokens, a picture of no columns."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.ops import infer_types

from tests.small_models import Builder

BACKENDS = [
    pytest.param("x86", marks=pytest.mark.cpu),
    pytest.param("opencl", marks=pytest.mark.opencl),
]


def _pooled(b: Builder):
    return b.add("MaxPool", b.x, kernel_shape=[1, 1], strides=[2, 1])


def _convolved(b: Builder):
    return b.add("Conv", b.x, b.weights(5, 4, 3, 3), pads=[1, 1, 1, 1])


def _attended(b: Builder):
    return b.add("Attention", b.x, b.x, b.x, scale=0.5)


def _resized(b: Builder):
    scales = b.graph.constant(np.array([1, 1, 2, 2], np.float32))
    return b.add("Resize", b.x, None, scales, mode="nearest")


def _expanded(b: Builder):
    return b.add("Expand", b.weights(1, 4, 1, 1), b.add("Shape", b.x))


def _plain(op: str, **attrs):
    return lambda b: b.add(op, b.x, **attrs)


NO_SAMPLES, NO_ROWS, NO_COLUMNS = (0, 4, 6, 6), (1, 4, 0, 6), (2, 4, 6, 0)
#: Operators whose windows need a row or column have those of no samples alone.
CASES = [(make, NO_SAMPLES) for make in (_convolved, _pooled)] + [
    (make, shape)
    for shape in (NO_SAMPLES, NO_ROWS, NO_COLUMNS)
    for make in (
        _attended, _expanded, _resized, _plain("Relu"), _plain("Softmax", axis=-1),
        _plain("LogSoftmax", axis=1), _plain("LpNormalization"),
        _plain("Transpose", perm=[0, 2, 3, 1]), _plain("DepthToSpace", blocksize=2),
    )
]  # fmt: skip


def _same(make, shape, backend: str) -> None:
    b = Builder(("n", 4, "h", "w"))
    graph = b.done(make(b))
    infer_types(graph)
    x = np.zeros(shape, np.float32)
    (wanted,) = Predictor(graph, "reference").run({"x": x}).values()
    for threads in (1, 2):
        (y,) = Predictor(graph, backend, threads=threads).run({"x": x}).values()
        np.testing.assert_array_equal(y, wanted, strict=True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("make", "shape"), CASES)
def test_nothing_is_computed(make, shape, backend) -> None:
    _same(make, shape, backend)


def _product(b: Builder):
    return b.add("MatMul", b.add("Transpose", b.x, perm=[0, 1, 3, 2]), b.x)


def _joined(b: Builder):
    return b.add("Concat", b.x, b.weights(2, 4, 3, 6), axis=2)


def _padded(b: Builder):
    return b.add("Pad", b.x, b.ints(0, 0, 1, 1, 0, 0, 1, 0))


def _summed(b: Builder):
    return b.add("ReduceSum", b.x, b.ints(2), keepdims=1)


def _of_no_keys(b: Builder):
    return b.add("Attention", b.weights(2, 4, 3, 6), b.x, b.x, scale=0.5)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value encountered")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "make", [_joined, _of_no_keys, _padded, _plain("GlobalAveragePool"), _product, _summed]
)
def test_what_is_made_of_nothing(make, backend) -> None:
    """Sums of no products are zeros, means of no pixels are no numbers."""
    _same(make, (2, 4, 0, 6), backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sizes", [(2, 4, 0), (0, 6), (6, 0, 0)])
def test_a_part_without_elements(sizes, backend) -> None:
    """Behind a row's last number, too: no part shares its memory."""
    b = Builder((2, 6), "parts")
    node = b.graph.add(
        "Split", [b.add("Relu", b.x), b.ints(*sizes)], {"axis": 1}, outputs=len(sizes)
    )
    graph = b.done(*(b.add("Neg", part) for part in node.outputs))
    x = np.arange(-6, 6, dtype=np.float32).reshape(2, 6)
    wanted = Predictor(graph, "reference").run({"x": x})
    made = Predictor(graph, backend).run({"x": x})
    for name, y in wanted.items():
        np.testing.assert_array_equal(made[name], y, strict=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_axis_without_elements_trades_places_with_one_of_size_1(backend) -> None:
    """No Reshape does that: a size of 0 there is the one at the same place of its input."""
    b = Builder((8, 6), "moved")
    none = b.add("Slice", b.x, b.ints(3), b.ints(3), b.ints(0))
    one = b.add("Slice", none, b.ints(2), b.ints(3), b.ints(1))
    moved = b.add("Transpose", b.add("Relu", one), perm=[1, 0])
    both = b.add("Concat", b.add("Neg", moved), b.weights(1, 2), axis=1)
    graph = b.done(moved, b.add("Transpose", b.add("Exp", both), perm=[1, 0]))
    infer_types(graph)
    x = np.ones((8, 6), np.float32)
    empty, full = Predictor(graph, backend).run({"x": x}).values()
    assert empty.shape == (1, 0)
    weights = next(v for v in both.producer.inputs if v.const is not None).const
    np.testing.assert_allclose(full, np.exp(weights).T, 1e-6)
