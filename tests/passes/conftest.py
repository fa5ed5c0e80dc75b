"""A bench for passes: before and expected graphs as text, numbers through the references.

In the texts `= rand` stands for seeded normal numbers and `= pos` for positive ones.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from lite_engine.ir import DType, Graph, Journal, from_text, verify
from lite_engine.ops import infer_types, run_node

_DRAWN = re.compile(r"const (\S+): (\w+)\[([\d,]*)\] = (rand|pos)")


def graph_of(text: str, seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    arrays: list[np.ndarray] = []

    def draw(m: re.Match) -> str:
        shape = tuple(int(d) for d in m[3].split(",") if d)
        array = rng.standard_normal(shape)
        array = np.abs(array) + 0.5 if m[4] == "pos" else array
        arrays.append(array.astype(DType(m[2]).np))
        return f"const {m[1]}: {m[2]}[{m[3]}] = @{len(arrays) - 1}"

    body = "\n".join(line.strip() for line in text.strip().splitlines())
    graph = from_text('graph "g" {\n' + _DRAWN.sub(draw, body) + "\n}", arrays)
    for node in graph.nodes:
        node.sources = node.sources or (node.name,)
    infer_types(graph)
    verify(graph)
    return graph


def run(graph: Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs of a graph by the operators' references."""
    env = {id(v): feeds[v.name] for v in graph.inputs}
    for value in graph.constants():
        env[id(value)] = value.const
    for node in graph.nodes:
        outs = run_node(node, [None if v is None else env[id(v)] for v in node.inputs])
        env.update(zip(map(id, node.outputs), outs))
    return [env[id(v)] for v in graph.outputs]


def feeds_for(graph: Graph, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in graph.inputs:
        shape = tuple(d if isinstance(d, int) else 2 for d in value.shape)
        feeds[value.name] = (3 * rng.standard_normal(shape)).astype(value.dtype.np)
    return feeds


def shape_of(graph: Graph) -> list[str]:
    """One line per node with constants as `const` and values by order of appearance."""
    names = {id(v): v.name for v in graph.inputs}
    lines = []
    for node in graph.nodes:
        ins = []
        for value in node.inputs:
            if value is None:
                ins.append("_")
            else:
                ins.append("const" if value.is_const else names[id(value)])
        for value in node.outputs:
            names[id(value)] = f"%{len(names)}"
        attrs = {k: v for k, v in sorted(node.attrs.items()) if v not in ("", [], None)}
        lines.append(f"{node.op}({', '.join(ins)}) {_rounded(attrs)}")
    lines.append("out " + ", ".join(names.get(id(v), "const") for v in graph.outputs))
    return lines


def _rounded(attrs: dict) -> str:
    def nice(v: object) -> object:
        if isinstance(v, float):
            return float(f"{v:.5g}")
        return [nice(e) for e in v] if isinstance(v, (list, tuple)) else v

    return str({k: nice(v) for k, v in attrs.items()})


class Bench:
    graph = staticmethod(graph_of)
    run = staticmethod(run)
    shape_of = staticmethod(shape_of)

    def apply(self, step, before: str) -> tuple[Graph, Graph, Journal, int]:
        """(graph before, graph after, journal, rewrites)."""
        old, journal = graph_of(before), Journal()
        new = old.copy()
        count = step(new, journal)
        new.remove_unread()
        infer_types(new)
        verify(new, step.name)
        return old, new, journal, count

    def rewrites(self, step, before: str, expected: str, rtol: float = 1e-4) -> Graph:
        """The pass turns `before` into `expected` (constants not compared) with equal numbers,
        equal output names and no source node lost."""
        old, new, journal, count = self.apply(step, before)
        assert count > 0, f"nothing rewritten: {journal}"
        assert shape_of(new) == shape_of(graph_of(expected))
        assert [v.name for v in new.outputs] == [v.name for v in old.outputs]
        feeds = feeds_for(old)
        for a, b in zip(run(old, feeds), run(new, feeds)):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(np.abs(a).max(), 1e-6))
        return new

    def refuses(self, step, before: str, reason: str) -> None:
        """The pass leaves the graph alone and the journal says why."""
        old, new, journal, count = self.apply(step, before)
        assert count == 0
        assert shape_of(new) == shape_of(old)
        reasons = [e.reason for e in journal.entries if e.action == "refused"]
        assert any(reason in r for r in reasons), reasons

    def ignores(self, step, before: str) -> None:
        """The pass does not apply: no rewrite and nothing to say."""
        _, _, journal, count = self.apply(step, before)
        assert count == 0 and not journal.entries


@pytest.fixture(scope="session")
def bench() -> Bench:
    return Bench()
