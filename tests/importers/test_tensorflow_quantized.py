"""TensorFlow's Dequantize: integers with a range become floats."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError, UnsupportedOperatorError

from tests.importers.tensorflow_runs import run
from tests.importers.tiny_tensorflow import const, node, placeholder, quantized_const

LOW, HIGH = -1.25, 3.0


def documented(x: np.ndarray, mode: str, narrow: bool = False) -> np.ndarray:
    """One integer after another, as the documentation of tf.quantization.dequantize has it; in
    MIN_FIRST the range begins at a multiple of the step, as TensorFlow's kernel has it."""
    least, most = int(np.iinfo(x.dtype).min), int(np.iinfo(x.dtype).max)
    out = []
    for value in x.ravel().tolist():
        if mode == "MIN_COMBINED":
            moved = value + ((most - least) + 1) / 2 if least < 0 else value
            out.append(LOW + moved * (HIGH - LOW) / (most - least))
        elif mode == "MIN_FIRST":
            steps = 1 << (8 * x.dtype.itemsize)
            step = (HIGH - LOW) * (steps / (steps - 1)) / steps
            out.append(round(LOW / step) * step + (value - least) * step)
        else:
            first = least + narrow
            out.append(value * (HIGH / most if least == 0 else max(LOW / first, HIGH / most)))
    return np.reshape(out, x.shape)


@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_constants_become_floats(tensorflow_imported, mode, dtype):
    info = np.iinfo(dtype)
    w = np.linspace(info.min, info.max, 12).astype(dtype).reshape(3, 4)
    graph = tensorflow_imported([
        placeholder("x", (2, 3)), quantized_const("w", w), const("lo", np.float32(LOW)),
        const("hi", np.float32([HIGH])), node("f", "Dequantize", "w", "lo", "hi", mode=mode),
        node("y", "MatMul", "x", "f"),
    ])  # fmt: skip
    assert [n.op for n in graph.nodes] == ["MatMul"]
    x = np.float32([[1, 0, 0], [0, 1, 2]])
    np.testing.assert_allclose(run(graph, x=x)["y"], x @ documented(w, mode), rtol=1e-5, atol=1e-6)


def test_computed_integers_and_a_narrow_range(tensorflow_imported):
    """SCALED over int8 without its least integer, from a value that is computed."""
    graph = tensorflow_imported([
        placeholder("x", (5,), np.uint8), const("lo", np.float32(LOW)),
        const("hi", np.float32(HIGH)), node("y", "Dequantize", "x", "lo", "hi"),
    ])  # fmt: skip
    x = np.uint8([0, 1, 127, 254, 255])
    np.testing.assert_allclose(run(graph, x=x)["y"], documented(x, "MIN_COMBINED"), rtol=1e-6)
    w = np.int8([-128, -127, 0, 127])
    graph = tensorflow_imported([
        placeholder("x", (4,)), quantized_const("w", w), const("lo", np.float32(LOW)),
        const("hi", np.float32(HIGH)),
        node("f", "Dequantize", "w", "lo", "hi", mode="SCALED", narrow_range=True),
        node("y", "AddV2", "x", "f"),
    ])  # fmt: skip
    found = run(graph, x=np.zeros(4, np.float32))["y"]
    np.testing.assert_allclose(found, documented(w, "SCALED", narrow=True), rtol=1e-6)


def test_a_range_for_each_slice(tensorflow_imported):
    w = np.arange(6, dtype=np.uint8).reshape(3, 2)
    graph = tensorflow_imported([
        placeholder("x", (3, 2)), quantized_const("w", w), const("lo", np.float32([0, 0])),
        const("hi", np.float32([255, 510])),
        node("f", "Dequantize", "w", "lo", "hi", mode="SCALED", axis=1),
        node("y", "AddV2", "x", "f"),
    ])  # fmt: skip
    found = run(graph, x=np.zeros((3, 2), np.float32))["y"]
    np.testing.assert_allclose(found, w * [1.0, 2.0])


@pytest.mark.parametrize(
    "nodes, kind, said",
    [
        ({"mode": "ELSE"}, UnsupportedOperatorError, "dequantization mode 'ELSE'"),
        ({"axis": 5}, ModelFormatError, "do not fit axis 5"),
        ({"low": np.float32([0, 1])}, ModelFormatError, "need an axis"),
        ({"values": np.float32([1, 2])}, ModelFormatError, "not integers"),
    ],
)
def test_what_is_refused(tensorflow_imported, nodes, kind, said):
    attrs = {k: v for k, v in nodes.items() if k in ("mode", "axis")}
    values = (
        const("w", nodes["values"]) if "values" in nodes else quantized_const("w", np.uint8([1]))
    )
    with pytest.raises(kind, match=said):
        tensorflow_imported([
            placeholder("x", (1,)), values, const("lo", nodes.get("low", np.float32(0))),
            const("hi", np.float32(1)), node("f", "Dequantize", "w", "lo", "hi", **attrs),
            node("y", "AddV2", "x", "f"),
        ])  # fmt: skip
