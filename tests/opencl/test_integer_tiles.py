"""Integer convolutions as GPUs get them, on any device: tiles, and matrix units in C."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from lite_engine.backends.opencl import integer_depthwise, integer_elementwise
from lite_engine.backends.opencl import integer_gpu_convolutions as gpu
from lite_engine.backends.opencl.cases.graphs import typed
from lite_engine.backends.opencl.cases.integers import conv, integers
from lite_engine.backends.opencl.device import Device
from lite_engine.backends.opencl.variants import DIRECT, INTEGERS, Tile, Variant
from lite_engine.ir import DType

from tests.opencl import tiny
from tests.opencl.tiny import check

pytestmark = [
    pytest.mark.opencl,
    pytest.mark.usefixtures("unoptimized"),
    pytest.mark.filterwarnings("error::lite_engine.errors.LiteWarning"),  # no other way instead
]

#: Cheap to run; sizes below, at and above it stand for those around every tile.
SMALL = Tile(16, 16, 4, 4, 4)
U8, I8 = DType.U8, DType.I8


@pytest.fixture
def forced(monkeypatch):
    """Makes every convolution take one variant."""

    def force(variant: Variant) -> None:
        monkeypatch.setattr(gpu, "ranked", lambda *_: (variant,))

    return force


# Depth in words and not, both signs of both operands, residuals, split depth, strides, dilations.
@pytest.mark.parametrize("parts", [1, 3])
def test_small_tile(forced, parts: int) -> None:
    forced(Variant(SMALL, parts))
    for graph in (
        conv((1, 12, 5, 5), 20, 3), conv((1, 12, 4, 4), 16, 3, dtype=I8, weights=U8),
        conv((1, 3, 5, 4), 15, 3, weights=U8), conv((2, 20, 3, 5), 17, 1, dtype=I8),
        conv((2, 8, 9, 7), 8, 3, strides=[2, 1], dilations=[2, 1], weights=U8),
        conv((1, 16, 5, 5), 16, 3, added=1, dtype=I8), conv((1, 16, 5, 5), 16, 1, added=2),
    ):  # fmt: skip
        check(graph, tiles=True, tolerance=0)


@pytest.mark.parametrize("kernel", ["i8_gemm", "i8_conv2d_depthwise", "i8_softmax", "i8_pool"])
def test_other_layers_of_gpus(kernel: str) -> None:
    for graph in integers()[kernel]:
        check(graph, tiles=True, tolerance=0)


def test_larger_items(monkeypatch) -> None:
    """What a work-item makes where a layer has enough for all units."""
    monkeypatch.setattr(integer_depthwise, "DEPTHWISE_ITEMS", 0)
    monkeypatch.setattr(integer_elementwise, "DEPTHWISE_ITEMS", 0)
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    for graph in (
        conv((2, 8, 7, 9), 8, 3, 8), conv((1, 8, 9, 7), 8, 3, 8, strides=[2, 2], dtype=I8),
        typed("MaxPool", I8, (2, 32, 7, 5), **window),
    ):  # fmt: skip
        check(graph, tiles=True, tolerance=0)


@pytest.mark.parametrize("dtype, low, high, zero", [
    ("u1", 0, 255, 128), ("u1", 20, 200, 90), ("i1", -128, 127, 0), ("i1", -60, 60, 5),
    ("u1", 0, 255, 3), ("i1", -128, 127, 1),
])  # fmt: skip
def test_weights_less_their_zero_points(dtype: str, low: int, high: int, zero: int) -> None:
    """As bytes where those hold them."""
    weight = np.linspace(low, high, 36).astype(dtype).reshape(4, 1, 9)
    exact = weight.astype(int) - zero
    found = integer_depthwise.centred(weight, np.full(4, zero))
    assert (found is None) == (exact.min() < -128 or exact.max() > 127)
    assert found is None or (found.dtype is I8 and np.array_equal(found.value, exact))


def test_way_that_needs_nothing_special(forced) -> None:
    forced(DIRECT)
    check(conv((1, 12, 5, 5), 20, 3), tiles=True, tolerance=0)


@pytest.mark.slow
@pytest.mark.parametrize("tile", gpu.TILES, ids=str)
def test_every_tile(forced, tile: Tile) -> None:
    """Two groups of pixels, two steps of depth."""
    forced(Variant(tile))
    graph = conv((1, tile.bk * 4 + 4, 1, tile.bm + 3), tile.bn - 4, 1)
    check(graph, tiles=True, tolerance=0)


# One group of outputs and several, one step and more, split depth, units of 1, 8 and 16 bytes. Each
# with weights of one sign; `hours` has both.
ON_MATRIX_UNITS = (
    (64, 1, 1, 5), (40, 1, 2, 6), (16, 3, 1, 6), (8, 3, 2, 5), (3, 7, 1, 5), (6, 5, 2, 6),
)  # fmt: skip


@pytest.mark.parametrize(
    "weights, channels, kernel, parts, tile",
    [
        pytest.param(weights, *case, marks=[] if (i + j) % 2 else [pytest.mark.hours])
        for i, case in enumerate(ON_MATRIX_UNITS)
        for j, weights in enumerate((I8, U8))
    ],
)
def test_matrix_units_without_them(
    forced, monkeypatch, weights: DType, channels: int, kernel: int, parts: int, tile: int
) -> None:
    """Everything but the instruction itself."""
    forced(Variant(INTEGERS.tiles_of(4)[tile], parts, matrix=4))
    build = Device.program
    monkeypatch.setattr(
        Device, "program", lambda self, file, text: build(self, file, f"#define MMA_IN_C\n{text}")
    )
    for dtype, added in ((U8, 0), (I8, 1)):
        if channels % 2 and added:
            continue  # they take an even number of outputs
        outputs = channels if added else 40
        graph = conv(
            (1, channels, 5, 7), outputs, kernel, dtype=dtype, weights=weights, added=added
        )
        check(graph, tiles=True, tolerance=0)


def test_a_dot_product_is_tried_before_it_is_used(monkeypatch) -> None:
    """This device has none of the extensions; one that a driver lists but does not build is left
    out."""
    from lite_engine.backends.opencl import dot_products

    own = tiny.device()
    monkeypatch.setattr(dot_products, "WAYS", {"qcom": "Portable", "arm": "nowhere"})
    assert dot_products.found(own.cl, own.context, own.queue, ()) == ""
    assert dataclasses.replace(own.profile, dot="khr").integer_dot
    assert not np.any([own.profile.integer_dot])
