"""Parts of Concat and Split made and read where the whole lies."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.opencl import gpu_convolutions
from lite_engine.backends.opencl.device import Device
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.backends.opencl.variants import Tile, Variant, matrix_tiles
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.inputs import random_feeds

from tests.opencl.tiny import check, device
from tests.small_models import Builder

pytestmark = [pytest.mark.opencl, pytest.mark.usefixtures("unoptimized")]


def network(first: int = 16, kernel: int = 3, shared: bool = False):
    """Cuts what a convolution made; one part goes through convolutions, the other waits; a cheap
    convolution of a part beside it, as GhostNet has them."""
    b = Builder((1, 12, 11, 10))
    x = b.conv(b.x, 12, 40, 1, name="wide")
    sizes = b.ints(first, 40 - first)
    cut = b.graph.add("Split", [x, sizes], {"axis": 1}, outputs=2, name="cut")
    left, right = cut.outputs
    made = b.conv(left, first, 20, kernel, name="made")
    cheap = b.conv(made, 20, 20, 3, group=20, activation="Relu", name="cheap")
    parts = (right, made) if shared else (right, made, cheap)
    whole = b.add("Concat", *parts, axis=1, name="joined")
    return b.done(b.add("Sigmoid", whole), *([b.add("Relu", made)] if shared else []))


def ran(execution: Execution, name: str) -> int:
    """How many launches a step has."""
    step = next(s for s in execution.plan.steps if s.name == name)
    return len(launches_of(step, execution.plan, device().target))


# Channels in fours or not; 3x3 by Winograd's algorithm; fp16 through a padded copy.
@pytest.mark.parametrize("first, kernel", [(16, 3), (6, 1), (8, 5)])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_on_a_cpu(first: int, kernel: int, precision: str) -> None:
    execution = check(network(first, kernel), precision=precision)
    assert (ran(execution, "cut"), ran(execution, "joined")) == (0, 1)  # what waited is copied


# What waited, and what another step wants dense, become one in one launch, as in ShuffleNetV2.
def test_a_part_beside_a_whole() -> None:
    execution = check(network(20, 1, shared=True))
    assert (ran(execution, "cut"), ran(execution, "joined")) == (0, 1)


# Two directions of a recurrent network: each joins its steps, and is a part of what joins both.
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("tiles", [False, True])
def test_a_join_that_is_a_part_of_a_join(axis: int, tiles: bool) -> None:
    b = Builder((2, 3, 6))
    parts = [b.add(op, b.x) for op in ("Relu", "Tanh", "Sigmoid")]
    ones = [b.add("Concat", *order, axis=axis) for order in (parts, parts[::-1])]
    check(b.done(b.add("Neg", b.add("Concat", *ones, axis=2))), tiles=tiles)


# Parts of rows in fours and others, three in a launch, of which the last has one or two.
@pytest.mark.parametrize("sizes", [(8, 4, 12), (5, 1, 2, 3), (4, 8, 4, 4, 4)])
@pytest.mark.parametrize("axis, precision", [(1, "fp32"), (2, "fp32"), (2, "fp16")])
def test_a_gpu_cuts_three_parts_at_once(sizes: tuple[int, ...], axis: int, precision: str) -> None:
    shape = (2, sum(sizes), 3) if axis == 1 else (2, 3, sum(sizes))
    b = Builder(shape)
    cut = b.graph.add(
        "Split", [b.add("Neg", b.x), b.ints(*sizes)], {"axis": axis}, outputs=len(sizes)
    )
    parts = [b.add("ReduceSum", v, b.ints(axis)) for v in cut.outputs]
    check(b.done(*parts), tiles=True, precision=precision)


# EdgeNeXt's: rows of a product seen as an image, and that image seen channels first, are cut.
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_view_of_a_view_is_cut_where_it_lies(precision: str) -> None:
    b = Builder((33, 12))
    rows = b.add("Gemm", b.x, b.weights(12, 20), b.weights(20))
    image = b.add("Transpose", b.add("Reshape", rows, b.ints(1, 11, 3, 20)), perm=[0, 3, 1, 2])
    cut = b.graph.add("Split", [image, b.ints(7, 13)], {"axis": 1}, outputs=2, name="cut")
    left, right = cut.outputs
    joined = b.add("Concat", b.conv(left, 7, 7, 3, group=7), right, axis=1)
    execution = check(b.done(b.add("Sigmoid", joined)), precision=precision)
    assert ran(execution, "cut") == 0


# ShuffleNetV2's: the halves of what is joined change places.
@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_part_of_a_join_that_is_shuffled(precision: str, tiles: bool) -> None:
    b = Builder((1, 8, 6, 7))
    y = b.conv(b.x, 8, 12, 1)
    for _ in range(2):
        waits, goes = b.graph.add("Split", [y, b.ints(6, 6)], {"axis": 1}, outputs=2).outputs
        made = b.conv(goes, 6, 6, 1, activation="Relu")
        join = b.add("Reshape", b.add("Concat", waits, made, axis=1), b.ints(1, 2, 6, 6, 7))
        y = b.add("Reshape", b.add("Transpose", join, perm=[0, 2, 1, 3, 4]), b.ints(1, 12, 6, 7))
    check(b.done(b.conv(y, 12, 5, 3)), precision=precision, tiles=tiles)


@pytest.mark.parametrize(
    "variant, first, kernel, precision",
    [
        (Variant(Tile(16, 16, 4, 4)), 16, 3, "fp32"),
        (Variant(Tile(16, 16, 4, 4), 2), 6, 3, "fp16"),
        (Variant(Tile(16, 16, 4, 4), winograd=True), 16, 3, "fp32"),
        (Variant(matrix_tiles(4)[5], matrix=4), 16, 3, "fp32"),
        (Variant(matrix_tiles(2)[5], 2, matrix=2), 8, 1, "fp16"),
    ],
    ids=str,
)
def test_on_a_gpu(monkeypatch, variant: Variant, first: int, kernel: int, precision: str) -> None:
    direct = Variant(variant.tile, variant.parts, matrix=variant.matrix)
    monkeypatch.setattr(
        gpu_convolutions, "ranked", lambda size, *_: (variant if size.tiles else direct,)
    )
    build = Device.program
    monkeypatch.setattr(
        Device, "program", lambda self, file, text: build(self, file, f"#define MMA_IN_C\n{text}")
    )
    check(network(first, kernel), tiles=True, precision=precision)


def test_a_tapped_part_is_dense() -> None:
    graph = network()
    exact = Execution(make_plan(graph, "reference"), threads=1)
    found = Execution(make_plan(graph, "opencl"), threads=1)
    feeds = list(random_feeds(graph).values())
    names = [v.name for n in graph.nodes if n.name in ("cut", "made") for v in n.outputs]
    for execution in (exact, found):
        execution.tap(names)
        execution.run(feeds)
    for name in names:
        np.testing.assert_allclose(found.tapped(name), exact.tapped(name), rtol=1e-4, atol=1e-5)
