"""`specialise` is left out where it would give a mere copy: the oracle is what it gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lite_engine.ir import DType, Graph, Value, to_text
from lite_engine.ops import has_sizes, infer_types, is_specialised, specialise


def model() -> Graph:
    """x (2, 6) → Reshape by a constant → Relu → y"""
    graph = Graph("g")
    graph.inputs = [Value("x", DType.F32, (2, 6))]
    shape = graph.constant(np.array([3, 4]), "shape")
    reshaped = graph.add("Reshape", [*graph.inputs, shape], name="reshaped")
    graph.outputs = [graph.add("Relu", [reshaped.output], name="last").output]
    infer_types(graph)
    return graph


def folds(graph: Graph) -> None:
    value = graph.constant(np.ones((3, 4), "f4"), "ones")
    made = graph.add("Neg", [value], before=graph.nodes[0])
    graph.outputs = [graph.add("Add", [graph.outputs[0], made.output]).output]
    infer_types(graph)


def unread(graph: Graph) -> None:
    graph.add("Neg", [graph.outputs[0]])
    infer_types(graph)


def open_input(graph: Graph) -> None:
    graph.inputs[0].shape = ("N", 6)


def open_output(graph: Graph) -> None:
    graph.outputs = [graph.add("NonZero", [graph.outputs[0]]).output]
    infer_types(graph)


def other_sizes(graph: Graph) -> None:
    graph.outputs[0].shape = (4, 3)


def misfit(graph: Graph) -> None:
    graph.nodes[0].set_input(1, graph.constant(np.array([5, 5])))


def test_a_specialised_graph_is_known() -> None:
    graph = model()
    assert is_specialised(graph) and has_sizes(graph)
    assert to_text(specialise(graph)) == to_text(graph)


@pytest.mark.parametrize("change", [folds, unread])
def test_what_folds_or_is_unread_has_sizes_alone(change: Callable[[Graph], None]) -> None:
    graph = model()
    change(graph)
    assert has_sizes(graph) and not is_specialised(graph)
    fixed = specialise(graph)
    assert to_text(fixed) != to_text(graph)
    types = {v.name: v.type for v in graph.values()}
    assert all(types[v.name] == v.type for v in fixed.values())


@pytest.mark.parametrize("change", [open_input, open_output, other_sizes, misfit])
def test_sizes_that_are_open_or_others(change: Callable[[Graph], None]) -> None:
    graph = model()
    change(graph)
    assert not has_sizes(graph) and not is_specialised(graph)
