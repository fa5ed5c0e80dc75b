"""Numbers that multiply whole tensors. Oracle: the graph as it was, by the references and by
onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import Graph, Value
from lite_engine.passes import optimize_graph

from .conftest import feeds_for, run
from .test_fuse_attention import Writer, agree, onnxruntime

MAP = (2, 6, 5, 7)


def chain() -> Graph:
    w = Writer(x=MAP)
    return w.done(w("Mul", w("Div", w("Mul", w["x"], 2.0), 5.0), np.full((1, 1), 0.3, np.float32)))


def gate(size: tuple[int, ...] = (2, 6, 1, 1), batch: int | str = 2) -> Graph:
    """A squeeze-and-excite whose result is weighted twice (NFNet)."""
    w = Writer(x=(batch, *MAP[1:]), g=(batch, *size[1:]), r=(batch, *MAP[1:]))
    gated = w("Mul", w["x"], w("Sigmoid", w["g"]))
    return w.done(w("Add", w("Mul", w("Mul", gated, 2.0), 0.2), w["r"]))


def part(
    place: int, turned: bool = False, read_twice: bool = False, widths: tuple[int, ...] = (8, 4, 12)
) -> Graph:
    """One part of a projection, in heads and scaled; attention that mixes heads is not fused."""
    w = Writer(x=(2, 3, 10))
    rows = w("Reshape", w["x"], [-1, 10])
    weight = w.normal(*((24, 10) if turned else (10, 24)))
    product = w("Gemm", rows, weight, w.normal(24), transB=int(turned))
    whole = w("Reshape", product, [2, 3, 24])
    node = w.graph.add("Split", [whole, w._value(list(widths))], {"axis": -1}, outputs=len(widths))
    parts = list(node.outputs)
    out = []
    for i, (value, width) in enumerate(zip(parts, widths)):
        value.dtype, value.shape = whole.dtype, (2, 3, width)
        view = w("Reshape", value, [2, 3, 2, width // 2])
        out.append(w("Mul", view, 0.125) if i == place else view)
    return w.done(*out, *([w("Neg", parts[place])] if read_twice else []))


def same(graph: Graph, new: Graph) -> None:
    feeds = feeds_for(graph)
    agree(run(new, feeds), run(graph, feeds))
    given = onnxruntime.InferenceSession(write_bytes(graph)).run(None, feeds)
    agree(list(Predictor(new, "x86").run(feeds).values()), given)


def scales(graph: Graph, size: int) -> int:
    """Nodes that multiply something of at least `size` elements with a number."""

    def elements(value: Value) -> int:
        return int(np.prod([d if isinstance(d, int) else 2 for d in value.shape]))

    return sum(
        n.op in ("Mul", "Div") and elements(n.output) >= size and any(v.is_const for v in n.inputs)
        for n in graph.nodes
    )


def test_numbers_in_a_row_are_one() -> None:
    graph = chain()
    new = optimize_graph(graph)
    assert [n.op for n in new.nodes] == ["Mul"]
    same(graph, new)


def test_a_product_beyond_the_type_stays() -> None:
    """In float32, 1e30 · 1e30 is infinite, and what it multiplies may be 0."""
    w = Writer(x=(3,))
    graph = w.done(w("Mul", w("Mul", w["x"], 1e30), 1e30))
    assert [n.op for n in optimize_graph(graph).nodes] == ["Mul", "Mul"]
    w = Writer(x=(3,))
    graph = w.done(w("Div", w("Mul", w["x"], 2.0), 0.0))
    assert [n.op for n in optimize_graph(graph).nodes] == ["Mul", "Div"]


@pytest.mark.parametrize("batch", [2, "n"])
def test_the_gate_is_multiplied_and_not_the_map(batch: int | str) -> None:
    graph = gate(batch=batch)
    new = optimize_graph(graph)
    assert scales(graph, 100) == 2
    assert (scales(new, 100), scales(new, 1)) == (0, 1)
    same(graph, new)


def test_a_map_times_a_map_keeps_its_number() -> None:
    graph = gate(MAP)
    new = optimize_graph(graph)
    assert scales(new, 100) == 1
    same(graph, new)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_part_of_a_projection(place: int, turned: bool) -> None:
    graph = part(place, turned)
    new = optimize_graph(graph)
    assert (scales(graph, 1), scales(new, 1)) == (1, 0)
    same(graph, new)


def test_a_part_that_is_read_twice_stays() -> None:
    graph = part(1, read_twice=True)
    new = optimize_graph(graph)
    assert scales(new, 1) == 1
    same(graph, new)


def test_a_number_behind_heads() -> None:
    """One for all columns fits any view of the product."""
    w = Writer(x=(6, 10))
    product = w("Gemm", w["x"], w.normal(10, 24), w.normal(24))
    graph = w.done(w("Mul", w("Reshape", product, [2, 3, 4, 6]), 0.4))
    new = optimize_graph(graph)
    assert [n.op for n in new.nodes] == ["Gemm", "Reshape"]
    same(graph, new)
