"""TFLite: the reader, tiny models against plain NumPy, and files that lie."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError

from tests.importers.golden_runs import run_graph
from tests.importers.tiny_tflite import TinyModel, conv_model, detection_model
from tests.importers.wire import Num, Table


def run(graph, *arrays):
    outputs = run_graph(graph, dict(zip([v.name for v in graph.inputs], arrays)))
    return list(outputs.values())


def naive_conv(x: np.ndarray, w: np.ndarray, b: np.ndarray, stride: int) -> np.ndarray:
    """SAME convolution of x (1,H,W,C) by w (O,kh,kw,C), element by element."""
    out, kernel = -(-x.shape[1] // stride), w.shape[1]
    total = max(0, (out - 1) * stride + kernel - x.shape[1])
    padded = np.pad(x[0], [(total // 2, total - total // 2)] * 2 + [(0, 0)])
    y = np.empty((1, out, out, w.shape[0]))
    for i, j, o in np.ndindex(y.shape[1:]):
        window = padded[i * stride : i * stride + kernel, j * stride : j * stride + kernel]
        y[0, i, j, o] = (window * w[o]).sum() + b[o]
    return y


# ---- models


def test_convolution(tflite_imported):
    graph = tflite_imported(conv_model())
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 5, 5, 2)).astype(np.float32)
    w = np.random.default_rng(0).standard_normal((3, 3, 3, 2)).astype(np.float32)
    (y,) = run(graph, x)
    np.testing.assert_allclose(y, np.clip(naive_conv(x, w, [1, 2, 3], 2), 0, 6), atol=1e-5)
    assert graph.inputs[0].name == "x" and graph.outputs[0].name == "y"
    assert graph.inputs[0].shape == (1, 5, 5, 2)  # an open batch keeps the file's size
    assert graph.metadata["format"] == "tflite"
    assert all(n.sources == ("y",) for n in graph.nodes)


def test_quantised_convolution_is_qdq(tflite_imported):
    graph = tflite_imported(conv_model(quantised=True))
    (conv,) = [n for n in graph.nodes if n.op == "Conv"]
    weight = conv.inputs[1].producer
    assert weight.op == "DequantizeLinear" and weight.inputs[0].const.dtype == np.int8
    assert weight.inputs[0].shape == (3, 2, 3, 3) and weight.attrs["axis"] == 0
    assert conv.inputs[2].producer.inputs[0].const.dtype == np.int32
    assert int(graph.inputs[0].quant.zero_point) == -3
    assert "quantized_dimension" in graph.metadata["warnings"][0]  # the bias names axis 3
    rng = np.random.default_rng(2)
    x = rng.integers(-128, 128, (1, 5, 5, 2)).astype(np.int8)
    w = np.random.default_rng(0).integers(-100, 100, (3, 3, 3, 2)).astype(np.float64)
    real = naive_conv((x + 3.0) * 0.05, w * np.array([0.01, 0.02, 0.03]).reshape(3, 1, 1, 1),
                      np.array([100, -50, 20]) * np.array([1, 2, 3]) * 0.0005, 2)  # fmt: skip
    wanted = np.clip(np.rint(np.clip(real, 0, 6) / 0.0235) - 128, -128, 127)
    (y,) = run(graph, x)
    assert y.dtype == np.int8 and np.abs(y - wanted).max() <= 1


def test_half_precision_weights_are_widened(tflite_imported):
    m = TinyModel()
    x = m.tensor("x", "float32", (1, 4))
    half = m.tensor("half", "float16", (3, 4), np.arange(12).reshape(3, 4) / 8)
    w = m.tensor("w", "float32", (3, 4))
    y = m.tensor("y", "float32", (1, 3))
    m.op(6, [half], [w])
    m.op(9, [x, w, -1], [y])
    graph = tflite_imported(m.bytes([x], [y]))
    assert [n.op for n in graph.nodes] == ["Gemm"]
    (found,) = run(graph, np.ones((1, 4), np.float32))
    np.testing.assert_allclose(found, (np.arange(12).reshape(3, 4) / 8).sum(1)[None])


def test_dynamic_range_weights_stay_integers(tflite_imported):
    m = TinyModel()
    x = m.tensor("x", "float32", (1, 4))
    w = m.tensor("w", "int8", (3, 4), np.arange(12).reshape(3, 4), scale=0.5)
    y = m.tensor("y", "float32", (1, 3))
    m.op(9, [x, w], [y])
    graph = tflite_imported(m.bytes([x], [y]))
    assert [n.op for n in graph.nodes] == ["DequantizeLinear", "Gemm"]
    (found,) = run(graph, np.ones((1, 4), np.float32))
    np.testing.assert_allclose(found, np.arange(12).reshape(3, 4).sum(1)[None] * 0.5)


def test_moving_integers_needs_no_dequantisation(tflite_imported):
    m = TinyModel()
    x = m.tensor("x", "uint8", (1, 2, 2, 1), scale=0.1, zero=7)
    pads = m.tensor("pads", "int32", (4, 2), [[0, 0], [1, 0], [0, 1], [0, 0]])
    y = m.tensor("y", "uint8", (1, 3, 3, 1), scale=0.1, zero=7)
    m.op(34, [x, pads], [y])
    graph = tflite_imported(m.bytes([x], [y]))
    assert [n.op for n in graph.nodes] == ["Pad"]
    (found,) = run(graph, np.arange(4, dtype=np.uint8).reshape(1, 2, 2, 1))
    assert found[0, :, :, 0].tolist() == [[7, 7, 7], [0, 1, 7], [2, 3, 7]]


def test_different_scales_are_requantised(tflite_imported):
    m = TinyModel()
    a = m.tensor("a", "int8", (1, 2), scale=0.5, zero=0)
    b = m.tensor("b", "int8", (1, 2), scale=1.0, zero=10)
    y = m.tensor("y", "int8", (1, 4), scale=1.0, zero=0)
    m.op(2, [a, b], [y], Table(_0=Num("i", 1)))
    graph = tflite_imported(m.bytes([a, b], [y]))
    (found,) = run(graph, np.array([[4, 8]], np.int8), np.array([[12, 9]], np.int8))
    assert found.tolist() == [[2, 4, 2, -1]]


def test_input_that_is_also_an_output(tflite_imported):
    m = TinyModel()
    x = m.tensor("x", "float32", (2,))
    y = m.tensor("y", "float32", (2,))
    m.op(19, [x], [y])
    graph = tflite_imported(m.bytes([x], [y, x]))
    relu, same = run(graph, np.array([-1, 2], np.float32))
    assert relu.tolist() == [0, 2] and same.tolist() == [-1, 2]


# ---- control flow and recurrent layers


def loop_model() -> bytes:
    """while i < 5: x = x + x[i]"""
    m = TinyModel()
    start = m.tensor("start", "int32", (), 0)
    n = m.tensor("n", "int32", (), 5)
    x = m.tensor("x", "float32", (5,))
    outs = [m.tensor(f"o{i}", t, s) for i, (t, s) in enumerate([("int32", ()), ("int32", ()),
                                                              ("float32", (5,))])]  # fmt: skip
    m.op(119, [start, n, x], outs, Table(_0=Num("i", 1), _1=Num("i", 2)))
    m.subgraph([x], [outs[2]])
    i, n, x = m.tensor("i", "int32", ()), m.tensor("n", "int32", ()), m.tensor("x", "float32", (5,))
    go = m.tensor("go", "bool", ())
    m.op(58, [i, n], [go])
    m.subgraph([i, n, x], [go])
    i, n, x = m.tensor("i", "int32", ()), m.tensor("n", "int32", ()), m.tensor("x", "float32", (5,))
    one = m.tensor("one", "int32", (), 1)
    after, item = m.tensor("after", "int32", ()), m.tensor("item", "float32", ())
    total = m.tensor("total", "float32", (5,))
    m.op(0, [i, one], [after])
    m.op(36, [x, i], [item])
    m.op(0, [x, item], [total])
    m.subgraph([i, n, x], [after, n, total])
    return m.file()


def test_loop_of_fixed_length_is_unrolled(tflite_imported):
    graph = tflite_imported(loop_model())
    assert [n.op for n in graph.nodes] == ["Gather", "Add"] * 5
    x = np.arange(5, dtype=np.float32)
    wanted = x.copy()
    for i in range(5):
        wanted = wanted + wanted[i]
    assert run(graph, x)[0].tolist() == wanted.tolist()
    assert "warnings" not in graph.metadata


@pytest.mark.parametrize("nested", [False, True])
def test_endless_loops(tflite_imported, nested):
    """A body that changes nothing, and a body that holds the loop itself."""
    again = Table(_0=Num("i", 1), _1=Num("i", 2))
    m = TinyModel()
    go, out = m.tensor("go", "bool", (), True), m.tensor("out", "bool", ())
    m.op(119, [go], [out], again)
    m.subgraph([], [out])
    flag = m.tensor("flag", "bool", ())
    m.subgraph([flag], [flag])
    flag, out = m.tensor("flag", "bool", ()), m.tensor("out", "bool", ())
    if nested:
        m.op(119, [flag], [out], again)
    m.subgraph([flag], [out if nested else flag])
    with pytest.raises(ModelFormatError):
        tflite_imported(m.file())


@pytest.mark.parametrize("time_major", [False, True])
def test_fused_lstm(tflite_imported, time_major):
    rng = np.random.default_rng(4)
    steps, size, hidden = 4, 3, 2
    m = TinyModel()
    shape = (steps, 1, size) if time_major else (1, steps, size)
    x = m.tensor("x", "float32", shape)
    weights = [rng.standard_normal((hidden, size)) for _ in range(4)]
    recurrent = [rng.standard_normal((hidden, hidden)) for _ in range(4)]
    biases = [rng.standard_normal(hidden) for _ in range(4)]
    w, r = ([m.tensor(f"{n}{i}", "float32", a.shape, a) for i, a in enumerate(arrays)]
            for n, arrays in (("w", weights), ("r", recurrent)))  # fmt: skip
    b = [m.tensor(f"b{i}", "float32", (hidden,), a) for i, a in enumerate(biases)]
    h, c = m.tensor("h", "float32", (1, hidden)), m.tensor("c", "float32", (1, hidden))
    y = m.tensor("y", "float32", (*shape[:2], hidden))
    m.op(44, [x, *w, *r, -1, -1, -1, *b, -1, -1, h, c], [y],
         Table(_0=Num("b", 4), _3=Num("?", time_major)))  # fmt: skip
    graph = tflite_imported(m.bytes([x], [y]))
    given = rng.standard_normal((steps, size)).astype(np.float32)
    (found,) = run(graph, given.reshape(shape))
    out, cell = np.zeros(hidden), np.zeros(hidden)
    for t in range(steps):
        gates = [weights[g] @ given[t] + recurrent[g] @ out + biases[g] for g in range(4)]
        i, f, o = (1 / (1 + np.exp(-gates[g])) for g in (0, 1, 3))
        cell = f * cell + i * np.tanh(gates[2])
        out = o * np.tanh(cell)
        np.testing.assert_allclose(found.reshape(steps, hidden)[t], out, atol=1e-5)


# ---- custom operators


def test_convolution_2d_transpose_bias(tflite_imported):
    m = TinyModel()
    x = m.tensor("x", "float32", (1, 2, 2, 1))
    w = m.tensor("w", "float32", (1, 2, 2, 1), np.array([1, 2, 3, 4]).reshape(1, 2, 2, 1))
    b = m.tensor("b", "float32", (1,), [10])
    y = m.tensor("y", "float32", (1, 4, 4, 1))
    m.op("Convolution2DTransposeBias", [x, w, b], [y], custom=struct.pack("<3i", 1, 2, 2))
    graph = tflite_imported(m.bytes([x], [y]))
    (found,) = run(graph, np.array([1, 2, 3, 4], np.float32).reshape(1, 2, 2, 1))
    wanted = np.kron([[1, 2], [3, 4]], [[1, 2], [3, 4]]) + 10
    np.testing.assert_allclose(found[0, :, :, 0], wanted)


def test_pooling_with_positions_and_back(tflite_imported):
    options = struct.pack("<6i", 2, 2, 2, 2, 2, 0)
    m = TinyModel()
    x = m.tensor("x", "float32", (1, 4, 4, 1))
    p = m.tensor("p", "float32", (1, 2, 2, 1))
    at = m.tensor("at", "float32", (1, 2, 2, 1))
    y = m.tensor("y", "float32", (1, 4, 4, 1))
    m.op("MaxPoolingWithArgmax2D", [x], [p, at], custom=options)
    m.op("MaxUnpooling2D", [p, at], [y], custom=options)
    graph = tflite_imported(m.bytes([x], [p, at, y]))
    image = np.array([[1, 5, 0, 0], [2, 3, 0, 9], [8, 0, 1, 1], [0, 0, 1, 2]], np.float32)
    pooled, positions, unpooled = run(graph, image.reshape(1, 4, 4, 1))
    assert pooled.ravel().tolist() == [5, 9, 8, 2]
    assert positions.ravel().tolist() == [1, 3, 0, 3]
    wanted = np.where(np.isin(np.arange(16).reshape(4, 4), [1, 7, 8, 15]), image, 0)
    assert unpooled[0, :, :, 0].tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("regular", "classes", "scores"),
    [(False, [1, 0, 0], [0.9, 0.7, 0]), (True, [1, 0, 0], [0.9, 0.7, 0.6])],
)
def test_detection_post_process(tflite_imported, regular, classes, scores):
    """Anchors 0 and 1 overlap: fast suppression drops 1 whole, the regular one per class."""
    graph = tflite_imported(detection_model(regular))
    given = np.zeros((1, 4, 3), np.float32)
    given[0, 0] = [0, 0.2, 0.9]
    given[0, 1] = [0, 0.6, 0.3]
    given[0, 2] = [0, 0.7, 0.05]
    boxes, found, best, count = run(graph, np.zeros((1, 4, 4), np.float32), given)
    assert found[0].tolist() == classes
    np.testing.assert_allclose(best[0], scores)
    np.testing.assert_allclose(boxes[0, :2], [[0, 0, 1, 1], [1.5, 1.5, 2.5, 2.5]], atol=1e-6)
    assert count.tolist() == [2 + regular]
