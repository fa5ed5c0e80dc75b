"""Sums with few results: many work-items share one, and their digits stay."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from lite_engine.backends.opencl.cases.graphs import ints, single, some
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.ir import Graph
from lite_engine.plan import make_plan

from tests.opencl.tiny import TOLERANCE, check, device
from tests.small_models import Builder

pytestmark = pytest.mark.usefixtures("unoptimized")

#: Mean of the numbers: the sum of their squares has no digit of their variance left in float32.
_FAR = {"fp32": 4000.0, "fp16": 32.0}


def standardised(x: np.ndarray, axes: tuple[int, ...], centred: bool = True) -> np.ndarray:
    """In float64."""
    mean = x.mean(axes, keepdims=True) if centred else 0.0
    return (x - mean) / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + 1e-5)


@pytest.mark.opencl
@pytest.mark.parametrize("precision, tiles", [("fp32", False), ("fp32", True), ("fp16", True)])
@pytest.mark.parametrize(
    "op, shape, count, centred",
    [
        ("InstanceNormalization", (1, 1, 9001), 1, True),
        ("InstanceNormalization", (2, 5, 37, 11), 5, True),
        ("LayerNormalization", (2, 5003), 5003, True),
        ("RMSNormalization", (2, 5003), 5003, False),
    ],
)
def test_normalised_numbers_far_from_zero(
    op: str, shape: tuple[int, ...], count: int, centred: bool, precision: str, tiles: bool
) -> None:
    scale, offset = some(count), some(count)
    graph = single(op, shape, scale, *([offset] if centred else []))
    execution = check(graph, tiles=tiles, precision=precision)
    x = np.random.default_rng(7).standard_normal(shape) + _FAR[precision]
    stored = x.astype(np.float32 if precision == "fp32" else np.float16)
    wide = stored.astype(np.float64)
    channels = op.startswith("Instance")
    axes = tuple(range(2 if channels else 1, wide.ndim))
    across = (1, count, *[1] * len(axes)) if channels else (1, count)
    wanted = standardised(wide, axes, centred) * scale.reshape(across)
    wanted += offset.reshape(across) if centred else 0.0
    (y,) = execution.run([stored.astype(np.float32)])
    # A number keeps 2^-24 of its 4000, 2.4e-4; their mean many times less.
    allowed = max(TOLERANCE[precision], 3e-4 if centred else 0.0)
    assert np.linalg.norm(y - wanted) <= allowed * np.linalg.norm(wanted)


@pytest.mark.opencl
@pytest.mark.parametrize(
    "graph",
    [
        single("ReduceMean", (1, 7, 7, 68), ints(1, 2)),
        single("ReduceSum", (3, 14, 5, 7), ints(0, 2), keepdims=0),
        single("ReduceL2", (3, 14, 5, 7), ints(1, 3)),
        single("ReduceMax", (2, 3, 2, 5, 3, 7), ints(1, 3, 5)),
        single("ReduceMin", (2, 3, 2, 5, 3, 7), ints(0, 2, 4)),
        single("ReduceL2", (3, 4), np.array([], np.int64), noop_with_empty_axes=1),
        single("LpNormalization", (2, 37, 3, 7), axis=1),
        single("Softmax", (2, 37, 3, 7), axis=1),
        single("LogSoftmax", (3, 33, 5), axis=1),
    ],
    ids=lambda graph: f"{graph.node('layer').op}-{graph.inputs[0].type.dims}",
)
def test_any_axes_of_halves(graph: Graph) -> None:
    check(graph, tiles=True, precision="fp16")


@pytest.mark.opencl
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize(
    "left, right",
    [
        ((3, 20, 1000), (3, 1000, 24)),
        ((2, 9, 650), (1, 650, 7)),
        ((1, 2, 5, 1024), (1, 2, 1024, 6)),
    ],
)
def test_a_long_sum_of_two_computed_matrices_is_split(
    left: tuple[int, ...], right: tuple[int, ...], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = device(True)
    monkeypatch.setattr(own, "profile", dataclasses.replace(own.profile, compute_units=132))
    b = Builder(left, "product")
    other = b.add("Exp", b.graph.constant(some(*right)))  # computed where it is not folded
    graph = b.done(b.add("Neg", b.add("MatMul", b.add("Relu", b.x), other, name="product")))
    execution = check(graph, tiles=True, precision=precision)
    step = next(s for s in execution.plan.steps if s.name == "product")
    kernels = [x.kernel for x in launches_of(step, execution.plan, own.target)]
    assert kernels == ["conv_tile", "conv_sum"]


@pytest.mark.opencl
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    "shape", [(1, 196, 4), (3, 40, 5), (2, 32, 1000), (1, 256, 3), (2, 257, 2)]
)
def test_softmax_of_a_middle_axis(op: str, shape: tuple[int, ...]) -> None:
    """Rows so few that 16 items share each, the last of which belong to no row."""
    execution = check(single(op, shape, axis=1), tiles=True)
    x = np.random.default_rng(5).normal(0, 30, shape).astype(np.float32)
    wide = x.astype(np.float64) - x.max(1, keepdims=True)
    wanted = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    wanted = wanted if op == "LogSoftmax" else np.exp(wanted)
    (y,) = execution.run([x])
    assert np.linalg.norm(y - wanted) <= TOLERANCE["fp32"] * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    "graph",
    [
        single("InstanceNormalization", (1, 1, 200704), np.ones(1, np.float32), some(1)),
        single("InstanceNormalization", (1, 24, 112, 112), some(24), some(24)),
        single("LayerNormalization", (3, 1 << 16), some(1 << 16)),
    ],
)
def test_every_unit_has_a_part_of_few_long_rows(graph: Graph) -> None:
    plan: Any = make_plan(graph, "opencl")
    (step,) = (s for s in plan.steps if s.name == "layer")
    profile = PROFILES["nvidia"]
    launches = launches_of(step, plan, Target(profile))
    assert len(launches) == 2
    for launch in launches:
        assert launch.local_size is not None
        groups = math.prod(launch.global_size) // math.prod(launch.local_size)
        assert profile.compute_units <= groups <= 8 * profile.compute_units
