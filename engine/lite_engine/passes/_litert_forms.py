"""Integer operators that only LiteRT's rounding has: DQ → operator → Q(rounding="litert")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..ir import DType, Graph, Node, Value
from ._quantised import Quantized, alike, rounding
from ._rewrite import static_shape

Operands = list[Quantized]


def litert_form(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node]:
    """The integer nodes in place of node → Q; none where floats compute what LiteRT does."""
    form = (_SHARED if y.value.dtype is DType.I16 else _FORMS).get(node.op)
    known = [x for x in inputs if alike(x, y) and x.value.dtype is y.value.dtype]
    data = 1 if node.op in ("Resize", "ReduceMean") else 2
    if form is None or len(known) != data or node.attrs.get("activation"):
        return []
    return form(graph, node, q, known, y)


def _two_operands(
    graph: Graph, node: Node, q: Node, operands: Operands, y: Quantized
) -> list[Node]:
    a, b = operands
    inputs = [a.value, a.scale, a.zero, b.value, b.scale, b.zero, y.scale, y.zero]
    name = "QLinearBatchMatMul" if node.op == "MatMul" else f"QLinear{node.op}"
    return [graph.replace([node, q], name, inputs, name=node.name)]


def _matmul(graph: Graph, node: Node, q: Node, operands: Operands, y: Quantized) -> list[Node]:
    """A constant matrix is a dense layer's, which XNNPACK computes; so is a vector's product."""
    a, b = (x.value for x in operands)
    if b.is_const or a.shape is None or b.shape is None or min(len(a.shape), len(b.shape)) < 2:
        return []
    return _two_operands(graph, node, q, operands, y)


def _resize(graph: Graph, node: Node, q: Node, operands: Operands, y: Quantized) -> list[Node]:
    """Linear, of rows and columns, with one scale."""
    (x,), size = operands, static_shape(node.output)
    if node.attrs.get("mode") != "linear" or not x.same_as(y) or size is None or len(size) != 4:
        return []
    if x.value.shape is None or tuple(size[:2]) != tuple(x.value.shape[:2]):
        return []
    mode = node.attrs.get("coordinate_transformation_mode", "half_pixel")
    attrs = {"size": list(size[2:]), "coordinate_transformation_mode": mode}
    return [graph.replace([node, q], "QLinearResize", [x.value], attrs, name=node.name)]


def _mean(graph: Graph, node: Node, q: Node, operands: Operands, y: Quantized) -> list[Node]:
    """Neighbouring axes as the spatial axis of a global pooling, which sums integers."""
    (x,) = operands
    shape, out = static_shape(x.value), static_shape(node.output)
    axes = node.input(1)
    if shape is None or out is None or axes is None or axes.const is None or not axes.const.size:
        return []
    taken = sorted({int(a) % len(shape) for a in axes.const.ravel()})
    first, last = taken[0], taken[-1]
    if taken != list(range(first, last + 1)) or 0 in shape:
        return []
    outer, count, inner = (
        int(np.prod(part)) for part in (shape[:first], shape[first : last + 1], shape[last + 1 :])
    )
    made: list[Node] = []

    def add(op: str, value: Value, attrs: dict, *rest: Value) -> Value:
        node_made = graph.add(
            op, [value, *rest], attrs, name=graph.unique(node.name), sources=node.sources, before=q
        )
        made.append(node_made)
        return node_made.output

    def numbers(*values: int) -> Value:
        return graph.constant(np.array(values, np.int64), graph.unique(f"{node.name}.shape"))

    value = add("Reshape", x.value, {}, numbers(outer, count, inner))
    value = add("Transpose", value, {"perm": [0, 2, 1]})
    rounds = {"rounding": rounding(q)}
    value = add("QLinearGlobalAveragePool", value, rounds, x.scale, x.zero, y.scale, y.zero)
    made.append(graph.replace([node, q], "Reshape", [value, numbers(*out)], name=node.name))
    return made


Form = Callable[[Graph, Node, Node, Operands, Quantized], list[Node]]
#: Of bytes and, as LiteRT has these, of 16 bits.
_SHARED: dict[str, Form] = {"MatMul": _matmul, "ReduceMean": _mean, "Resize": _resize}
_FORMS: dict[str, Form] = {
    **_SHARED,
    "PRelu": _two_operands,
    "SquaredDifference": _two_operands,
}
