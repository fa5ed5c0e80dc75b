"""Advice about zeros: what a pruned model would gain, and which zeros nothing skips, and why."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import Graph
from lite_engine.plan import make_plan
from lite_engine.profile.advice import Advice, advise

from tests.profile.profiles import layer, of_layers
from tests.profile.test_advice import parsed
from tests.small_models import Builder

RULES = ("dense-zeros", "prunable")


def pointwise(zeros: float, kernel: int = 1, size: int = 14) -> Graph:
    """One convolution; this share of its weights is 0."""
    b = Builder((1, 64, size, size), "pointwise")
    rng = np.random.default_rng(2)
    w = rng.standard_normal((64, 64, kernel, kernel)).astype(np.float32)
    w *= rng.random(w.shape) >= zeros
    pads = [kernel // 2] * 4
    return b.done(b.add("Conv", b.x, b.graph.constant(w), name="c", pads=pads))


def told(graph: Graph, backend: str = "cpu", made: str = "") -> list[Advice]:
    """Advice about zeros where the layer "c", as it is planned there, takes all of the time."""
    plan = make_plan(graph, backend)
    (step,) = [s for s in plan.steps if s.name == "c"]
    row = layer(0, 1.0, name="c", op=step.op, kernel=step.kernel, backend=step.backend)
    shown = of_layers([row], backend="x86" if backend == "cpu" else backend)
    every = advise(shown, plan, model="m.onnx", made=made)
    return [a for a in every if a.rule in RULES]


def test_a_model_of_pointwise_layers_would_gain():
    (found,) = told(pointwise(0.0))
    assert found.rule == "prunable" and found.layers == ["c"] and found.gain_ms == 0.5
    assert "1 layer that could skip zeros" in found.evidence
    (command,) = parsed(found.command)
    assert command.model == "m.onnx" and command.sparsity == 0.8 and command.output == "tried.lite"


@pytest.mark.parametrize("graph", [pointwise(0.0, kernel=3), pointwise(0.9)])
def test_layers_without_a_sparse_form_or_with_sparse_kernels_get_none(graph):
    assert told(graph) == []


@pytest.mark.parametrize(
    "graph, reason, option",
    [
        (pointwise(0.55), "of its weights are not 0", "sparsity"),
        (pointwise(0.9, kernel=3), "not a 1x1 convolution", "channels"),
        (pointwise(0.9, size=3), "fewer than 16 rows", "channels"),
    ],
)
def test_zeros_that_nothing_skips(graph, reason, option):
    (found,) = told(graph)
    assert found.rule == "dense-zeros" and reason in found.evidence
    (command,) = parsed(found.command)
    assert getattr(command, option) and command.calibration == "photos/"


def test_zeros_on_a_device_and_in_integers():
    (found,) = told(pointwise(0.9), "opencl")
    assert found.rule == "dense-zeros" and "only CPUs" in found.evidence
    assert parsed(found.command)[0].model == "m.onnx"

    b = Builder((1, 64, 14, 14), "integers")
    scale, zero = b.graph.constant(np.float32(0.1)), b.graph.constant(np.uint8(128))
    w = np.zeros((64, 64, 1, 1), np.int8)
    w[:, ::9] = 3
    parts = [b.add("QuantizeLinear", b.x, scale, zero), scale, zero]
    parts += [b.graph.constant(w), scale, b.graph.constant(np.int8(0)), scale, zero]
    y = b.add("QLinearConv", *parts, name="c")
    (one,) = told(b.done(y), made="lite quantize f.onnx --calibration text")
    assert "too few of them lie together" in one.evidence
    assert "--pattern 4x1" in one.command and parsed(one.command)[0].model == "f.onnx"
