"""If, Loop and Scan: their types, and how a backend interprets them.

`run_control_flow(node, arrays, run_subgraph)` gets a function that runs a Graph on a list of arrays
and returns its outputs; values that a subgraph captures are that function's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError, not_computed
from ..ir import Graph, Node, Shape, TypeInfo, Value
from ._core import REQUIRED, SUBGRAPH, define_op
from ._helpers import normalise_axis, wide
from ._infer import infer_types
from .softmax import softmax

Array = np.ndarray
RunSubgraph = Callable[[Graph, Sequence[Array]], list[Array]]

if_op = define_op(
    "If",
    inputs="condition",
    outputs="*ys",
    attrs={"then_branch": SUBGRAPH, "else_branch": SUBGRAPH},
    source="ONNX If-25",
)
loop = define_op(
    "Loop", inputs="trip_count? condition? *initial", outputs="*ys", attrs={"body": SUBGRAPH},
    source="ONNX Loop-25",
)  # fmt: skip
scan = define_op(
    "Scan",
    inputs="*xs",
    outputs="*ys",
    attrs={
        "body": SUBGRAPH,
        "num_scan_inputs": REQUIRED,
        "scan_input_axes": [],
        "scan_input_directions": [],
        "scan_output_axes": [],
        "scan_output_directions": [],
        "directions": [],  # Scan-8's name of scan_input_directions
        "batched": 0,  # Scan-8: everything has a leading batch axis
    },
    source="ONNX Scan-25 and Scan-8",
)


# ---- types


def _common(a: Shape | None, b: Shape | None) -> Shape | None:
    """What two shapes agree on."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b))


def _learn(value: Value, given: TypeInfo) -> None:
    """A subgraph input that the file leaves untyped has the type of what it is given."""
    value.dtype = value.dtype or given.dtype
    value.shape = given.shape if value.shape is None else value.shape


def _known(value: Value) -> TypeInfo:
    return value.type  # raises ShapeError when the element type is not known


@if_op.infer
def _(
    condition: TypeInfo, *, then_branch: Graph, else_branch: Graph, n_outputs: int
) -> list[TypeInfo]:
    infer_types(then_branch)
    infer_types(else_branch)
    if not len(then_branch.outputs) == len(else_branch.outputs) == n_outputs:
        raise ShapeError(
            tr(
                "both branches must have the same number of outputs as the node, found "
                "{count} and {values}",
                count=len(then_branch.outputs),
                values=len(else_branch.outputs),
            )
        )
    out = []
    for a, b in zip(then_branch.outputs, else_branch.outputs):
        left, right = _known(a), _known(b)
        if left.dtype is not right.dtype:
            raise ShapeError(
                tr(
                    "the branches have outputs of different types, {one} and {other}",
                    one=left.dtype,
                    other=right.dtype,
                )
            )
        out.append(TypeInfo(left.dtype, _common(left.shape, right.shape)))
    return out


@loop.infer
def _(
    trip_count: TypeInfo | None,
    condition: TypeInfo | None,
    *initial: TypeInfo | None,
    body: Graph,
    n_outputs: int,
) -> list[TypeInfo]:
    for value, given in zip(body.inputs[2:], initial):
        if value.dtype is None and given is not None:
            value.dtype = given.dtype
    infer_types(body)
    results = [_known(v) for v in body.outputs[1:]]
    carried = [
        TypeInfo(r.dtype, _common(r.shape, i.shape if i is not None else None))
        for r, i in zip(results, initial)
    ]
    scanned = [
        r.with_shape(None if r.shape is None else (None, *r.shape)) for r in results[len(initial) :]
    ]
    return [*carried, *scanned][:n_outputs]


@scan.infer
def _(
    *xs: TypeInfo,
    body: Graph,
    num_scan_inputs: int,
    scan_output_axes: list[int],
    batched: int,
    n_outputs: int,
    **attrs: Any,
) -> list[TypeInfo]:
    states = len(xs) - num_scan_inputs
    if not batched:
        for value, state in zip(body.inputs, xs[:states]):
            _learn(value, state)  # states keep their shape from step to step
        axes = _padded(attrs["scan_input_axes"], num_scan_inputs)
        for value, x, axis in zip(body.inputs[states:], xs[states:], axes):
            at = normalise_axis(axis, x.rank)
            _learn(value, x.with_shape((*x.dims[:at], *x.dims[at + 1 :])))
    infer_types(body)
    results = [_known(v) for v in body.outputs]
    if batched:
        return [r.with_shape(None) for r in results][:n_outputs]
    axes = _padded(attrs["scan_input_axes"], num_scan_inputs)
    steps = xs[states].dims[axes[0] % max(1, xs[states].rank)] if num_scan_inputs else None
    out = [x.with_shape(_common(x.shape, r.shape)) for x, r in zip(xs, results[:states])]
    for r, axis in zip(results[states:], _padded(scan_output_axes, len(results) - states)):
        shape = None
        if r.shape is not None:
            at = axis % (len(r.shape) + 1)
            shape = (*r.shape[:at], steps, *r.shape[at:])
        out.append(r.with_shape(shape))
    return out[:n_outputs]


