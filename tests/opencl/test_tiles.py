"""The kernels that GPUs get (tiles in local memory, split K, Winograd, few rows), on any device."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from lite_engine.backends.opencl import gpu_convolutions, problem
from lite_engine.backends.opencl.cases.graphs import Sketch, ints, pair, single
from lite_engine.backends.opencl.device import Device
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.backends.opencl.variants import (
    TILES,
    Product,
    Tile,
    Variant,
    estimate_s,
    matrix_tiles,
    variants,
)
from lite_engine.plan import make_plan

from tests.opencl.tiny import check, device
from tests.small_models import Builder

pytestmark = [pytest.mark.opencl, pytest.mark.usefixtures("unoptimized")]

#: Cheap to simulate; sizes below, at and above it stand for those around every tile.
SMALL = Tile(16, 16, 4, 4)
ITEMSIZE = {"fp32": 4, "fp16": 2}


def weights(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return (rng.standard_normal(shape) * np.prod(shape[1:]) ** -0.5).astype(np.float32)


def conv(shape, outputs: int, kernel: int, pad: int | None = None, **attrs):
    pad = kernel // 2 if pad is None else pad
    w = weights(outputs, shape[1], kernel, kernel)
    return single("Conv", shape, w, weights(outputs), pads=[pad] * 4, **attrs)


@pytest.fixture
def forced(monkeypatch):
    """Makes every convolution take one variant, groups of few channels, too."""
    monkeypatch.setattr(gpu_convolutions, "simple_s", lambda *_: float("inf"))

    def force(variant: Variant) -> None:
        monkeypatch.setattr(gpu_convolutions, "ranked", lambda *_: (variant,))

    return force


# One program serves all shapes of a variant: outputs and channels in fours or not, rows below, at
# and above the tile.
@pytest.mark.parametrize("side", [3, 4, 5])
@pytest.mark.parametrize("outputs", [4, 16, 20])
def test_tile_with_channels_in_fours(forced, side: int, outputs: int) -> None:
    forced(Variant(SMALL))
    check(conv((1, 12, side, side), outputs, 3, activation="Relu"), tiles=True)


@pytest.mark.parametrize("outputs", [15, 17])
@pytest.mark.parametrize("strides", [[1, 1], [2, 1]])
def test_tile_with_three_channels(forced, outputs: int, strides: list[int]) -> None:
    forced(Variant(SMALL))
    check(conv((2, 3, 5, 4), outputs, 3, strides=strides), tiles=True)


@pytest.mark.parametrize("channels", [16, 20, 64])
def test_pointwise_tile(forced, channels: int) -> None:
    forced(Variant(SMALL))
    check(conv((1, channels, 4, 5), 20, 1), tiles=True)


@pytest.mark.parametrize("outputs", [16, 14])
@pytest.mark.parametrize("parts", [2, 3, 8])
def test_split_depth(forced, outputs: int, parts: int) -> None:
    forced(Variant(SMALL, parts))
    check(conv((1, 20, 3, 7), outputs, 3), tiles=True)


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_every_tile(forced, tile: Tile) -> None:
    """Two groups of pixels, two steps of depth."""
    forced(Variant(tile))
    check(conv((1, tile.bk + 4, 1, tile.bm + 3), tile.bn - 4, 1), tiles=True)


@pytest.mark.parametrize("side", [(4, 4), (5, 9), (8, 3)])
@pytest.mark.parametrize("pad", [0, 1])
def test_winograd(forced, side: tuple[int, int], pad: int) -> None:
    forced(Variant(SMALL, winograd=True))
    check(conv((2, 16, *side), 20, 3, pad), tiles=True)


def test_winograd_in_fp16(forced) -> None:
    forced(Variant(SMALL, winograd=True))
    check(conv((1, 16, 6, 6), 16, 3), tiles=True, precision="fp16")


@pytest.mark.parametrize("outputs", [16, 14])
def test_tile_in_fp16(forced, outputs: int) -> None:
    forced(Variant(SMALL, 2))
    check(conv((1, 12, 3, 7), outputs, 3), tiles=True, precision="fp16")


def in_c(monkeypatch) -> None:
    """Matrix units' kernel with its sums in C: everything but the instruction itself."""
    build = Device.program
    monkeypatch.setattr(
        Device, "program", lambda self, file, text: build(self, file, f"#define MMA_IN_C\n{text}")
    )


