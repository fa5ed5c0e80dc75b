"""Shape arithmetic with symbolic sizes: what is known of a shape's numbers is worked out.

    Shape → Gather → Unsqueeze → Concat → Reshape     becomes     Reshape(x, [0, 197, 3, 64])

Each small integer tensor is followed element by element; an element is a number, a symbol ("batch")
or unknown. A tensor of numbers becomes a constant. The shape of a Reshape may in addition hold one
element that is not a number: −1 stands for it, or 0 where it is the same symbol as the input has
at that place.

What is found out gives shapes to operators whose sizes are values (Reshape, Expand, Slice), so that
the nodes behind them are worked out in the same sweep; nodes that read constants only fold on the
way.
"""

from __future__ import annotations

import numpy as np

from ..errors import ShapeError
from ..ir import Dim, DType, Graph, Journal, Node, Shape, Value
from ..ops import fold_node, infer_outputs, nested_graphs
from ..ops._helpers import (
    broadcast_shapes,
    elements_of,
    reshape_target,
    slice_of,
    symbol_limited,
    symbol_product,
    symbol_quotient,
)
from ._core import graph_pass
from ._rewrite import constant_like
from .fold_constants import KEEP

Elements = list[Dim]
LIMIT_ELEMS = 64


@graph_pass("fold-shapes")
def fold_shapes(graph: Graph, journal: Journal) -> int:
    known: dict[int, Elements] = {}
    count, nested = 0, nested_graphs(graph)
    told = False  # of a shape that was not known before
    for node in list(graph.nodes):
        if count or told:
            infer_outputs(node)  # with what was found out about the nodes before it
        if node.op not in KEEP and fold_node(graph, node, nested):
            journal.rewrote("fold-shapes", (node.name,))
            count += 1
            continue
        elements = _evaluate(node, known)
        if elements is not None and len(elements) <= LIMIT_ELEMS:
            known[id(node.output)] = elements
        if node.op == "Reshape" and _fold_reshape(graph, node, known):
            infer_outputs(node)
            journal.rewrote("fold-shapes", (node.name,), (node.name,))
            count += 1
        if (sized := _SIZED.get(node.op)) is not None:
            shape, node.output.shape = node.output.shape, sized(node, known)
            told = told or node.output.shape != shape
        if _replace_by_numbers(graph, node.output, known.get(id(node.output))):
            journal.rewrote("fold-shapes", (node.name,))
            count += 1
    return count


def _replace_by_numbers(graph: Graph, out: Value, elements: Elements | None) -> bool:
    """A constant in the place of a value whose elements are all known."""
    if elements is None or out.dtype is None or not out.readers or graph.is_output(out):
        return False
    if not all(isinstance(e, int) for e in elements):
        return False
    array = np.array(elements, out.dtype.np).reshape(() if _is_scalar(out) else (-1,))
    graph.replace_uses(out, constant_like(graph, array, out, "shape"))
    return True


def _is_scalar(value: Value) -> bool:
    return value.shape == ()


def _elements(value: Value | None, known: dict[int, Elements]) -> Elements | None:
    if value is None:
        return None
    if value.const is not None:
        if value.const.dtype.kind not in "iub" or value.const.size > LIMIT_ELEMS:
            return None
        return [int(v) for v in value.const.ravel()]
    return known.get(id(value))


def _evaluate(node: Node, known: dict[int, Elements]) -> Elements | None:
    """The elements of the node's output, None when it is no small integer tensor."""
    handler = _HANDLERS.get(node.op)
    if handler is None or node.output.shape is None or len(node.output.shape) > 1:
        return None
    return handler(node, known)


def _shape(node: Node, known: dict[int, Elements]) -> Elements | None:
    value = node.inputs[0]
    if value is None or value.shape is None:
        return None
    start, end = node.attrs.get("start", 0), node.attrs.get("end")
    return list(value.shape)[start:end]


def _same(node: Node, known: dict[int, Elements]) -> Elements | None:
    return _elements(node.inputs[0], known)


def _cast(node: Node, known: dict[int, Elements]) -> Elements | None:
    whole = node.output.dtype in (DType.I32, DType.I64, DType.F32, DType.F64)
    return _elements(node.inputs[0], known) if whole else None


