"""A sum of a split product and the normalization of its rows as one launch: the bits of the two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.backends.opencl import gpu_convolutions, joined_rows
from lite_engine.backends.opencl.enqueue import bound, prepared
from lite_engine.backends.opencl.kernels import Kernel
from lite_engine.backends.opencl.variants import Product
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.inputs import random_feeds

from tests.opencl.tiny import device
from tests.small_models import Builder

pytestmark = pytest.mark.opencl

ROWS, DEPTH = 9, 256


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Any:
    """This machine's device, which splits every product."""
    ranked, made = gpu_convolutions.ranked, device(tiles=True)

    def split(size: Product, units: int, matrix: int = 0) -> tuple:
        return tuple(v for v in ranked(size, 64, matrix) if v.parts > 1)

    monkeypatch.setattr(gpu_convolutions, "ranked", split)
    monkeypatch.setattr("lite_engine.backends.opencl.open_device", lambda _: made)
    return made


def pair(precision: str, width: int, residual: bool, **attrs: Any) -> tuple[list[Kernel], Any]:
    """The two kernels of a network that ran once, and the executable that keeps them."""
    b = Builder((ROWS, DEPTH), "normalized")
    more = [b.add("Gemm", b.x, b.weights(DEPTH, width))] if residual else []
    rows = b.add("Gemm", b.x, b.weights(DEPTH, width), b.weights(width), *more, **attrs)
    normalized = b.add("LayerNormalization", rows, b.weights(width), b.weights(width), axis=-1)
    graph = b.done(b.add("Add", normalized, rows))
    made = Execution(make_plan(graph, "opencl", precision=precision), threads=1)
    made.run([random_feeds(graph)["x"]])
    (part,) = [p.executable for p in made._parts if p.segment.backend == "opencl"]
    kernels = [k for ways in part._steps for k in ways.kernels]
    at = next(i for i, k in enumerate(kernels) if k.launch.kernel == "normalise_row")
    return kernels[at - 1 : at + 1], made


def contents(own: Any, buffers: list[Any], kernels: list[Kernel]) -> list[bytes]:
    for buffer in buffers:
        own.cl.enqueue_fill_buffer(own.queue, buffer, np.uint8(0xFF), 0, buffer.size)
    for kernel in kernels:
        assert not kernel.call()
    found = [np.empty(b.size, np.uint8) for b in buffers]
    for array, buffer in zip(found, buffers, strict=True):
        own.cl.enqueue_copy(own.queue, array, buffer)
    return [a.tobytes() for a in found]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("width", [48, 768, 2048])
@pytest.mark.parametrize("residual", [True, False])
def test_same_bits(own: Any, precision: str, width: int, residual: bool) -> None:
    two, _kept = pair(precision, width, residual)
    (one,) = joined_rows.joined(two)
    assert one.launch.kernel == "sum_normalise_row"
    program = own.program(one.launch.file, one.launch.options)
    kernel = bound(own.cl, program, one.launch.kernel, one.args)
    one.call = prepared(own.cl, own.queue, kernel, one.grid, one.group)
    buffers = [two[0].args[3], two[1].args[3]]
    assert contents(own, buffers, [one]) == contents(own, buffers, two)


@pytest.mark.parametrize(
    "precision, width, attrs",
    [("fp16", 52, {}), ("fp32", 48, {"activation": "Relu"})],
    ids=["rows are no whole vectors", "an activation stands between"],
)
def test_these_stay_two(own: Any, precision: str, width: int, attrs: dict) -> None:
    two, _kept = pair(precision, width, False, **attrs)
    assert [k.launch.kernel for k in two] == ["conv_sum", "normalise_row"]
    assert joined_rows.joined(two) == two
    assert joined_rows.joined(two[::-1]) == two[::-1]