# The narrow tile has two groups of outputs, the low ones two of pixels, others 64 or 16 pixels a
# warp; steps before, at and after the first that is fetched anew; half channels by eights and by
# fours.
@pytest.mark.parametrize(
    "precision, channels, kernel, parts, tile",
    [
        ("fp32", 36, 1, 1, 5),
        ("fp32", 16, 3, 2, 6),
        ("fp16", 12, 3, 1, 5),
        ("fp16", 16, 3, 2, 2),
        ("fp16", 16, 1, 1, 7),
        ("fp16", 40, 1, 2, 0),  # half lines
        ("fp32", 8, 11, 1, 7),
    ],
)
def test_matrix_units_without_them(
    forced, monkeypatch, precision, channels: int, kernel: int, parts: int, tile: int
) -> None:
    forced(Variant(matrix_tiles(ITEMSIZE[precision])[tile], parts, matrix=ITEMSIZE[precision]))
    in_c(monkeypatch)
    graph = conv((1, channels, 5, 7), 40, kernel, activation="Relu")
    check(graph, tiles=True, precision=precision)


@pytest.mark.parametrize("height", [5, 12])
def test_order_of_groups_on_matrix_units(forced, monkeypatch, height: int) -> None:
    """Two columns of tiles, and two rows or three: neighbours are of one column where there are
    fewer pixels than outputs, of one row otherwise."""
    forced(Variant(matrix_tiles(4)[7], matrix=4))
    in_c(monkeypatch)
    check(conv((1, 16, height, 7), 72, 1), tiles=True)


# Groups of channels in fours and eights or not, of a tile and more, with what is added to them.
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("matrix", [False, True], ids=["tile", "matrix units"])
@pytest.mark.parametrize("groups, channels, outputs", [(3, 8, 10), (2, 12, 40), (5, 4, 4)])
@pytest.mark.parametrize("kernel, beside", [(1, False), (3, True)])
def test_groups(
    forced, monkeypatch, precision, matrix, groups: int, channels: int, outputs: int, kernel, beside
) -> None:
    size = ITEMSIZE[precision]
    forced(Variant(matrix_tiles(size)[5], matrix=size) if matrix else Variant(SMALL))
    in_c(monkeypatch)
    count, b = groups * outputs, Sketch((2, groups * channels, 5, 4))
    more = [b.computed((2, count, 5, 4))] if beside else []
    w, bias = weights(count, channels, kernel, kernel), weights(count)
    pads = [kernel // 2] * 4
    y = b.layer("Conv", b.x, w, bias, *more, group=groups, pads=pads, activation="Relu")
    check(b.done(y), tiles=True, precision=precision)


@pytest.mark.parametrize("channels", [3, 6])
def test_groups_of_odd_channels(forced, channels: int) -> None:
    forced(Variant(SMALL))
    w = weights(3 * 5, channels, 3, 3)
    check(single("Conv", (1, 3 * channels, 6, 5), w, weights(15), group=3), tiles=True)


def test_few_channels_in_a_group_have_an_output_per_item() -> None:
    """A tile is 32 wide: three quarters and more of it would be zeros."""
    for outputs, first in ((4, "simple"), (64, "tile")):
        w = weights(32 * outputs, outputs, 3, 3)
        graph = single("Conv", (1, 32 * outputs, 28, 28), w, None, group=32)
        plan = make_plan(graph, "opencl")
        (step,) = (s for s in plan.steps if s.kernel == "conv2d_grouped")
        launches = launches_of(step, plan, Target(PROFILES["nvidia"]))
        assert launches[0].kernel == ("conv_grouped" if first == "simple" else "conv_tile")


def test_winograd_on_matrix_units_without_them(forced, monkeypatch) -> None:
    forced(Variant(matrix_tiles(4)[5], winograd=True, matrix=4))
    in_c(monkeypatch)
    check(conv((1, 20, 6, 9), 40, 3), tiles=True)


# Deep ones are split where the device has many more units than the product has tiles.
@pytest.mark.parametrize(
    "precision, depth, units",
    [("fp32", 36, 2), ("fp16", 40, 2), ("fp32", 516, 40), ("fp16", 1032, 100)],
)
def test_computed_product_on_matrix_units_without_them(
    forced, monkeypatch, precision, depth: int, units: int
) -> None:
    own = device(True)
    monkeypatch.setattr(own, "profile", dataclasses.replace(own.profile, compute_units=units))
    forced(Variant(matrix_tiles(ITEMSIZE[precision])[5], matrix=ITEMSIZE[precision]))
    in_c(monkeypatch)
    b = Builder((2, 5, depth), "product")
    some = b.graph.constant(weights(2, depth, 40))
    other = b.add("Relu", b.add("Expand", some, b.ints(2, depth, 40)))
    plan = check(b.done(b.add("MatMul", b.x, other)), tiles=True, precision=precision).plan
    step = next(s for s in plan.steps if s.op == "MatMul")
    assert len(launches_of(step, plan, own.target)) == (2 if units > 2 else 1)


# In blocks of rows and pixels where a GPU has enough of them for its units, or of pixels alone.
@pytest.mark.parametrize("channels", [8, 12])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("enough", [1, 1 << 20])
def test_depthwise_in_fours(monkeypatch, channels: int, stride: int, enough: int) -> None:
    monkeypatch.setattr(problem, "DEPTHWISE_ITEMS", enough)
    w = weights(channels, 1, 3, 3)
    graph = single(
        "Conv", (1, channels, 7, 9), w, weights(channels), group=channels, pads=[1, 1, 1, 1],
        strides=[stride, stride],
    )  # fmt: skip
    check(graph, tiles=True)


@pytest.mark.parametrize("outputs", [8, 5])
def test_transposed_convolution_as_one_product(forced, outputs: int) -> None:
    forced(Variant(SMALL))
    w = weights(12, outputs, 2, 2)
    check(single("ConvTranspose", (1, 12, 5, 6), w, weights(outputs), strides=[2, 2]), tiles=True)


@pytest.mark.parametrize("rows", [1, 7, 9])
@pytest.mark.parametrize("outputs", [15, 16, 50])
def test_few_rows(rows: int, outputs: int) -> None:
    check(single("Gemm", (rows, 37), weights(37, outputs), weights(outputs)), tiles=True)


@pytest.mark.parametrize("n", [64, 127, 260])
def test_softmax_by_group(n: int) -> None:
    check(single("Softmax", (3, n), axis=-1), tiles=True)


# Rows that lie side by side: 16 of them to a group, and fewer where they are few and long. Numbers
# that an item keeps (up to 16), and more.
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "LpNormalization"])
@pytest.mark.parametrize("shape", [(2, 40, 5), (1, 600, 6), (1, 3001, 3), (1, 33, 70)])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_rows_side_by_side(op: str, shape: tuple[int, ...], precision: str) -> None:
    check(single(op, shape, axis=1), tiles=True, precision=precision)