def _gather(node: Node, known: dict[int, Elements]) -> Elements | None:
    data, index = _elements(node.inputs[0], known), node.inputs[1]
    if data is None or index is None or index.const is None or _is_scalar_input(node):
        return None
    at = [int(i) for i in index.const.ravel()]
    return [data[i] for i in at] if all(-len(data) <= i < len(data) for i in at) else None


def _is_scalar_input(node: Node) -> bool:
    value = node.inputs[0]
    return value is not None and value.shape is not None and len(value.shape) != 1


def _concat(node: Node, known: dict[int, Elements]) -> Elements | None:
    out: Elements = []
    for value in node.inputs:
        part = _elements(value, known)
        if part is None:
            return None
        out += part
    return out


def _slice(node: Node, known: dict[int, Elements]) -> Elements | None:
    data = _elements(node.inputs[0], known)
    limits = [_elements(node.input(i), known) for i in (1, 2)]
    step = [1] if node.input(4) is None else _elements(node.input(4), known)
    if data is None or _is_scalar_input(node):
        return None
    if any(part is None or len(part) != 1 for part in (*limits, step)):
        return None
    start, stop, stride = limits[0][0], limits[1][0], step[0]  # type: ignore[index]
    if isinstance(start, int) and isinstance(stop, int) and isinstance(stride, int) and stride:
        return data[slice_of(start, stop, stride, len(data))]
    return None


def _arithmetic(node: Node, known: dict[int, Elements]) -> Elements | None:
    if any(v is None or v.dtype in (DType.F32, DType.F64) for v in node.inputs):
        return None  # numbers of floats are whole where they are only moved
    a, b = _elements(node.inputs[0], known), _elements(node.inputs[1], known)
    pairs = None if a is None or b is None else _paired([a, b])
    return None if pairs is None else [_compute(node.op, p, q) for p, q in pairs]


def _compute(op: str, p: Dim, q: Dim) -> Dim:
    if isinstance(p, int) and isinstance(q, int):
        return _number(op, p, q)
    if op == "Equal":
        return _equal(p, q)
    if op in ("Add", "Mul") and isinstance(p, int):
        p, q = q, p
    if q == (0 if op in ("Add", "Sub") else 1):
        return p
    if isinstance(p, str) and isinstance(q, int) and q > 0:  # what stays is no less than 0
        if op == "Add":
            return symbol_quotient(p, q, 1)
        if op == "Mul":
            return symbol_product(p, q)
        if op == "Div":
            return symbol_quotient(p, 0, q)
    return 0 if op == "Sub" and p is not None and p == q else None


def _number(op: str, p: int, q: int) -> Dim:
    if op == "Div":  # ONNX integer division truncates
        return int(p / q) if q else None
    return {"Add": p + q, "Sub": p - q, "Mul": p * q, "Equal": int(p == q)}[op]


def _equal(p: Dim, q: Dim) -> Dim:
    """1, 0 or None; a size is never negative."""
    if p is None or q is None:
        return None
    if p == q:
        return 1
    return 0 if any(isinstance(e, int) and e < 0 for e in (p, q)) else None


def _where(node: Node, known: dict[int, Elements]) -> Elements | None:
    parts = [_elements(value, known) for value in node.inputs]
    if any(part is None for part in parts):
        return None
    choices = _paired([part for part in parts if part is not None])
    if choices is None:
        return None
    return [(p if c else q) if c is not None or p == q else None for c, p, q in choices]


def _paired(parts: list[Elements]) -> list[tuple[Dim, ...]] | None:
    """Element by element, those of one element repeated; None where lengths do not fit."""
    width = max(map(len, parts))
    if any(len(part) not in (1, width) for part in parts):
        return None
    return list(zip(*(part if len(part) == width else part * width for part in parts)))


_HANDLERS = {
    "Shape": _shape,
    "Cast": _cast,
    "Identity": _same,
    "Reshape": _same,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Where": _where,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Equal"), _arithmetic),
}


