"""Steps of one kind: their launches are those that would have been made for each by itself."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.opencl import native_plan
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.native_plan import encode_opencl
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.ir import Graph
from lite_engine.ops import infer_types
from lite_engine.plan import Plan, make_plan
from lite_engine.plan.program import WeightTable

from tests.small_models import Builder


def named_apart(graph: Graph, prefix: str, factor: float) -> Graph:
    """A copy with other names, in which float constants are `factor` times themselves."""
    out = graph.copy()
    for value in out.values():
        value.name = prefix + value.name
        if value.const is not None and value.const.dtype == np.float32:
            value.const = value.const * np.float32(factor)
    for node in out.nodes:
        node.name = prefix + node.name
    return out


def side_by_side(graphs: list[Graph]) -> Graph:
    """One graph of many; each three times, the last time with other weights and scales."""
    out = Graph("all")
    for i, graph in enumerate(graphs):
        for factor in (1, 1, 1.25):
            part = named_apart(graph, f"{i}.{len(out.nodes)}.", factor)
            out.inputs += part.inputs
            out.nodes += part.nodes
            out.outputs += part.outputs
    return out


def program(plan: Plan, profile: str) -> tuple[bytes, list[bytes]]:
    """The program, and the weights that it names."""
    table = WeightTable()
    data = encode_opencl(plan, Target(PROFILES[profile]), table)
    return data, [blob.tobytes() for blob in table.blobs]


@pytest.mark.parametrize("profile", ["cpu, 8 lanes", "nvidia with matrix units", "adreno"])
@pytest.mark.parametrize("kernel", cases())
def test_every_kernel(kernel: str, profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(side_by_side(cases()[kernel][:8]), "opencl", precision="fp16")
    found = program(plan, profile)
    monkeypatch.setattr(native_plan, "kind_of", lambda step, plan: None)
    assert found == program(plan, profile)


def test_launches_are_made_once_for_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder((1, 8, 6, 6))
    y = b.x
    for _ in range(6):
        y = b.add("Sigmoid", b.conv(y, 8, 8, 3))
    b.done(y)
    infer_types(b.graph)
    plan = make_plan(b.graph, "opencl")
    made: list[str] = []
    ways_of = native_plan.ways_of
    monkeypatch.setattr(
        native_plan, "ways_of", lambda step, *more: made.append(step.op) or ways_of(step, *more)
    )
    program(plan, "gpu")
    assert made.count("Conv") == made.count("Sigmoid") == 1
