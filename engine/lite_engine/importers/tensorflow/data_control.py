"""While and If whose condition depends on data: the operators Loop and If, whose graphs may read
the values around them."""

from __future__ import annotations

from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import DType, Graph, Shape, Value
from .._emit import Emitter
from ._translate import Call, Nodes
from .functions import Ref


def _child(c: Call, name: str) -> tuple[Graph, Nodes]:
    """A graph within, which reads what is there already."""
    graph = Graph(name)
    nodes = c.nodes
    return graph, Nodes(
        Emitter(graph), nodes.flat, nodes.variables, dict(nodes.values), dict(nodes.lists)
    )


def _finish(graph: Graph, nodes: Nodes, values: list[Value]) -> None:
    """Outputs are values of the graph's own, each of them once."""
    seen: set[int] = set()
    for value in values:
        if value.producer is None or value.producer not in graph.nodes or id(value) in seen:
            value = nodes.emit("Identity", value)
        seen.add(id(value))
        graph.outputs.append(value)


def _common(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b))


def _no_lists(c: Call, values: list[Value], nodes: Nodes) -> None:
    if any(id(value) in nodes.lists for value in values):
        raise UnsupportedOperatorError(
            tr("{name} hands lists of tensors on, and its condition depends on data", name=c.name),
            (c.name,), where=c.name,
            fix=tr("only loops of a fixed number of steps keep lists: fix the input shapes"),
        )  # fmt: skip


def _truth(nodes: Nodes, value: Value) -> Value:
    return nodes.emit.cast(nodes.emit.reshape(value, []), DType.BOOL)


def choice(c: Call, refs: list[Ref]) -> list[Value]:
    """`if condition: then_branch(*refs) else: else_branch(*refs)`"""
    branches, answers = [], []
    for name in ("then_branch", "else_branch"):
        graph, nodes = _child(c, f"{c.name}/{name}")
        made = nodes.call(f"{c.name}/{name}", c.attrs.function(name), refs)
        values = [nodes.value(ref) for ref in made]
        _no_lists(c, values, nodes)
        _finish(graph, nodes, values)
        branches.append(graph)
        answers.append(graph.outputs)
    condition = _truth(c.nodes, c.x(0))
    outs = c.emit.outputs(
        "If", [condition], len(answers[0]), then_branch=branches[0], else_branch=branches[1]
    )
    for out, then, other in zip(outs, *answers):
        out.dtype = out.dtype or then.dtype or other.dtype
        out.shape = out.shape if out.shape is not None else _common(then.shape, other.shape)
    return outs


def loop(c: Call, state: list[Ref], go: Ref) -> list[Value]:
    """`while condition(*state): state = body(*state)`, where `go` is the first condition."""
    starts = [c.nodes.value(ref) for ref in state]
    _no_lists(c, starts, c.nodes)
    body = c.attrs.function("body")
    carried = [i for i in range(len(state)) if i not in _kept(c, body)]
    shapes = [starts[i].shape for i in carried]
    graph, ends = _body(c, state, carried, shapes)
    changed = [_common(a, v.shape) for a, v in zip(shapes, ends)]
    if changed != shapes:
        graph, ends = _body(c, state, carried, changed)
    first = _truth(c.nodes, c.nodes.value(go))
    outs = c.emit.outputs(
        "Loop", [None, first, *(starts[i] for i in carried)], len(carried), body=graph
    )
    results = list(starts)
    for i, out, shape in zip(carried, outs, changed):
        out.dtype = out.dtype or starts[i].dtype
        out.shape = out.shape if out.shape is not None else shape
        results[i] = out
    return results


def _kept(c: Call, name: str) -> set[int]:
    """Arguments that the body hands back as they are."""
    function = c.nodes.flat.functions.get(name)
    if function is None:
        return set()
    nodes = {node.name: node for node in function.nodes}

    def source(text: str) -> str:
        for _ in nodes:
            node = nodes.get(text.split(":")[0])
            if node is None or node.op != "Identity" or not node.inputs:
                break
            text = node.inputs[0]
        return text.split(":")[0]

    pairs = zip(function.args, function.returns)
    return {i for i, (arg, text) in enumerate(pairs) if source(text) == arg}


def _body(
    c: Call, state: list[Ref], carried: list[int], shapes: list[Shape | None]
) -> tuple[Graph, list[Value]]:
    """(iteration, condition, carried…) → (condition, carried…)"""
    graph, nodes = _child(c, f"{c.name}/body")
    graph.inputs = [Value("iteration", DType.I64, ()), Value("going_on", DType.BOOL, ())]
    given = list(state)
    step = c.nodes.flat.fresh(f"{c.name}/step")
    for i, shape in zip(carried, shapes):
        value = Value(nodes.emit.unique(f"{step}/in{i}"), c.nodes.value(state[i]).dtype, shape)
        given[i] = (f"{step}/in{i}", 0)
        nodes.values[given[i]] = value
        graph.inputs.append(value)
    made = nodes.call(f"{step}/body", c.attrs.function("body"), given)
    (go, *_) = nodes.call(f"{step}/cond", c.attrs.function("cond"), made)
    ends = [nodes.value(made[i]) for i in carried]
    _no_lists(c, ends, nodes)
    _finish(graph, nodes, [_truth(nodes, nodes.value(go)), *ends])
    return graph, ends