def _asked(node: Node, known: dict[int, Elements]) -> Shape | None:
    """The output's shape, with what is known of the elements of the shape asked for."""
    at = 0 if node.op == "ConstantOfShape" else 1
    data, elements = node.inputs[0], _elements(node.input(at), known)
    found = node.output.shape
    if elements is None or data is None:
        return found
    wanted: Shape | None = tuple(elements)
    if node.op == "Expand":
        try:
            wanted = broadcast_shapes(data.shape, wanted)
        except ShapeError:
            return found  # what does not fit is told where the model runs
    elif node.op == "Reshape":
        wanted = tuple(_meant(node, data, elements))
    if wanted is None or found is None:
        return found if wanted is None else wanted
    return tuple(w if f is None else f for f, w in zip(found, wanted))


def _meant(node: Node, data: Value, elements: Elements) -> Elements:
    """A Reshape's sizes, with what 0 and −1 stand for, where that is known."""
    out = list(elements)
    if not node.attrs.get("allowzero", 0):
        out = [_size_at(data, i) if e == 0 else e for i, e in enumerate(elements)]
    return [_left(data.shape, out) if e == -1 else e for e in out]


def _left(have: Shape | None, elements: Elements) -> Dim:
    """What −1 stands for: all elements of `have` over those that the other sizes hold. (b, 2, 2, n)
    to (b, −1, n) leaves 4. None where that is no size or one of two symbols."""
    total = None if have is None else elements_of(have)
    over = elements_of(e for e in elements if e != -1)
    if total is None or over is None or not total[0] or not over[0] or over[1] - total[1]:
        return None
    symbols = list((total[1] - over[1]).elements())
    times, rest = divmod(total[0], over[0])
    if rest or len(symbols) > 1:
        return None
    return symbol_product(symbols[0], times) if symbols else times


def _counted(node: Node, known: dict[int, Elements]) -> Shape | None:
    """0, 1, … n − 1"""
    start, end, step = node.inputs
    limit = _elements(end, known)
    from_zero = _is(start, 0) and _is(step, 1)
    return tuple(limit) if from_zero and limit else node.output.shape


def _is(value: Value | None, number: int) -> bool:
    return value is not None and value.const is not None and bool((value.const == number).all())


def _tiled(node: Node, known: dict[int, Elements]) -> Shape | None:
    """Each size so often as is asked for: one of 1 as often as there are samples."""
    x, times, found = node.inputs[0], _elements(node.input(1), known), node.output.shape
    if x is None or x.shape is None or times is None or len(x.shape) != len(times):
        return found
    made = (_compute("Mul", size, n) for size, n in zip(x.shape, times))
    return tuple(m if f is None else f for f, m in zip(found or (None,) * len(times), made))


def _cut(node: Node, known: dict[int, Elements]) -> Shape | None:
    """The first n of an axis: of a table of 64 positions that many, or 64."""
    x, found = node.inputs[0], node.output.shape
    starts, ends, axes, steps = (_elements(node.input(i), known) for i in (1, 2, 3, 4))
    if x is None or x.shape is None or found is None or starts is None or ends is None:
        return found
    if (axes is None) != (node.input(3) is None) or (steps is None) != (node.input(4) is None):
        return found
    out = list(found)
    for i, end in enumerate(ends):
        axis = i if axes is None else axes[i]
        plain = starts[i] == 0 and (steps is None or steps[i] == 1)
        if not (plain and isinstance(end, str) and isinstance(axis, int)):
            continue
        size = x.shape[axis]
        if isinstance(size, int):
            out[axis] = symbol_limited(end, size)
        elif size == end:
            out[axis] = end
    return tuple(out)


#: Operators whose output has sizes that are values → its shape, as far as they are known.
_SIZED = {
    "ConstantOfShape": _asked,
    "Expand": _asked,
    "Range": _counted,
    "Reshape": _asked,
    "Slice": _cut,
    "Tile": _tiled,
}


def _fold_reshape(graph: Graph, node: Node, known: dict[int, Elements]) -> bool:
    """Replaces a computed shape of which at most one element is not a number."""
    data, shape = node.inputs[0], node.inputs[1]
    elements = known.get(id(shape))
    if elements is None or data is None or all(isinstance(e, int) for e in elements):
        return False
    target = reshape_target(_meant(node, data, elements), data.shape)
    if target is None:
        return False
    array = np.array(target, np.int64)
    node.attrs.pop("allowzero", None)
    node.set_input(1, constant_like(graph, array, shape, "shape"))
    return True


def _size_at(value: Value, axis: int) -> Dim:
    return value.shape[axis] if value.shape is not None and axis < len(value.shape) else None