def _padded(values: list[int], count: int) -> list[int]:
    return [*values, *[0] * (count - len(values))]


flex_attention = define_op(
    "FlexAttention",
    inputs="q k v",
    attrs={"prob_mod": None, "scale": None, "score_mod": None, "softmax_precision": None},
    source="ai.onnx.preview FlexAttention-1",
)
flex_attention.infer(lambda q, k, v, **_: q.with_shape((*q.dims[:3], v.dims[3])))


@flex_attention.reference
def _(q: Array, k: Array, v: Array, **attrs: Any) -> list[Array]:
    """Without score_mod and prob_mod; with them it is control flow"""
    return _run_flex_attention(attrs, (q, k, v), lambda graph, arrays: list(arrays))


# ---- interpretation


def run_control_flow(
    node: Node, inputs: Sequence[Array | None], run_subgraph: RunSubgraph
) -> list[Array]:
    """Outputs of an If, Loop, Scan or FlexAttention node. Raises ShapeError."""
    try:
        return _interpreted(node, inputs, run_subgraph)
    except (ArithmeticError, IndexError, MemoryError, TypeError, ValueError) as error:
        raise not_computed(error, f"{node.name} ({node.op})") from error


def _interpreted(
    node: Node, inputs: Sequence[Array | None], run_subgraph: RunSubgraph
) -> list[Array]:
    if node.op == "If":
        return _run_if(node, inputs, run_subgraph)
    if node.op == "Loop":
        return _run_loop(node, inputs, run_subgraph)
    if node.op == "Scan":
        given = scan.filled_attrs(node)
        return (
            _run_batches(given, inputs, run_subgraph)
            if given["batched"]
            else _run_scan(given, inputs, run_subgraph)
        )
    if node.op == "FlexAttention":
        return _run_flex_attention(flex_attention.filled_attrs(node), inputs, run_subgraph)
    raise ShapeError(tr("{node} is not a control-flow operator", node=node.op), where=node.name)


def check_counts(node: Node) -> None:
    """Raises ShapeError for an If, Loop or Scan whose bodies have another number of inputs than
    they are given, or fewer outputs than are read, whatever types the file declares."""
    if node.op not in ("If", "Loop", "Scan"):
        return
    given = sum(v is not None for v in node.inputs[{"If": 1, "Loop": 2}.get(node.op, 0) :])
    states = given  # what goes from step to step
    if node.op == "Scan":
        count = scan.filled_attrs(node)["num_scan_inputs"]
        if not 1 <= count <= given:
            raise ShapeError(
                tr("num_scan_inputs must be between 1 and {given}, got {count}",
                   given=given, count=count),
                where=node.name,
            )  # fmt: skip
        states = given - count
    takes = given + (2 if node.op == "Loop" else 0)  # the step's number and the condition
    gives = max(states, len(node.outputs)) + (1 if node.op == "Loop" else 0)
    for name, body in node.subgraphs():
        if len(body.inputs) != takes:
            raise ShapeError(
                tr("expected {takes} inputs of the {name} of {op}, found {found}", takes=takes,
                   name=name, op=node.op, found=len(body.inputs)),
                where=node.name,
            )  # fmt: skip
        if len(body.outputs) < gives:
            raise ShapeError(
                tr("expected at least {gives} outputs of the {name} of {op}, found {found}",
                   gives=gives, name=name, op=node.op, found=len(body.outputs)),
                where=node.name,
            )  # fmt: skip


def check_control(node: Node) -> None:
    """Raises ShapeError for an If or Loop whose condition is no truth value, or whose number of
    steps is no integer, as far as their types are known."""
    wanted = {"If": (("condition", "b"),), "Loop": ((tr("trip count"), "iu"), ("condition", "b"))}
    for (what, kinds), value in zip(wanted.get(node.op, ()), node.inputs):
        if value is None or value.dtype is None:
            continue
        sizes = [d for d in value.shape or () if isinstance(d, int)]
        if value.dtype.np.kind not in kinds or any(d != 1 for d in sizes):
            kind = tr("one truth value") if kinds == "b" else tr("one integer")
            raise ShapeError(
                tr(
                    "{node} ({op}): its {what} is {type}, not {kind}",
                    node=node.name,
                    op=node.op,
                    what=what,
                    type=value.type,
                    kind=kind,
                )
            )


def _scalar(node: Node, what: str, kinds: str, array: Array) -> Any:
    if array.dtype.kind not in kinds or array.size != 1:
        kind = tr("one truth value") if kinds == "b" else tr("one integer")
        found = f"{array.dtype}{list(array.shape)}"
        raise ShapeError(
            tr(
                "{node} ({op}): its {what} is {found}, not {kind}",
                node=node.name,
                op=node.op,
                what=what,
                found=found,
                kind=kind,
            )
        )
    return array.item()


