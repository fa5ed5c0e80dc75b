"""Layers of an fp16 plan that keep float32: their numbers do not fit a half.

- Sums of products of bytes (ConvInteger, and what a quantizer of weights writes behind it) reach
  millions, a half 65504. So what casts integers of 32 or 64 bits stays in float32, and so do layers
  that move or change single numbers behind it, up to the first product or quotient, which brings
  the numbers back.
- Angles made of positions: a position beyond 2048 is no longer exact, and a half of 500 is off by
  0.25. So do layers between a graph input, or such a cast, and a sine or cosine.
- Quotients of two sums over the same rows (attention without a softmax: Katharopoulos et al.,
  Transformers are RNNs, 2020): both grow with the number of keys, and only their quotient does not.
  So it stays in float32, with the products and the sums that it is made of.
- Products with constants beyond 65504. Where such a constant only hides or limits (the -1e9 of a
  mask) the largest half does the same (`tensors.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..ir import DType, Graph, Node, Value
from ..ops import find_op

LARGEST_HALF = 65504.0
_SCALES, _PRODUCTS, _ANGLES = ("Mul", "Div"), ("MatMul", "Gemm"), ("Sin", "Cos")
_SUMS = ("MatMul", "ReduceSum")


def beyond_half(graph: Graph) -> dict[str, DType]:
    """Names of these layers → float32."""
    casts = [node for node in graph.nodes if _casts_wide_integers(node)]
    found = {node.name for node in _behind(casts)}
    for node in graph.nodes:
        if node.op in _ANGLES:
            found |= _before(node) or set()
        elif _multiplies(node) and _has_large_constant(node):
            found.add(node.name)
        if node.op in _SCALES:
            found |= _quotient(node)
    return dict.fromkeys(found, DType.F32)


def _behind(casts: list[Node]) -> Iterator[Node]:
    """The casts and what reads their numbers, up to the scales, and what makes the scales."""
    seen: set[int] = set()
    waiting = list(casts)
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if node.op in _SCALES:
            waiting += [made for v in node.inputs if v and (made := v.producer) and _is_scale(made)]
        elif node.op not in _PRODUCTS:
            readers = [r for v in node.outputs if v.dtype is DType.F32 for r in v.readers]
            waiting += [r for r in readers if _keeps_numbers(r) or r.op in _PRODUCTS]


def _before(node: Node) -> set[str] | None:
    """The names of the layers that make an angle of graph inputs or of integers; None where other
    layers have a part in it, whose numbers are halves already."""
    found = {node.name}
    waiting = [node]
    while waiting:
        for value in waiting.pop().inputs:
            maker = value.producer if value is not None else None
            if maker is None or maker.name in found:
                continue
            found.add(maker.name)
            if _casts_wide_integers(maker):
                continue
            if not (_keeps_numbers(maker) or _is_outer_product(maker)):
                return None
            waiting.append(maker)
    return found


def _quotient(node: Node) -> set[str]:
    """The names of a quotient of two sums over the same rows and of what makes these: a Div, or a
    Mul by a reciprocal."""
    above, below, found = node.input(0), node.input(1), {node.name}
    if node.op == "Mul":
        pairs = [
            (a, *_up_to(b, ("Reciprocal", "Div"))) for a, b in ((above, below), (below, above))
        ]
        above, names, inverse = next((p for p in pairs if p[2] is not None), pairs[0])
        if inverse is None:
            return set()
        below = inverse.inputs[-1]
        found |= {*names, inverse.name}
    names_above, first = _up_to(above, _SUMS)
    names_below, second = _up_to(below, _SUMS)
    if first is None or second is None or not _rows_of(first) & _rows_of(second):
        return set()
    for one in (first, second):
        found.add(one.name)
        for value in one.inputs:
            names, inner = _up_to(value, _SUMS)
            found |= {*names, inner.name} if inner is not None else set()
    return found | names_above | names_below


def _up_to(value: Value | None, ops: tuple[str, ...]) -> tuple[set[str], Node | None]:
    """The nearest of these operators above a value, where only layers that keep numbers lie
    between, and the names of those. A product is one of computed matrices."""
    names: set[str] = set()
    while value is not None and (node := value.producer) is not None:
        computed = [v for v in node.inputs if v is not None and v.const is None]
        if node.op in ops and (node.op not in _PRODUCTS or len(computed) == 2):
            return names, node
        if len(computed) != 1 or not _keeps_numbers(node):
            break
        names.add(node.name)
        value = computed[0]
    return set(), None


def _rows_of(node: Node) -> set[int]:
    """What is computed before a sum's or product's operands were moved, by identity."""
    found = set()
    for value in (v for v in node.inputs if v is not None and v.const is None):
        while (maker := value.producer) is not None and (inner := maker.input(0)) is not None:
            op = find_op(maker.op)
            if maker.op != "Transpose" and (op is None or op.layout != "view"):
                break
            value = inner
        found.add(id(value))
    return found


def _casts_wide_integers(node: Node) -> bool:
    x = node.input(0) if node.inputs else None
    if node.op != "Cast" or x is None or x.dtype is None or node.output.dtype is not DType.F32:
        return False
    return x.dtype.np.kind in "iu" and x.dtype.itemsize >= 4


def _keeps_numbers(node: Node) -> bool:
    """Moves, joins or changes single numbers."""
    op = find_op(node.op)
    return op is not None and (
        op.layout in ("elementwise", "view") or op.quantized in ("follows", "joins")
    )


def _multiplies(node: Node) -> bool:
    op = find_op(node.op)
    return node.op in _SCALES or (op is not None and op.quantized == "weights")


def _has_large_constant(node: Node) -> bool:
    constants = [v.const for v in node.inputs if v is not None and v.const is not None]
    return any(
        c.dtype == np.float32 and bool((np.isfinite(c) & (np.abs(c) > LARGEST_HALF)).any())
        for c in constants
    )


def _is_outer_product(node: Node) -> bool:
    x = node.inputs[0] if node.inputs else None
    return node.op == "MatMul" and x is not None and x.shape is not None and x.shape[-1:] == (1,)


def _is_scale(node: Node) -> bool:
    """One number of others, like the product of two scales: a half may be too small for it."""
    op = find_op(node.op)
    single = node.output.type.is_static and node.output.type.size == 1
    return op is not None and op.layout == "elementwise" and single
