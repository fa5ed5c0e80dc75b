"""Attention in each of its ways, at sizes around their tiles."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from lite_engine.backends.opencl import attention
from lite_engine.backends.opencl.cases.graphs import Sketch, attended
from lite_engine.backends.opencl.device import Device

from tests.opencl import tiny

pytestmark = [pytest.mark.opencl, pytest.mark.usefixtures("unoptimized")]


def mask(*shape: int, hidden: bool = False) -> np.ndarray:
    """Biases, some of −∞; with `hidden` the second row sees no key."""
    rng = np.random.default_rng(7)
    made = rng.standard_normal(shape).astype(np.float32)
    made[rng.random(shape) < 0.3] = -np.inf
    if hidden:
        made[..., 1, :] = -np.inf
    return made


#: Below, at and above a tile of rows, a block of keys, a step of the head and a block of columns.
GRAPHS = {
    "one of each": attended((1, 1, 1, 8), (1, 1, 1, 8), (1, 1, 1, 8)),
    "several blocks": attended((1, 2, 70, 64), (1, 2, 131, 64), (1, 2, 131, 64)),
    "whole tiles": attended((2, 1, 64, 32), (2, 1, 64, 32), (2, 1, 64, 32)),
    "packed, wide": attended(
        (1, 33, 192), (1, 65, 192), (1, 65, 256), mask(2, 33, 65), q_num_heads=2, kv_num_heads=2
    ),
    "causal, groups": attended((1, 4, 67, 40), (1, 2, 67, 40), (1, 2, 67, 72), is_causal=1),
    "row sees nothing": attended(
        (2, 3, 5, 24), (2, 3, 40, 24), (2, 3, 40, 24), mask(2, 1, 5, 40, hidden=True), softcap=2.0
    ),
}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("way", ["tile", "rows"])
def test_ways(way: str, name: str, precision: str) -> None:
    tiny.check(GRAPHS[name], tiles=way == "tile", precision=precision, way=way)


def test_more_columns_than_a_tile_has() -> None:
    tiny.check(attended((1, 2, 9, 5), (1, 2, 7, 5), (1, 2, 7, 131)), tiles=True, way="tile")


# Rows of a group, and parts of the keys.
@pytest.mark.parametrize("tile", [(64, 1), (32, 2), (64, 2)])
@pytest.mark.parametrize(
    "name, precision",
    [*((n, "fp16") for n in GRAPHS), ("several blocks", "fp32"), ("row sees nothing", "fp32")],
)
def test_matrix_units_without_them(
    name: str, precision: str, tile: tuple[int, int], monkeypatch
) -> None:
    """Their kernel with its products in C: everything but the instructions themselves."""
    build, own = Device.program, tiny.device(tiles=True)
    profile = dataclasses.replace(own.profile, matrix_units=True)
    made = dataclasses.replace(own, profile=profile)
    monkeypatch.setattr(tiny, "device", lambda *_: made)
    monkeypatch.setattr(attention, "matrix_tile", lambda *_: tile)
    monkeypatch.setattr(
        Device, "program", lambda self, file, text: build(self, file, f"#define MMA_IN_C\n{text}")
    )
    tiny.check(GRAPHS[name], tiles=True, precision=precision, way="matrix units")


@pytest.mark.parametrize(
    "rows, planes, tile", [(197, 12, (32, 2)), (1500, 6, (32, 2)), (1500, 32, (64, 1))]
)
def test_groups_are_enough_for_all_units(rows: int, planes: int, tile: tuple[int, int]) -> None:
    assert attention.matrix_tile(rows, planes, 132) == tile


@pytest.mark.parametrize("precision, way", [("fp32", "tile"), ("fp16", "tile"), ("fp32", "rows")])
def test_operands_are_parts_of_one_product(precision: str, way: str) -> None:
    """Rows of queries, keys and values lie one product's width apart, and nothing copies them."""
    b = Sketch((1, 35, 72))
    parts = b.layer("Split", b.add("Relu", b.x), count=3, axis=-1, num_outputs=3)
    graph = b.done([b.add("Attention", *parts, q_num_heads=3, kv_num_heads=3)])
    plan = tiny.check(graph, tiles=way == "tile", precision=precision, way=way).plan
    step = next(s for s in plan.steps if s.op == "Attention")
    assert [plan.tensors[i].pitch for i in step.inputs] == [72] * 3