@pytest.mark.parametrize("op", ["ReduceMean", "ReduceMax", "ReduceL2"])
@pytest.mark.parametrize(
    "shape, axes",
    [((2, 40, 5), (1,)), ((1, 600, 6), (1,)), ((2, 50, 3, 40), (1, 3)), ((50, 2, 40, 2), (0, 2))],
)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_sums_of_rows_side_by_side(
    op: str, shape: tuple[int, ...], axes: tuple[int, ...], precision: str
) -> None:
    check(single(op, shape, ints(*axes), keepdims=0), tiles=True, precision=precision)


# Batches that repeat in part, of the left, of the right, of both, and rows that lengthen a product.
@pytest.mark.parametrize(
    "a, b",
    [((2, 3, 1, 7), (1, 3, 7, 5)), ((2, 4, 3, 40), (2, 1, 40, 65)),
     ((5, 1, 70, 40), (1, 3, 40, 65)), ((2, 1, 3, 4, 8), (1, 2, 1, 8, 4)), ((9,), (2, 9, 4))],
)  # fmt: skip
@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_batches_that_repeat_in_part(
    a: tuple[int, ...], b: tuple[int, ...], tiles: bool, precision: str
) -> None:
    check(pair("MatMul", a, b), tiles=tiles, precision=precision)


def test_variants_are_ranked_and_never_empty() -> None:
    for size in (
        Product(1, 1, 1),
        Product(49, 512, 4608, 512, 4),
        Product(65536, 32, 288, 32, 4096),
    ):
        found = variants(size, 132)
        times = [estimate_s(size, v, 132) for v in found]
        assert found and times == sorted(times)
    assert device(True).profile.local_tiles