def _run_if(node: Node, inputs: Sequence[Array | None], run_subgraph: RunSubgraph) -> list[Array]:
    assert inputs[0] is not None
    taken = "then_branch" if _scalar(node, "condition", "b", inputs[0]) else "else_branch"
    return run_subgraph(if_op.filled_attrs(node)[taken], [])


def _run_loop(node: Node, inputs: Sequence[Array | None], run_subgraph: RunSubgraph) -> list[Array]:
    """for i in range(trip_count): if not condition: break; condition, states, scans = body(i, …)"""
    body: Graph = loop.filled_attrs(node)["body"]
    given = [*inputs, None, None][: max(2, len(inputs))]
    limit = None if given[0] is None else _scalar(node, tr("trip count"), "iu", given[0])
    alive = given[1] is None or _scalar(node, "condition", "b", given[1])
    states = [s for s in given[2:] if s is not None]
    scans: list[list[Array]] = [[] for _ in range(len(body.outputs) - 1 - len(states))]
    i = 0
    while alive and (limit is None or i < limit):
        out = run_subgraph(body, [np.array(i, np.int64), np.array(alive), *states])
        alive = bool(out[0].item())
        states = out[1 : 1 + len(states)]
        for parts, part in zip(scans, out[1 + len(states) :]):
            parts.append(part)
        i += 1
    return [*states, *(_stack(p, v, 0) for p, v in zip(scans, body.outputs[1 + len(states) :]))]


def _stack(parts: list[Array], value: Value, axis: int) -> Array:
    if parts:
        return np.stack(parts, axis)
    dims = tuple(d if isinstance(d, int) else 0 for d in value.shape or ())
    return np.zeros((0, *dims), value.type.dtype.np)


def _run_scan(
    attrs: dict[str, Any], inputs: Sequence[Array | None], run_subgraph: RunSubgraph
) -> list[Array]:
    """States go from step to step; scan inputs are cut, scan outputs joined, along their axes."""
    body, count = attrs["body"], attrs["num_scan_inputs"]
    states = [s for s in inputs[: len(inputs) - count] if s is not None]
    axes = _padded(attrs["scan_input_axes"], count)
    backwards = _padded(attrs["scan_input_directions"] or attrs["directions"], count)
    sequences = []
    for x, axis, back in zip(inputs[len(inputs) - count :], axes, backwards):
        assert x is not None
        moved = np.moveaxis(x, axis, 0)
        sequences.append(moved[::-1] if back else moved)
    steps = {s.shape[0] for s in sequences}
    if len(steps) > 1:
        raise ShapeError(tr("scan inputs have {steps} steps", steps=sorted(steps)))
    outs: list[list[Array]] = [[] for _ in range(len(body.outputs) - len(states))]
    for i in range(steps.pop() if steps else 0):
        out = run_subgraph(body, [*states, *(s[i] for s in sequences)])
        states = out[: len(states)]
        for parts, part in zip(outs, out[len(states) :]):
            parts.append(part)
    joined = []
    out_axes = _padded(attrs["scan_output_axes"], len(outs))
    out_backwards = _padded(attrs["scan_output_directions"], len(outs))
    for parts, value, axis, back in zip(outs, body.outputs[len(states) :], out_axes, out_backwards):
        joined.append(_stack(parts[::-1] if back else parts, value, axis))
    return [*states, *joined]


def _run_batches(
    attrs: dict[str, Any], inputs: Sequence[Array | None], run_subgraph: RunSubgraph
) -> list[Array]:
    """Scan-8: one scan per element of the leading batch axis."""
    given = [x for x in inputs if x is not None]
    runs = [_run_scan(attrs, [x[b] for x in given], run_subgraph) for b in range(given[0].shape[0])]
    return [np.stack(parts) for parts in zip(*runs)]


def _run_flex_attention(
    attrs: dict[str, Any], inputs: Sequence[Array | None], run_subgraph: RunSubgraph
) -> list[Array]:
    """softmax(score_mod(q·kᵀ·scale)) → prob_mod → ·v; groups of q heads share k and v heads"""
    q, k, v = (np.asarray(a) for a in inputs)
    precision = attrs["softmax_precision"]
    work = precision.np if precision is not None else np.result_type(q, np.float32)
    group = q.shape[1] // max(1, k.shape[1])
    scale = attrs["scale"] or 1 / np.sqrt(q.shape[-1])
    keys, values = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = (np.matmul(wide(q), wide(keys).swapaxes(-1, -2)) * scale).astype(work)
    if attrs["score_mod"] is not None:
        (scores,) = run_subgraph(attrs["score_mod"], [scores])
    chance = softmax(scores, -1).astype(work)
    if attrs["prob_mod"] is not None:
        (chance,) = run_subgraph(attrs["prob_mod"], [chance])
    return [np.matmul(chance.astype(wide(v).dtype), wide(values)).astype(q.dtype)]
