"""Control flow: `while` becomes Loop, `conditional_block` with `select_input` becomes If.

Blocks are translated into graphs that may read the values around them. Tensor arrays exist while
translating only: their indices must be constants.
"""

from __future__ import annotations

from lite_messages import tr

from ....ir import DType, Graph, Shape, Value
from ..program import Op
from ..registry import Call, translate_block, translates


def _block(op: Op, call: Call) -> int:
    block = op.attrs.get("sub_block")
    if not isinstance(block, int):
        raise call.unsupported(tr("it has no block"))
    return block


@translates("conditional_block", "conditional_block_infer")
def _(op: Call) -> None:
    """Only noted: the values come into being where they are chosen."""
    _block(op.op, op)
    for name in op.op.outputs.get("Out", ()):
        op.scope.branches[name] = op.op


def _branch(call: Call, name: str) -> tuple[Graph, Value]:
    """A graph that makes one variable: by its block, or by handing on what it holds already."""
    scope = call.scope
    graph = Graph(f"{call.source}/{name}")
    made_by = scope.branches.get(name)
    if made_by is None:
        value = scope.read(name)
        graph.outputs = [graph.add("Identity", [value], sources=(call.source,)).output]
        graph.outputs[0].dtype, graph.outputs[0].shape = value.dtype, value.shape
        return graph, graph.outputs[0]
    child = scope.child(_block(made_by, call), graph)
    translate_block(child)
    value = child.read(name)
    if value.producer is None or value.producer not in graph.nodes:
        value = child.emit("Identity", value)
    graph.outputs = [value]
    return graph, value


@translates("select_input")
def _(op: Call) -> None:
    """Out = X[Mask], and X are results of branches"""
    names, mask = op.op.inputs.get("X", []), op.need("Mask")
    if len(names) != 2:
        raise op.unsupported(
            tr("it selects from {values} values, but only two are supported", values=len(names))
        )
    otherwise, then = (_branch(op, n) for n in names)
    y = op.node(
        "If", [op.cast(op.to_shape(mask, []), DType.BOOL)],
        then_branch=then[0], else_branch=otherwise[0],
    )  # fmt: skip
    y.dtype = then[1].dtype or otherwise[1].dtype
    if y.shape is None:
        y.shape = _common(then[1].shape, otherwise[1].shape)
    op.set("Out", y)


def _common(a: Shape | None, b: Shape | None) -> Shape | None:
    """What two shapes agree on, None when their ranks differ."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b))


@translates("while")
def _(op: Call) -> None:
    """Loop whose carried values are the variables that the block writes and the outside knows."""
    scope = op.scope
    condition = op.op.inputs.get("Condition", [""])[0]
    index = _block(op.op, op)
    if not 0 < index < len(scope.program.blocks):
        raise op.unsupported(tr("block {index} does not exist", index=index))
    block = scope.program.blocks[index]
    written = {n for inner in block.ops for names in inner.outputs.values() for n in names}
    carried = sorted(n for n in written if n != condition and scope.has(n))
    if any(n in scope.arrays for n in carried):
        raise op.unsupported(
            tr("it carries tensor arrays through a loop; unroll it when exporting")
        )
    starts = [scope.read(n) for n in carried]
    shapes = [v.shape for v in starts]
    body, ends = _body(op, index, condition, carried, starts, shapes)
    changed = [_common(a, v.shape) for a, v in zip(shapes, ends)]
    if changed != shapes:
        body, _ = _body(op, index, condition, carried, starts, changed)
    first = op.cast(op.to_shape(scope.read(condition), []), DType.BOOL)
    outs = op.nodes("Loop", [None, first, *starts], len(carried), body=body)
    for name, out, start, shape in zip(carried, outs, starts, changed):
        out.dtype = out.dtype or start.dtype
        out.shape = out.shape if out.shape is not None else shape
        scope.bind(name, out)


def _body(
    op: Call, index: int, condition: str, carried: list[str], starts: list[Value],
    shapes: list[Shape | None],
) -> tuple[Graph, list[Value]]:  # fmt: skip
    """(iteration, condition, carried…) → (condition, carried…)"""
    graph = Graph(f"{op.source}/body")
    child = op.scope.child(index, graph)
    graph.inputs = [Value("iteration", DType.I64, ()), Value("going_on", DType.BOOL, ())]
    for name, start, shape in zip(carried, starts, shapes):
        value = Value(child.emit.unique(f"{name}/in"), start.dtype, shape)
        child.values[name] = value
        graph.inputs.append(value)
    translate_block(child)
    flag = child.emit.cast(child.emit("Reshape", child.read(condition), []), DType.BOOL)
    ends = [child.read(n) for n in carried]
    seen: set[int] = set()
    for value in [flag, *ends]:
        if value.producer is None or value.producer not in graph.nodes or id(value) in seen:
            value = child.emit("Identity", value)
        seen.add(id(value))
        graph.outputs.append(value)
    return graph, ends


@translates("write_to_array")
def _(op: Call) -> None:
    name = op.out_name("Out") or ""
    at = op.fixed_int(op["I"], tr("the index into a tensor array"))
    items = op.scope.arrays.setdefault(name, [])
    if not 0 <= at <= len(items):
        raise op.unsupported(
            tr("it writes element {at} of an array of {count}", at=at, count=len(items))
        )
    items[at:] = [op.need("X"), *items[at + 1 :]]


@translates("read_from_array")
def _(op: Call) -> None:
    items = op.scope.arrays.get((op.op.inputs.get("X") or [""])[0], [])
    at = op.fixed_int(op["I"], tr("the index into a tensor array"))
    if not 0 <= at < len(items):
        raise op.unsupported(
            tr("it reads element {at} of an array of {count}", at=at, count=len(items))
        )
    op.set("Out", items[at])


@translates("lod_array_length")
def _(op: Call) -> None:
    items = op.scope.arrays.get((op.op.inputs.get("X") or [""])[0], [])
    op.set("Out", op.const([len(items)]))


@translates("tensor_array_to_tensor")
def _(op: Call) -> None:
    items = op.scope.arrays.get((op.op.inputs.get("X") or [""])[0], [])
    axis = int(op.attr("axis", 0))
    if not items:
        raise op.unsupported(tr("it concatenates an empty tensor array"))
    if op.flag("use_stack"):
        items = [op.node("Unsqueeze", [v, op.const([axis])]) for v in items]
    op.set("Out", op.node("Concat", items, axis=axis))
