"""Kernels are found once for nodes of one kind; the oracle is a search without that memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from lite_engine.ir import DType, Graph, Node, TypeInfo, Value
from lite_engine.ops import all_kernels, get_op, infer_types
from lite_engine.plan import kernels_for
from lite_engine.testing import cases

Condition = Callable[[Node, list[TypeInfo | None]], bool | str]


def products(*weights: np.ndarray) -> list[Node]:
    """MatMuls of x f32 (4, 6) and a constant each."""
    graph = Graph("g")
    graph.inputs = [Value("x", DType.F32, (4, 6))]
    for weight in weights:
        graph.add("MatMul", [graph.inputs[0], graph.constant(weight)])
    infer_types(graph)
    return graph.nodes


def kernels(node: Node, backend: str = "cpu") -> list[str]:
    types = [v and v.type for v in node.inputs]
    return [ref.name for ref in kernels_for(node, types, backend)[0]]


@pytest.fixture
def condition(monkeypatch: pytest.MonkeyPatch) -> Callable[[Condition], list[str]]:
    """Puts a condition on the only kernel of MatMul; the list gets a node's name when it is
    asked."""

    def put(when: Condition) -> list[str]:
        asked: list[str] = []

        def noted(node: Node, types: list[TypeInfo | None]) -> bool | str:
            asked.append(node.name)
            return when(node, types)

        op = get_op("MatMul")
        (first, *_) = [k for k in op.kernels if k.backend == "cpu" and DType.F32 in k.dtypes]
        only = replace(first, name="only", when=noted, precision=None)
        monkeypatch.setattr(op, "kernels", [only])
        return asked

    return put


def test_a_condition_is_asked_once_for_a_kind(condition: Callable[[Condition], list[str]]) -> None:
    asked = condition(lambda node, types: bool(types[1] and types[1].is_const))
    ones, zeros = np.ones((6, 3), "f4"), np.zeros((6, 3), "f4")
    assert [kernels(node) for node in products(ones, zeros)] == [["only"], ["only"]]
    assert len(asked) == 1
    assert kernels(products(np.ones((6, 4), "f4"))[0]) == ["only"] and len(asked) == 2


def test_a_condition_that_looks_at_contents_is_asked_again(
    condition: Callable[[Condition], list[str]],
) -> None:
    def of_ones(node: Node, types: list[TypeInfo | None]) -> bool | str:
        weight = types[1] and types[1].const
        return bool(weight is not None and weight.all()) or "zeros"

    condition(of_ones)
    ones, zeros = np.ones((6, 3), "f4"), np.zeros((6, 3), "f4")
    found = [kernels(node) for node in products(ones, zeros, ones)]
    assert found == [["only"], [], ["only"]]


def test_other_kernels_and_other_outputs_are_asked_again(
    condition: Callable[[Condition], list[str]],
) -> None:
    (node,) = products(np.ones((6, 3), "f4"))
    before = kernels(node)
    condition(lambda node, types: node.output.shape == (4, 3) or "another size")
    assert before != kernels(node) == ["only"]
    node.output.shape = (2, 6)
    assert kernels(node) == []


class Sealed(Value):
    """A value whose contents nobody may look at."""

    @property
    def const(self) -> np.ndarray | None:  # type: ignore[override]
        raise AssertionError(f"a condition looks at the contents of {self.name} past the types")

    @const.setter
    def const(self, array: np.ndarray | None) -> None:
        pass


@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_conditions_see_contents_in_the_types_alone(backend: str) -> None:
    count = 0
    for kernel in all_kernels(backend):
        for case in itertools.islice(cases(kernel, 60), 2) if kernel.when else ():
            node = case.node
            types = [v and v.type for v in node.inputs]
            sealed = [v and Sealed(v.name, v.dtype, v.shape) for v in node.inputs]
            outputs = [Value(v.name, v.dtype, v.shape) for v in node.outputs]
            alike = Node(node.op, sealed, outputs, node.attrs, name=node.name)
            assert kernel.when is not None and kernel.when(alike, types) is True
            count += 1
    assert count > 100
