"""A node's types and cost are remembered, and found anew as soon as anything that they follow from
has changed. The oracle are the operator's own functions, asked without the node's memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from lite_engine import custom_op
from lite_engine.ir import DType, Graph, TypeInfo, Value
from lite_engine.ops import Cost, get_op, infer_node, infer_types, node_cost, specialise


def model() -> Graph:
    """x (2, 6) → Transpose → Reshape by a constant → Concat with itself → y"""
    graph = Graph("g")
    graph.inputs = [Value("x", DType.F32, (2, 6))]
    turned = graph.add("Transpose", graph.inputs, {"perm": [1, 0]}, name="turned")
    shape = graph.constant(np.array([3, 4]), "shape")
    reshaped = graph.add("Reshape", [turned.output, shape], name="reshaped")
    joined = graph.add("Concat", [reshaped.output, reshaped.output], {"axis": 1}, name="joined")
    graph.outputs = [joined.output]
    infer_types(graph)
    return graph


def other_perm(graph: Graph) -> None:
    graph.nodes[0].attrs["perm"][:] = [0, 1]  # in place


def other_axis(graph: Graph) -> None:
    graph.nodes[2].attrs["axis"] = 0


def other_input(graph: Graph) -> None:
    graph.inputs[0].shape = (4, 3)


def other_type(graph: Graph) -> None:
    graph.inputs[0].dtype = DType.F16


def other_constant(graph: Graph) -> None:
    graph.nodes[1].set_input(1, graph.constant(np.array([12, 1])))


def other_contents(graph: Graph) -> None:
    value = graph.nodes[1].inputs[1]
    assert value is not None
    value.const = np.array([2, 6])


def fewer_inputs(graph: Graph) -> None:
    graph.nodes[2].inputs = graph.nodes[2].inputs[:1]  # type: ignore[assignment]


def other_operator(graph: Graph) -> None:
    graph.nodes[0].op, graph.nodes[0].attrs = "Relu", {}


CHANGES = [other_perm, other_axis, other_input, other_type, other_constant, other_contents,
           fewer_inputs, other_operator]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("of", [lambda graph: graph, Graph.copy], ids=["itself", "copy"])
def test_types_follow_every_change(
    change: Callable[[Graph], None], of: Callable[[Graph], Graph]
) -> None:
    graph = of(model())
    assert all(map(node_cost, graph.nodes))  # known before the change, too
    change(graph)
    for node in graph.nodes:
        alone = get_op(node.op).infer_types(node, [v and v.type for v in node.inputs])
        assert infer_node(node) == alone
        for value, info in zip(node.outputs, alone, strict=True):
            value.dtype, value.shape = info.dtype, info.shape
        types = [v and v.type for v in node.inputs]
        assert node_cost(node) == get_op(node.op).cost_of(node, types, [node.output.type])


def test_a_cost_follows_other_types_of_outputs() -> None:
    node = model().nodes[0]
    before = node_cost(node)
    node.output.shape = (7, 9)
    assert node_cost(node) == Cost(0, 7 * 9, 4 * (2 * 6 + 7 * 9)) != before


def test_a_copy_has_the_types_without_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = model()
    asked: list[str] = []
    of_class = type(get_op("Relu")).infer_types
    monkeypatch.setattr(
        "lite_engine.ops._core.OpDef.infer_types",
        lambda op, node, types: asked.append(node.name) or of_class(op, node, types),
    )
    assert [v.shape for v in specialise(graph).outputs] == [(3, 8)]
    assert asked == []
    assert [v.shape for v in specialise(graph, {"x": (2, 6)}).outputs] == [(3, 8)]


def test_attributes_that_are_arrays_are_not_remembered() -> None:
    graph = model()
    node = graph.nodes[2]
    node.attrs["axis"] = np.int64(1)
    assert infer_node(node)[0].shape == (3, 8) and node.inferred is None


def test_what_was_inferred_is_not_pickled() -> None:
    """It holds operators, whose functions may be local; workers of a cluster infer it anew."""
    graph = model()
    graph.outputs = [graph.add("Relu", [graph.outputs[0]], name="last").output]
    infer_types(graph)
    again = pickle.loads(pickle.dumps(graph))
    assert all(node.inferred is None for node in again.nodes)
    infer_types(again)
    assert [str(v.type) for v in again.outputs] == [str(v.type) for v in graph.outputs]


def test_an_operator_that_gets_another_inference_is_asked_again() -> None:
    @custom_op("com.acme::Flat")
    def flat(x: np.ndarray) -> np.ndarray:
        return x.reshape(-1)

    @flat.infer
    def wrong(x: TypeInfo) -> TypeInfo:
        return x

    graph = Graph("g")
    graph.inputs = [Value("x", DType.F32, (2, 3))]
    graph.outputs = [graph.add("com.acme::Flat", graph.inputs, name="flat").output]
    infer_types(graph)
    assert graph.outputs[0].shape == (2, 3)

    @flat.infer
    def right(x: TypeInfo) -> TypeInfo:
        return TypeInfo(x.dtype, (6,))

    assert specialise(graph).outputs[0].shape == (6,)


def test_dimensions_of_numpy_become_static() -> None:
    graph = model()
    graph.outputs[0].shape = tuple(map(np.int64, graph.outputs[0].shape or ()))
    infer_types(graph)
    assert graph.outputs[0].type.is_static


def alike(op: str, first: list[np.ndarray], second: list[np.ndarray]) -> list[TypeInfo]:
    """Types of two nodes of one input f32 (4, 6) and constants that may differ in contents."""
    graph = Graph("g")
    graph.inputs = [Value("x", DType.F32, (4, 6))]
    for constants in (first, second):
        graph.add(op, [graph.inputs[0], *map(graph.constant, constants)])
    return [infer_node(node)[0] for node in graph.nodes]


def test_nodes_of_one_kind_are_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lite_engine.ops._inferred._KINDS", {})
    asked: list[str] = []
    of_class = type(get_op("Relu")).infer_types
    monkeypatch.setattr(
        "lite_engine.ops._core.OpDef.infer_types",
        lambda op, node, types: asked.append(op.name) or of_class(op, node, types),
    )
    one, other = alike("MatMul", [np.zeros((6, 3), "f4")], [np.ones((6, 3), "f4")])
    assert one is other and one.shape == (4, 3) and asked == ["MatMul"]
    alike("MatMul", [np.zeros((6, 2), "f4")], [np.ones((6, 2), "f8")])
    assert len(asked) == 3


def test_a_few_integers_are_part_of_a_kind() -> None:
    one, other = alike("Reshape", [np.array([3, 8])], [np.array([2, 12])])
    assert (one.shape, other.shape) == ((3, 8), (2, 12))


def test_contents_that_an_operator_looks_at_are_looked_at_again() -> None:
    every, third = np.ones(24, bool), np.arange(24) % 3 == 0
    one, other = alike("Compress", [every], [third])
    assert (one.shape, other.shape) == ((24,), (8,))


def test_a_constant_that_is_handed_on_keeps_its_contents() -> None:
    graph = Graph("g")
    for number in (1.5, 2.5):
        graph.add("Identity", [graph.constant(np.full((3,), number, "f4"))])
    one, other = (infer_node(node)[0].const for node in graph.nodes)
    assert one is None or other is None or (one[0], other[0]) == (1.5, 2.5)


def test_numbers_of_other_types_are_other_kinds() -> None:
    """1 and 1.0 are equal: an operator may refuse one of them."""

    @custom_op("com.acme::Times")
    def times(x: np.ndarray, *, by: object = 1) -> np.ndarray:
        return x

    @times.infer
    def of(x: TypeInfo, *, by: object) -> TypeInfo:
        return x if isinstance(by, int) else TypeInfo(DType.F64, x.shape)

    graph = Graph("g")
    graph.inputs = [Value("x", DType.F32, (2, 3))]
    for by in (1, 1.0, True):
        graph.add("com.acme::Times", graph.inputs, {"by": by})
    assert [infer_node(node)[0].dtype for node in graph.nodes] == [DType.F32, DType.F64, DType.F32]
