"""Shape arithmetic with symbolic sizes: what is known of a shape's numbers is worked out.

    Shape → Gather → Unsqueeze → Concat → Reshape     becomes     Reshape(x, [0, 197, 3, 64])

Each small integer tensor is followed element by element; an element is a number, a symbol ("batch")
or unknown. A tensor of numbers becomes a constant. The shape of a Reshape may in addition hold one
element that is not a number: −1 stands for it, or 0 where it is the same symbol as the input has
at that place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Dim, DType, Graph, Journal, Node, Value
from ._core import graph_pass
from ._rewrite import constant_like

Elements = list[Dim]
LIMIT_ELEMS = 64


@graph_pass("fold-shapes")
def fold_shapes(graph: Graph, journal: Journal) -> int:
    known: dict[int, Elements] = {}
    count = 0
    for node in graph.nodes:
        elements = _evaluate(node, known)
        if elements is not None and len(elements) <= LIMIT_ELEMS:
            known[id(node.output)] = elements
        if node.op == "Reshape" and _fold_reshape(graph, node, known):
            journal.rewrote("fold-shapes", (node.name,), (node.name,))
            count += 1
    for node in list(graph.nodes):
        out = node.output
        numbers = known.get(id(out))
        if numbers is None or not out.readers or graph.is_output(out):
            continue
        if all(isinstance(e, int) for e in numbers) and out.dtype is not None:
            array = np.array(numbers, out.dtype.np).reshape(() if _is_scalar(out) else (-1,))
            graph.replace_uses(out, constant_like(graph, array, out, "shape"))
            journal.rewrote("fold-shapes", (node.name,))
            count += 1
    return count


def _is_scalar(value: Value) -> bool:
    return value.shape == ()


def _elements(value: Value | None, known: dict[int, Elements]) -> Elements | None:
    if value is None:
        return None
    if value.const is not None:
        if value.const.dtype.kind not in "iu" or value.const.size > LIMIT_ELEMS:
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
    whole = node.output.dtype in (DType.I32, DType.I64)
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
    if data is None or _is_scalar_input(node) or None in limits or step is None:
        return None
    start, stop, stride = limits[0][0], limits[1][0], step[0]  # type: ignore[index]
    if isinstance(start, int) and isinstance(stop, int) and isinstance(stride, int) and stride:
        return data[start:stop:stride]
    return None


def _arithmetic(node: Node, known: dict[int, Elements]) -> Elements | None:
    a, b = _elements(node.inputs[0], known), _elements(node.inputs[1], known)
    if a is None or b is None or (len(a) != len(b) and 1 not in (len(a), len(b))):
        return None
    width = max(len(a), len(b))
    pairs = zip(a * (width // len(a)), b * (width // len(b)))
    return [_compute(node.op, p, q) for p, q in pairs]


def _compute(op: str, p: Any, q: Any) -> Dim:
    if isinstance(p, int) and isinstance(q, int):
        if op == "Add":
            return p + q
        if op == "Sub":
            return p - q
        if op == "Mul":
            return p * q
        return int(p / q) if q else None  # ONNX integer division truncates
    neutral = 0 if op in ("Add", "Sub") else 1
    if q == neutral:
        return p
    return q if p == neutral and op in ("Add", "Mul") else None


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
    **dict.fromkeys(("Add", "Sub", "Mul", "Div"), _arithmetic),
}


def _fold_reshape(graph: Graph, node: Node, known: dict[int, Elements]) -> bool:
    """Replaces a computed shape of which at most one element is not a number."""
    data, shape = node.inputs[0], node.inputs[1]
    elements = known.get(id(shape))
    if elements is None or data is None or node.attrs.get("allowzero", 0):
        return False
    target: list[int] = []
    for i, element in enumerate(elements):
        if isinstance(element, int):
            target.append(element)
        elif isinstance(element, str) and _symbol_at(data, i) == element:
            target.append(0)
        else:
            target.append(-1)
    if target.count(-1) > 1 or all(isinstance(e, int) for e in elements):
        return False
    array = np.array(target, np.int64)
    node.set_input(1, constant_like(graph, array, shape, "shape"))
    return True


def _symbol_at(value: Value, axis: int) -> Dim:
    return value.shape[axis] if value.shape is not None and axis < len(value.shape) else None
