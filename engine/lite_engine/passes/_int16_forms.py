"""Integer forms of what LiteRT computes with activations of 16 bits, beside those that bytes share.

DQ(x) → a function of one number → Q    Gather from a table of 65,536 answers
DQ(x) → ReduceSum → Q                   ReduceSum of the integers, scaled once
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import DType, Graph, Node, Value
from ..ops.litert16 import FUNCTIONS
from ._quantised import EIGHT_BITS, Quantized, alike, dequantised, rounding, written
from ._rewrite import static_shape
from .fuse_activation import clip_bounds

#: A table of sigmoid and tanh is of another kernel where x counts in these steps.
_POWERS = (2.0**-12, 2.0**-11)
#: Integers of 16 bits whose sum a float32 holds.
_EXACT_SUM = 2**24 // 2**15


def int16_form(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node]:
    """The nodes in place of node → Q; none where bytes and 16 bits share a form, or floats do."""
    x = inputs[0]
    if not alike(x, y) or any(v is not None and v.const is None for v in node.inputs[1:]):
        return []
    if node.op == "ReduceSum":
        return _sum(graph, node, q, x, y)
    if node.op == "Clip":
        bounds = clip_bounds(node)
        if bounds is None:
            return []
        steps = [np.rint(b / y.scalar[0]) for b in bounds]
        return _looked_up(graph, [node, q], x, np.clip(_answers("Clip", x, y), *steps))
    if node.op not in FUNCTIONS or (node.op in ("Sigmoid", "Tanh") and x.scalar[0] in _POWERS):
        return []
    return _looked_up(graph, [node, q], x, _answers(node.op, x, y, **node.attrs))


def rescale16(graph: Graph, dq: Node, q: Node) -> list[Node]:
    """DQ → Q where either side has 16 bits"""
    x, y = dequantised(graph, dq.output), written(graph, q)
    types = (*EIGHT_BITS, DType.I16)
    if x is None or y is None or not x.per_tensor or not rounding(q):
        return []
    if x.value.dtype not in types or y.value.dtype not in types:
        return []
    if DType.I16 not in (x.value.dtype, y.value.dtype) or x.same_as(y):
        return []
    return _looked_up(graph, [q], x, _answers("", x, y))


def clamped16(
    graph: Graph, node: Node, q: Node, op: str, operands: list[Value | None],
    attrs: dict[str, Any], y: Quantized,
) -> list[Node]:  # fmt: skip
    """The integer operator, and behind it the fused Relu or Clip in floats, which hold 16 bits."""

    def add(kind: str, inputs: list[Value | None], **more: Any) -> Node:
        name = graph.unique(node.name)
        return graph.add(kind, inputs, more, name=name, sources=node.sources, before=q)

    inner = add(op, operands, **attrs)
    inner.output.dtype, inner.output.shape = y.value.dtype, node.output.shape
    real = add("DequantizeLinear", [inner.output, y.scale, y.zero])
    bounds = [0.0] if node.attrs["activation"] == "Relu" else node.attrs["activation_params"]
    ends = [
        graph.constant(np.array(b, np.float32), graph.unique(f"{node.name}.bound")) for b in bounds
    ]
    clamped = add("Clip", [real.output, *ends])
    last = graph.replace(
        [node, q], "QuantizeLinear", [clamped.output, y.scale, y.zero], q.attrs, name=node.name
    )
    return [inner, real, clamped, last]


def _answers(op: str, x: Quantized, y: Quantized, **attrs: Any) -> np.ndarray:
    """To every integer that x can be, from the least on, in the type of y"""
    assert x.value.dtype is not None and y.value.dtype is not None
    source, target = np.iinfo(x.value.dtype.np), np.iinfo(y.value.dtype.np)
    (x_scale, x_zero), (y_scale, y_zero) = x.scalar, y.scalar
    every = np.arange(source.min, source.max + 1, dtype=np.int64) - x_zero
    answers = FUNCTIONS[op](every, x_scale, y_scale, **attrs) + y_zero
    return np.clip(answers, target.min, target.max).astype(target.dtype)


def _looked_up(graph: Graph, old: list[Node], x: Quantized, answers: np.ndarray) -> list[Node]:
    """Negative indices count from the table's end, so that integers are indices as they are."""
    assert x.value.dtype is not None
    name, q = old[0].name, old[-1]
    y = q.output.dtype
    assert y is not None
    answers = np.roll(answers.astype(y.np), np.iinfo(x.value.dtype.np).min)
    table = graph.constant(answers, graph.unique(f"{name}.table"))
    index = graph.add(
        "Cast", [x.value], {"to": DType.I32}, name=graph.unique(name), sources=old[0].sources,
        before=q,
    )  # fmt: skip
    return [index, graph.replace(old, "Gather", [table, index.output], {"axis": 0}, name=name)]


def _sum(graph: Graph, node: Node, q: Node, x: Quantized, y: Quantized) -> list[Node]:
    """float32(Σ x) · (x_scale / y_scale), ties away from 0; floats hold sums of few integers"""
    made: list[Node] = []

    def add(kind: str, inputs: list[Value | None], attrs: dict[str, Any]) -> Value:
        made.append(
            graph.add(kind, inputs, attrs, name=graph.unique(node.name), sources=node.sources,
                      before=q)
        )  # fmt: skip
        return made[-1].output

    def number(value: Any) -> Value:
        return graph.constant(np.array(value), graph.unique(f"{node.name}.scale"))

    shape, out = static_shape(x.value), static_shape(node.output)
    count = None if shape is None or out is None else math.prod(shape) // max(1, math.prod(out))
    ratio = number(np.float32(x.scalar[0]) / np.float32(y.scalar[0]))
    if count is not None and count <= _EXACT_SUM:
        whole = add("DequantizeLinear", [x.value, number(np.float32(1)), x.zero], {})
        total = add("ReduceSum", [whole, *node.inputs[1:]], node.attrs)
    else:
        wide = add("Cast", [x.value], {"to": DType.I32})
        sums = add("ReduceSum", [wide, *node.inputs[1:]], node.attrs)
        total = add("Cast", [sums], {"to": DType.F32})
    real = add("Mul", [total, ratio], {})
    half = add("Mul", [add("Sign", [real], {}), number(np.float32(0.5))], {})
    real = add("Trunc", [add("Add", [real, half], {})], {})
    made.append(
        graph.replace(
            [node, q],
            "QuantizeLinear",
            [real, number(np.float32(1)), y.zero],
            q.attrs,
            name=node.name,
        )
    )
    return made
