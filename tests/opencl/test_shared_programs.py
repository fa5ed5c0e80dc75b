"""Layers that differ only in what they end with share a program on CPUs, and their numbers hold."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.ir import Graph
from lite_engine.ops import get_op
from lite_engine.passes.fuse_activation import FUSABLE
from lite_engine.plan import make_plan

from tests.opencl.tiny import check
from tests.small_models import Builder

pytestmark = pytest.mark.usefixtures("unoptimized")

#: Activations that are linear in pieces, with attributes.
LINES = {
    "": [], "Relu": [], "Clip": [-0.5, 0.75], "HardSigmoid": [0.3, 0.4], "HardSwish": [],
}  # fmt: skip


def ended(name: str, params: list[float], kernel: int, group: int = 1) -> Graph:
    """A convolution that ends with an activation."""
    attrs = {"activation": name, "activation_params": params} if name else {}
    b = Builder((1, 16, 12, 12), name or "identity")
    w = b.weights(16, 16 // group, kernel, kernel)
    pads = [kernel // 2] * 4
    y = b.add("Conv", b.x, w, b.weights(16), name="layer", group=group, pads=pads, **attrs)
    return b.done(y)


def texts(graph: Graph) -> set[tuple[str, str]]:
    """(file, options) of the layer on a CPU."""
    plan = make_plan(graph, "opencl")
    (step,) = [s for s in plan.steps if s.name == "layer"]
    return {(x.file, x.options) for x in launches_of(step, plan, Target(PROFILES["cpu, 8 lanes"]))}


@pytest.mark.parametrize("kernel, group", [(1, 1), (3, 1)])
def test_one_program_for_all(kernel: int, group: int) -> None:
    found = [texts(ended(name, params, kernel, group)) for name, params in LINES.items()]
    assert found.count(found[0]) == len(found)
    assert texts(ended("Sigmoid", [], kernel, group)) != found[0]


@pytest.mark.parametrize("kernel, group", [(1, 1), (3, 1)])
def test_a_residual_is_no_other_program(kernel: int, group: int) -> None:
    found = []
    for added in (False, True):
        b = Builder((1, 64, 12, 12), "residual")
        y = b.add("Relu", b.x)
        w, bias = b.weights(64, 64 // group, kernel, kernel), b.weights(64)
        inputs = [y, w, bias, y] if added else [y, w, bias]
        pads = [kernel // 2] * 4
        found.append(texts(b.done(b.add("Conv", *inputs, name="layer", group=group, pads=pads))))
    assert found[0] == found[1]


@pytest.mark.opencl
@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("name", ["", *FUSABLE])
def test_numbers(name: str, tiles: bool) -> None:
    known = [v for v in get_op(name).attrs.values() if isinstance(v, float)] if name else []
    params = known or LINES.get(name, [])
    for kernel, group in ((1, 1), (3, 1), (3, 16)):
        check(ended(name, params, kernel, group), tiles=tiles)


@pytest.mark.opencl
@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("channels, group", [(1, 1), (16, 16)])
def test_what_is_not_a_number_stays_so(name: str, channels: int, group: int) -> None:
    """Through a layer that computes 1·x + 0, so that only its end can change a value."""
    attrs = {"activation": name, "activation_params": LINES[name]} if name else {}
    b = Builder((1, channels, 6, 5), "one")
    w = np.ones((channels, 1, 1, 1), np.float32)
    y = b.add("Conv", b.x, b.graph.constant(w), name="layer", group=group, **attrs)
    check(b.done(y), special=True)
