"""One small graph on an OpenCL device and on the NumPy reference."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any
from unittest import mock

import lite_engine.backends.opencl as opencl
import numpy as np
from lite_engine.backends.opencl.device import Device, choose, open_device
from lite_engine.backends.opencl.tuning import Tuning
from lite_engine.ir import Graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.inputs import random_feeds

#: Relative L2 error allowed by precision.
TOLERANCE = {"fp32": 1e-5, "fp16": 5e-3}


@lru_cache(maxsize=4)
def device(tiles: bool = False, images: bool = False) -> Device:
    """The device of this machine, as it is or with the kernels that GPUs get, or those GPUs that
    prefer images."""
    own = open_device(choose())
    if not (tiles or images):
        return own
    profile = dataclasses.replace(own.profile, local_tiles=True, prefers_images=images)
    return dataclasses.replace(own, profile=profile)


class Preferring(Tuning):
    """A table that has the same way for every size; `taken` are those that were chosen."""

    def __init__(self, own: Tuning, way: str) -> None:
        super().__init__(own.path)
        self.way, self.taken = way, set[str]()

    def pick(self, size: str, ways: Any) -> Any:
        way = next((w for w in ways if str(w) == self.way), ways[0])
        self.taken.add(str(way))
        return way


def check(
    graph: Graph,
    *,
    tiles: bool = False,
    images: bool = False,
    precision: str = "fp32",
    tolerance: float | None = None,
    special: bool = False,
    way: str = "",
) -> Execution:
    """Outputs of the graph on a device against the reference; every operator must run there.
    `special` also of inputs with NaN and infinities. `way` is the one that must be taken."""
    plan = make_plan(graph, "opencl", precision=precision)
    nodes = [s for s in plan.steps if s.op != "Relayout"]
    elsewhere = [f"{s.name}: {s.why}" for s in nodes if s.backend != "opencl"]
    assert not elsewhere, elsewhere
    own = device(tiles, images)
    preferring = Preferring(own.tuning, way)
    own = dataclasses.replace(own, tuning=preferring) if way else own
    with mock.patch.object(opencl, "open_device", lambda report: own):
        execution = Execution(plan, threads=1)
    assert not way or way in preferring.taken
    feeds = list(random_feeds(graph).values())
    wanted = Execution(make_plan(graph, "reference"), threads=1).run(feeds)
    allowed = TOLERANCE[precision] if tolerance is None else tolerance
    _agree(graph, execution.run(feeds), wanted, allowed, precision)
    if special:
        feeds = [_with_special(x) for x in feeds]
        with np.errstate(all="ignore"):
            wanted = Execution(make_plan(graph, "reference"), threads=1).run(feeds)
        for y, exact in zip(execution.run(feeds), wanted, strict=True):
            np.testing.assert_allclose(y, exact, rtol=1e-4, atol=1e-5)
    return execution


def _with_special(x: np.ndarray) -> np.ndarray:
    """NaN and infinities among the numbers, one in six."""
    out, rng = x.copy(), np.random.default_rng(3)
    at = rng.permutation(x.size)[: -(-x.size // 6)]
    out.reshape(-1)[at] = rng.choice([np.nan, np.inf, -np.inf], at.size)
    return out


def _agree(
    graph: Graph, got: list[np.ndarray], wanted: list[np.ndarray], allowed: float, precision: str
) -> None:
    for value, y, exact in zip(graph.outputs, got, wanted, strict=True):
        assert (y.shape, y.dtype) == (exact.shape, exact.dtype), value.name
        worst = np.unravel_index(np.argmax(np.abs(1.0 * y - exact)), y.shape) if y.size else ()
        error = np.linalg.norm(1.0 * y - exact) / (np.linalg.norm(1.0 * exact) + 1e-12)
        assert error <= allowed, (
            f"{graph.name} {y.shape} {precision}: error {error:.2e}, worst at {worst}: "
            f"{y[worst]} instead of {exact[worst]}"
        )
