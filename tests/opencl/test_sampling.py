"""Reading at computed places on the device, beyond what the operators' samples have."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.opencl.cases.graphs import single
from lite_engine.ir import DType, Graph, Value
from lite_engine.runtime import host_target

from tests.opencl.tiny import check

pytestmark = [pytest.mark.opencl, pytest.mark.usefixtures("unoptimized")]

MODES = list(
    itertools.product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"), (0, 1))
)


def grid(images: int, *size: int, reach: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.uniform(-reach, reach, (images, *size, 2)).astype(np.float32)


# Near the image and far beyond it; an image of one row, where mirrors coincide.
@pytest.mark.parametrize("mode, padding, corners", MODES)
@pytest.mark.parametrize("tiles", [False, True])
def test_an_image_at_positions(mode: str, padding: str, corners: int, tiles: bool) -> None:
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
    for shape, reach in (((2, 3, 5, 7), 1.2), ((1, 2, 1, 9), 7.0)):
        check(single("GridSample", shape, grid(shape[0], 4, 5, reach=reach), **attrs), tiles=tiles)


def test_positions_stay_floats_in_fp16() -> None:
    """A ramp read a quarter of a pixel apart: halves would place neighbours at the same pixel."""
    width = 2000
    graph = Graph("ramp")
    x, at = Value("x", DType.F32, (1, 1, 1, width)), Value("at", DType.F32, (1, 1, 8, 2))
    graph.inputs = [x, at]
    graph.outputs = [graph.add("GridSample", [x, at], {"align_corners": 1}).output]
    pixels = np.arange(width, dtype=np.float32).reshape(1, 1, 1, width) - (width - 8)
    wanted = np.arange(8) / 4
    places = (wanted + width - 8) / (width - 1) * 2 - 1
    positions = np.stack([places, np.full(8, -1)], -1).astype(np.float32).reshape(1, 1, 8, 2)
    predictor = Predictor(graph, "opencl", precision="fp16")
    (found,) = predictor.run({"x": pixels, "at": positions}).values()
    assert "grid_sample" in {s.kernel for s in predictor.plan().steps}
    # A float32 position is a few 1e-4 pixels off, and the pixels are exact as halves.
    np.testing.assert_allclose(found.ravel(), wanted, atol=1e-3)


def test_positions_that_are_no_numbers_read_nothing_else() -> None:
    """They count as far outside: zeros, or the nearest pixel, never memory beyond the image."""
    graph = Graph("lost")
    x, at = Value("x", DType.F32, (1, 1, 2, 2)), Value("at", DType.F32, (1, 1, 4, 2))
    graph.inputs = [x, at]
    graph.outputs = [
        graph.add("GridSample", [x, at], {"padding_mode": padding}).output
        for padding in ("border", "zeros")
    ]
    pixels = np.array([[1, 2], [3, 4]], np.float32).reshape(1, 1, 2, 2)
    places = np.array([[np.nan, 0.5], [np.inf, -0.5], [-1e30, 1e30], [0, 0]], np.float32)
    feeds = {"x": pixels, "at": places.reshape(1, 1, 4, 2)}
    found = [
        list(Predictor(graph, where).run(feeds).values()) for where in ("opencl", host_target())
    ]
    for device, host in zip(*found, strict=True):
        np.testing.assert_array_equal(device, host)
    np.testing.assert_array_equal(found[0][0].ravel(), [3, 2, 3, 2.5])
    np.testing.assert_array_equal(found[0][1].ravel(), [0, 0, 0, 2.5])


@pytest.mark.parametrize("dtype", [DType.F32, DType.I64, DType.U8])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_elements_along_an_axis(dtype: DType, kind: type) -> None:
    """Negative places count from the end, those outside hold 0; other axes may be shorter."""
    for axis, shape in ((0, (2, 4, 5)), (1, (3, 7, 2)), (-1, (3, 4, 1))):
        graph = Graph("elements")
        x, at = Value("x", dtype, (3, 4, 5)), Value("at", DType.of(np.empty(0, kind)), shape)
        graph.inputs = [x, at]
        graph.outputs = [graph.add("GatherElements", [x, at], {"axis": axis}).output]
        predictor = Predictor(graph, "opencl")
        assert {s.backend for s in predictor.plan().steps} == {"opencl"}
        numbers = np.arange(1, 61).reshape(3, 4, 5).astype(dtype.np)
        places = np.random.default_rng(4).integers(-6, 7, shape).astype(kind)
        (found,) = predictor.run({"x": numbers, "at": places}).values()
        size = numbers.shape[axis]
        inside = (places >= -size) & (places < size)
        window = tuple(slice(None) if i == axis % 3 else slice(d) for i, d in enumerate(shape))
        wanted = np.take_along_axis(numbers[window], np.where(inside, places, 0) % size, axis)
        np.testing.assert_array_equal(found, np.where(inside, wanted, 0))
