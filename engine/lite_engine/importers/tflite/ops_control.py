"""Control flow of TFLite.

A loop whose condition follows from constants (the time steps of a recurrent layer) is unrolled: its
counters fold while its body is emitted, so that every step reads its own slice. From the step on
whose condition data decides, it is the operator Loop; such a branch is the operator If.
"""

from __future__ import annotations

from collections.abc import Sequence

from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import DType, Graph, Shape, Value
from .._emit import Emitter
from ._call import Call, Result, builtin
from ._translate import inline

MAX_STEPS = 1024
#: options that name another subgraph
CALLS = ("condition", "body", "then", "other")


@builtin("WHILE", raw=True)
def while_(c: Call) -> Result:
    state: Sequence[Value] = [c.raw(i) for i in range(len(c.op.inputs))]
    for _ in range(MAX_STEPS):
        go = _condition(c, state, c.emit)
        if go.const is None:
            return _loop(c, state, go)
        if not bool(go.const):
            return state
        state = _called(c, "body", state, c.emit)
    raise ModelFormatError(
        tr(
            "tflite: {source}: more than {max_steps} steps",
            source=c.emit.source,
            max_steps=MAX_STEPS,
        )
    )


@builtin("IF", raw=True)
def if_(c: Call) -> Result:
    condition = _truth(c.emit, c.raw(0))
    args = [c.raw(i) for i in range(1, len(c.op.inputs))]
    if condition.const is not None:
        return _called(c, "then" if bool(condition.const) else "other", args, c.emit)
    graphs = [Graph(f"{c.emit.source}/{name}") for name in ("then", "other")]
    answers = [
        _closed(emit, _called(c, name, args, emit))
        for name, emit in zip(("then", "other"), (c.emit.within(g) for g in graphs))
    ]
    if len({len(answer) for answer in answers}) != 1:
        raise ModelFormatError(
            tr(
                "tflite: {source}: its branches have {counts} outputs",
                source=c.emit.source,
                counts=" and ".join(str(len(answer)) for answer in answers),
            )
        )
    outs = c.emit.outputs(
        "If", [condition], len(answers[0]), then_branch=graphs[0], else_branch=graphs[1]
    )
    for out, then, other in zip(outs, *answers):
        _describe(out, then, _common(then.shape, other.shape))
    return outs


def _loop(c: Call, state: Sequence[Value], first: Value) -> Sequence[Value]:
    """`while first: state = body(state); first = condition(state)`"""
    shapes = [value.shape for value in state]
    graph, ends = _body(c, state, shapes)
    changed = [_common(shape, end.shape) for shape, end in zip(shapes, ends)]
    if changed != shapes:
        graph, ends = _body(c, state, changed)
    outs = c.emit.outputs("Loop", [None, first, *state], len(state), body=graph)
    for out, end, shape in zip(outs, ends, changed):
        _describe(out, end, shape)
    return outs


def _body(
    c: Call, state: Sequence[Value], shapes: Sequence[Shape | None]
) -> tuple[Graph, list[Value]]:
    """(iteration, condition, state…) → (condition, state…)"""
    graph = Graph(f"{c.emit.source}/body")
    emit = c.emit.within(graph)
    graph.inputs = [
        Value(emit.unique(f"{c.emit.source}/iteration"), DType.I64, ()),
        Value(emit.unique(f"{c.emit.source}/going_on"), DType.BOOL, ()),
    ]
    given = []
    for value, shape in zip(state, shapes):
        inner = Value(emit.unique(f"{c.emit.source}/in"), value.dtype, shape)
        inner.quant = value.quant
        given.append(inner)
    graph.inputs += given
    ends = _called(c, "body", given, emit)
    if len(ends) != len(given):
        raise ModelFormatError(
            tr(
                "tflite: {source} hands {given} tensors on and gets {made} back",
                source=c.emit.source,
                given=len(given),
                made=len(ends),
            )
        )
    go = _condition(c, ends, emit)
    return graph, _closed(emit, [go, *ends])[1:]


def _called(c: Call, option: str, args: Sequence[Value], emit: Emitter) -> list[Value]:
    source = c.emit.source
    found = inline(c.tensors, c.opt(option), args, emit)
    c.emit.source = source
    return found


def _condition(c: Call, state: Sequence[Value], emit: Emitter) -> Value:
    verdict = _called(c, "condition", state, emit)
    if len(verdict) != 1:
        raise ModelFormatError(
            tr(
                "tflite: {source}: a condition must have one output, found {outputs}",
                source=c.emit.source,
                outputs=len(verdict),
            )
        )
    return _truth(emit, verdict[0])


def _truth(emit: Emitter, value: Value) -> Value:
    return emit.cast(value if value.shape == () else emit.reshape(value, []), DType.BOOL)


def _closed(emit: Emitter, values: Sequence[Value]) -> list[Value]:
    """Ends a graph: its outputs are values of its own, each of them once."""
    graph = emit.graph
    outputs: list[Value] = []
    for value in values:
        own = value.producer is not None and value.producer in graph.nodes
        if not own or any(value is other for other in outputs):
            quant, value = value.quant, emit("Identity", value)
            value.quant = quant
        outputs.append(value)
    graph.outputs = outputs
    return outputs


def _describe(out: Value, like: Value, shape: Shape | None) -> None:
    out.dtype, out.quant = out.dtype or like.dtype, like.quant
    out.shape = out.shape if out.shape is not None else shape


def _common(a: Shape | None, b: Shape | None) -> Shape | None:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b))
