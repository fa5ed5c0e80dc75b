"""Layers of an fp16 plan that keep float32: numbers made of wide integers do not fit a half.

Sums of products of bytes (ConvInteger, and what a quantizer of weights writes behind it) reach
millions, a half 65504; a position beyond 2048 is no longer exact. So what casts integers of 32 or
64 bits stays in float32, up to the scale that brings the numbers back: sums and differences behind
it, and the first product or quotient.
"""

from __future__ import annotations

from ..ir import DType, Graph, Node
from ..ops import find_op

_SCALES, _SUMS = ("Mul", "Div"), ("Add", "Sub")


def beyond_half(graph: Graph) -> dict[str, DType]:
    """Names of these layers → float32."""
    found: dict[str, DType] = {}
    waiting = [node for node in graph.nodes if _casts_wide_integers(node)]
    while waiting:
        node = waiting.pop()
        if node.name in found:
            continue
        found[node.name] = DType.F32
        if node.op in _SCALES:
            waiting += [made for v in node.inputs if v and (made := v.producer) and _is_scale(made)]
        else:
            waiting += [n for n in node.output.readers if n.op in (*_SCALES, *_SUMS)]
    return found


def _casts_wide_integers(node: Node) -> bool:
    x = node.input(0)
    if node.op != "Cast" or x is None or x.dtype is None or node.output.dtype is not DType.F32:
        return False
    return x.dtype.np.kind in "iu" and x.dtype.itemsize >= 4


def _is_scale(node: Node) -> bool:
    """One number of others, like the product of two scales: a half may be too small for it."""
    op = find_op(node.op)
    single = node.output.type.is_static and node.output.type.size == 1
    return op is not None and op.layout == "elementwise" and single
