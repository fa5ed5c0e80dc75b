"""What the journal says of a pass is true although passes look again only at what changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from lite_engine import importers
from lite_engine.ir import Graph, Journal
from lite_engine.ops import node_cost
from lite_engine.passes import optimize_graph
from lite_engine.passes._core import Pass
from lite_engine.passes.pipeline import PIPELINE

from benchmarks import zoo


def counted(graph: Graph) -> dict[str, int]:
    """The sizes of a graph, from a copy whose nodes remember nothing."""
    graph = graph.copy()
    for node in graph.nodes:
        node.inferred = None
    costs = [c for c in map(node_cost, graph.nodes) if c is not None]
    sums = (
        sum(c.macs for c in costs),
        sum(c.flops for c in costs),
        sum(c.bytes or 0 for c in costs),
    )
    return {"nodes": len(graph.nodes), **dict(zip(("macs", "flops", "bytes"), sums, strict=True))}


class Watched:
    """A pass that notes what the graph is before it."""

    def __init__(self, step: Pass, seen: list[dict[str, int]]) -> None:
        self.name, self._step, self._seen = step.name, step, seen
        self.local = getattr(step, "local", False)

    def __call__(self, graph: Graph, journal: Journal) -> int:
        self._seen.append(counted(graph))
        return self._step(graph, journal)


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "text_encoder"])
def test_sizes_after_each_pass(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(zoo.build(name).SerializeToString())
    seen: list[dict[str, int]] = []
    journal = Journal()
    done = optimize_graph(
        importers.load(path), journal=journal, passes=[Watched(p, seen) for p in PIPELINE]
    )
    assert [p["before"] for p in journal.passes] == seen
    assert [p["after"] for p in journal.passes] == [*seen[1:], counted(done)]
    assert any(p["rewrites"] for p in journal.passes)
