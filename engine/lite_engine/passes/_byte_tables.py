"""Functions of one byte as a table of its 256 answers (QLookup)."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import DType, Graph, Node, Value
from ..ops import find_op, run_node
from ..ops.litert_functions import FUNCTIONS
from ._quantised import EIGHT_BITS, Quantized, dequantised, is_bytes, rounding, written


def _table(
    x: Quantized, y: Quantized, node: Node | None, numbers: dict[int, np.ndarray] | None = None
) -> list[int]:
    """Answers of a unary node (None: the identity) for all 256 inputs; `numbers` are its operands
    by position, where x is the one that is missing."""
    real = _real_numbers(x)
    if node is not None and numbers is not None:
        real = run_node(node, [numbers.get(i, real) for i in range(len(node.inputs))])[0]
    elif node is not None:
        rest = [None if v is None else v.const for v in node.inputs[1:]]
        real = run_node(node, [real, *rest])[0]
    return _steps(real, y)


def _real_numbers(x: Quantized) -> np.ndarray:
    """What the 256 bytes stand for, the lowest first."""
    scale, zero = x.scalar
    return (_every_number(x) - zero).astype(np.float32) * np.float32(scale)


def _every_number(x: Quantized) -> np.ndarray:
    assert x.value.dtype is not None
    info = np.iinfo(x.value.dtype.np)
    return np.arange(info.min, info.max + 1)


def _steps(real: np.ndarray, y: Quantized) -> list[int]:
    assert y.value.dtype is not None
    info, (scale, zero) = np.iinfo(y.value.dtype.np), y.scalar
    steps = np.nan_to_num(np.rint(real / np.float32(scale)) + np.float32(zero))
    return [int(v) for v in np.clip(steps, info.min, info.max)]


def _litert_table(x: Quantized, y: Quantized, node: Node | None) -> list[int] | None:
    """LiteRT's answers, where they are not those of the real function."""
    fn = FUNCTIONS.get("" if node is None else node.op)
    if fn is None or x.value.dtype is not y.value.dtype:
        return None
    assert x.value.dtype is not None
    info = np.iinfo(x.value.dtype.np)
    (x_scale, x_zero), (y_scale, y_zero) = x.scalar, y.scalar
    steps = np.arange(info.min, info.max + 1, dtype=np.int64) - x_zero
    answers = fn(steps, x_scale, y_scale, **({} if node is None else node.attrs)) + y_zero
    return [int(v) for v in np.clip(answers, info.min, info.max)]


def lookup_attrs(x: Quantized, y: Quantized, node: Node | None) -> dict[str, Any]:
    return {"table": _table(x, y, node), "output_dtype": str(y.value.dtype)}


def unary(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    x = inputs[0]
    if not is_bytes(x):
        return tr("its input is not quantized to 8 bits")
    if any(v is not None and v.const is None for v in node.inputs[1:]):
        return tr("a parameter is not constant")
    attrs = lookup_attrs(x, y, node)
    if rounding(q) and (answers := _litert_table(x, y, node)) is not None:
        attrs["table"] = answers
    return [graph.replace([node, q], "QLookup", [x.value], attrs, name=node.name)]


def with_numbers(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> Node | None:
    """A table where all operands but one are constants of one element."""
    numbers = {i: c for i, v in enumerate(node.inputs) if (c := _number(graph, v)) is not None}
    others = [x for i, x in enumerate(inputs) if i not in numbers]
    x = others[0] if len(others) == 1 else None
    if not is_bytes(x):
        return None
    if x.value.shape is None or x.value.shape != node.output.shape:
        return None
    attrs = {"table": _table(x, y, node, numbers), "output_dtype": str(y.value.dtype)}
    return graph.replace([node, q], "QLookup", [x.value], attrs, name=node.name)


def _number(graph: Graph, value: Value | None) -> np.ndarray | None:
    """The float of a constant of one element, which may be quantized."""
    const = value.const if value is not None else None
    found = dequantised(graph, value)
    if found is not None and found.value.const is not None and found.per_tensor:
        scale, zero = found.scalar
        const = (found.value.const.astype(np.int32) - zero) * np.float32(scale)
    if const is None or const.size != 1:
        return None
    return const.reshape(()).astype(np.float32)


def formula(graph: Graph, node: Node, q: Node, y: Quantized) -> Node | None:
    """A table of what several nodes make of the same bytes and of numbers, element by element."""
    numbers: dict[int, np.ndarray] = {}
    roots: dict[int, Quantized] = {}
    nodes: list[Node] = []

    def follow(value: Value | None) -> bool:
        if value is None or id(value) in numbers or id(value) in roots:
            return True
        number = _number(graph, value)
        if number is not None:
            numbers[id(value)] = number
            return True
        found = dequantised(graph, value)
        if is_bytes(found) and found.value.const is None:
            roots[id(value)] = found
            return True
        maker = value.producer
        if maker is None or len(nodes) == _LONGEST or not _by_element(maker):
            return False
        if not all(follow(v) for v in maker.inputs):
            return False
        if maker not in nodes:
            nodes.append(maker)
        return True

    if not follow(node.output) or not roots:
        return None
    x, *others = roots.values()
    alone = all(o.value is x.value and o.same_as(x) for o in others)
    if not alone or x.value.shape is None or x.value.shape != node.output.shape:
        return None
    known: dict[int, np.ndarray] = {**numbers, **dict.fromkeys(roots, _real_numbers(x))}
    for n in nodes:
        operands = [None if v is None else known[id(v)] for v in n.inputs]
        known[id(n.output)] = run_node(n, operands)[0]
    table = _steps(known[id(node.output)], y)
    if x.value.dtype is y.value.dtype and table == _every_number(x).tolist():
        return graph.replace([*nodes, q], "Identity", [x.value], name=node.name)
    attrs = {"table": table, "output_dtype": str(y.value.dtype)}
    return graph.replace([*nodes, q], "QLookup", [x.value], attrs, name=node.name)


#: Nodes of a formula: an activation that a file spells out has a handful.
_LONGEST = 16


def _by_element(node: Node) -> bool:
    """Is each element of the one output a function of those of the inputs, in floats?"""
    op = find_op(node.op)
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    return (
        op is not None and op.layout == "elementwise" and not op.random
        and len(node.outputs) == 1 and all(v.dtype in (DType.F32, DType.BOOL) for v in values)
    )  # fmt: skip


def rescale(graph: Graph, dq: Node, q: Node) -> list[Node] | str:
    """DQ → Q with nothing between: nothing, or a table from one scale to the other."""
    x, y = dequantised(graph, dq.output), written(graph, q)
    if not is_bytes(x) or y is None or y.value.dtype not in EIGHT_BITS:
        return tr("not 8 bits per tensor on both sides")
    if x.same_as(y):
        return [graph.replace([q], "Identity", [x.value], name=q.name)]
    attrs = lookup_attrs(x, y, None)
    if rounding(q) and (answers := _litert_table(x, y, None)) is not None:
        attrs["table"] = answers
    return [graph.replace([q], "QLookup", [x.value], attrs, name=q.name)]


def rescaled(graph: Graph, x: Quantized, y: Quantized, before: Node) -> Value:
    """x by a table to the scale of y, so that it can be written where it is joined."""
    made = graph.add(
        "QLookup", [x.value], lookup_attrs(x, y, None),
        name=graph.unique(f"{x.value.name}.rescaled"), sources=before.sources, before=before,
    )  # fmt: skip
    made.output.dtype, made.output.shape = y.value.dtype, x.value.shape
    return made.output
