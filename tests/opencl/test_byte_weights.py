"""Weights of 8 bits (`--weights-only int8`) stay so on the device where few rows read them."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.cases.graphs import in_bytes, single, some
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.ir import Graph
from lite_engine.model_file import Model
from lite_engine.plan import Plan, Step, make_plan
from lite_engine.quantize import quantize_weights
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.inputs import random_feeds
from lite_engine.runtime.predictor import Predictor

from tests.opencl import tiny
from tests.opencl.test_native import check as same_bits
from tests.opencl.ways import every_way

pytestmark = pytest.mark.usefixtures("unoptimized")

BYTES = [
    graph
    for kernel in ("conv2d", "gemm", "matmul")
    for graph in cases()[kernel]
    if any(node.op == "DequantizeLinear" for node in graph.nodes)
]


def _layer(graph: Graph) -> tuple[Step, Plan]:
    plan = make_plan(graph, "opencl")
    return next(s for s in plan.steps if s.name == "layer"), plan


@pytest.mark.opencl
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("graph", BYTES, ids=lambda g: g.node("layer").op)
def test_the_references_numbers(graph: Graph, tiles: bool, precision: str) -> None:
    tiny.check(graph, tiles=tiles, precision=precision, way="bytes")


@pytest.mark.opencl
@pytest.mark.cpu
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("graph", BYTES[1::3], ids=lambda g: g.node("layer").op)
def test_the_native_executor_has_the_same_bits(graph: Graph, precision: str) -> None:
    same_bits(graph, precision)


@pytest.mark.opencl
@pytest.mark.parametrize("op", ["Gemm", "MatMul"])
def test_the_device_holds_bytes(op: str) -> None:
    """In all: the weights' bytes, and a scale and a bias for each output."""
    graph = in_bytes(op, (1, 512), (512, 256), axis=1)
    execution = Execution(make_plan(graph, "opencl"), threads=1)
    held = execution.memory()
    assert held["packed"] == 512 * 256 + 2 * 256 * 4
    assert held["device"] == 4 * (512 + 256)  # no weight beside what the layer reads and writes


def _rows(graph: Graph, device: str) -> bool:
    step, plan = _layer(graph)
    return "bytes" in every_way(step, plan, PROFILES[device])


@pytest.mark.parametrize("device", PROFILES)
def test_few_rows_alone_are_bound_by_memory(device: str) -> None:
    phone = device.startswith(("mali", "adreno"))
    for rows, taken in ((1, True), (7, True), (16, phone), (17, False)):
        graph = in_bytes("Gemm", (rows, 64), (64, 32), axis=1)
        assert _rows(graph, device) is taken, rows
        pixels = in_bytes("Conv", (1, 64, 1, rows), (32, 64, 1, 1))
        assert _rows(pixels, device) is taken, rows


@pytest.mark.parametrize(
    "graph",
    [
        in_bytes("Conv", (1, 8, 2, 2), (4, 8, 1, 1), strides=[2, 2]),
        in_bytes("Conv", (1, 8, 1, 3), (4, 8, 1, 3)),
        in_bytes("Conv", (1, 8, 1, 3), (4, 2, 1, 1), group=4),
        in_bytes("Gemm", (1, 64), (64, 32), axis=0),  # a scale for each input
        single("Gemm", (1, 64), some(64, 32)),
    ],
    ids=["strides", "window", "groups", "scales of inputs", "floats"],
)
def test_others_have_floats(graph: Graph) -> None:
    assert not _rows(graph, "gpu")


@pytest.mark.opencl
@pytest.mark.cpu
def test_a_quantized_file(tmp_path) -> None:
    """As `lite quantize --weights-only int8` writes it: OpenCL has the CPU's numbers."""
    graph = single("Gemm", (2, 96), some(96, 40), some(40))
    path = Model(quantize_weights(graph), ["opencl", "x86"]).save(tmp_path / "small.lite")
    feeds = random_feeds(graph)
    own, other = (Predictor(path, target).run(feeds) for target in ("opencl", "x86"))
    for y, wanted in zip(own.values(), other.values(), strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
