"""Arithmetic with sizes, some of which are counts: what a Reshape or Slice behind it is asked for.

A rule gives the integers of a node's output, or None where they are not known before it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..ir import DType, Node
from ._bounding import Bounding, Count, Size, SizeRule
from ._helpers import slice_of
from ._inferred import infer_node


def _given(b: Bounding, node: Node) -> list[np.ndarray] | None:
    """The integers of all inputs, of which one at least has a count."""
    if not any(v is not None and id(v) in b.sizes for v in node.inputs):
        return None
    found = [b.integers(v) for v in node.inputs if v is not None]
    return None if any(f is None for f in found) else [f for f in found if f is not None]


def _shape(b: Bounding, node: Node) -> np.ndarray | None:
    value = node.inputs[0]
    if value is None or b.of(value) is None:
        return None
    dims = b.dims(value)[node.attrs.get("start", 0) or 0 : node.attrs.get("end")]
    return _objects(dims)


def _objects(sizes: list[Size]) -> np.ndarray:
    out = np.empty(len(sizes), object)
    out[:] = sizes
    return out


def _gather(b: Bounding, node: Node) -> np.ndarray | None:
    given = _given(b, node)
    if given is None or node.inputs[1] is None or node.inputs[1].const is None:
        return None
    return np.asarray(given[0].take(node.inputs[1].const, node.attrs.get("axis", 0)), object)


def _slice(b: Bounding, node: Node) -> np.ndarray | None:
    given = _given(b, node)
    bounds = [v.const for v in node.inputs[1:] if v is not None]
    if given is None or given[0].ndim != 1 or any(c is None or c.size != 1 for c in bounds):
        return None
    start, end, *rest = (int(c.item()) for c in bounds if c is not None)
    return given[0][slice_of(start, end, rest[1] if len(rest) > 1 else 1, given[0].size)]


def _concat(b: Bounding, node: Node) -> np.ndarray | None:
    given = _given(b, node)
    return None if given is None else np.concatenate(given, node.attrs["axis"])


def _view(b: Bounding, node: Node) -> np.ndarray | None:
    """Reshape, Squeeze and Unsqueeze, whose second input is a constant."""
    value, shape = node.inputs[0], node.input(1)
    if id(value) not in b.sizes or (shape is not None and shape.const is None):
        return None
    dims = infer_node(node)[0].dims
    return b.sizes[id(value)].reshape([d for d in dims if isinstance(d, int)])


def _cast(b: Bounding, node: Node) -> np.ndarray | None:
    return b.sizes.get(id(node.inputs[0])) if node.attrs["to"] is DType.I64 else None


def _product(sizes: list[Size]) -> Size | None:
    counts = [s for s in sizes if isinstance(s, Count)]
    whole = math.prod(s for s in sizes if not isinstance(s, Count))
    if not counts or not whole:
        return whole
    if len(counts) > 1 or whole < 0:
        return None
    return Count(counts[0].base, counts[0].most, counts[0].factor * whole)


def _mul(b: Bounding, node: Node) -> np.ndarray | None:
    given = _given(b, node)
    return None if given is None else _each(given, lambda *pair: _product(list(pair)))


def _each(given: list[np.ndarray], fn: Callable[..., Size | None]) -> np.ndarray | None:
    """A function of every element; None where it has no answer for one."""
    arrays = np.broadcast_arrays(*given)
    out = np.empty(arrays[0].shape, object)
    for at in np.ndindex(out.shape):
        if (found := fn(*(a[at] for a in arrays))) is None:
            return None
        out[at] = found
    return out


def _reduce_product(b: Bounding, node: Node) -> np.ndarray | None:
    sizes = b.sizes.get(id(node.inputs[0]))
    dims = infer_node(node)[0].dims
    if sizes is None or sizes.ndim != 1 or any(d != 1 for d in dims):
        return None
    found = _product(list(sizes.ravel()))
    return None if found is None else _objects([found]).reshape([1] * len(dims))


def _least(b: Bounding, node: Node) -> np.ndarray | None:
    given = _given(b, node)
    return None if given is None else _each(given, lambda *all_of: _smallest(b, list(all_of)))


def _smallest(b: Bounding, sizes: list[Size]) -> Size | None:
    counts = [s for s in sizes if isinstance(s, Count)]
    whole = min((s for s in sizes if not isinstance(s, Count)), default=None)
    if not counts:
        return whole
    if whole is not None and whole < 0:
        return None
    found = counts[0] if whole is None else b.least(counts[0], whole)
    for other in counts[1:]:
        found = b.least(found, other)
    return found


def _reduce_least(b: Bounding, node: Node) -> np.ndarray | None:
    sizes = b.sizes.get(id(node.inputs[0]))
    dims = infer_node(node)[0].dims
    if sizes is None or sizes.ndim != 1 or any(d != 1 for d in dims):
        return None
    found = _smallest(b, list(sizes))
    return None if found is None else _objects([found]).reshape([1] * len(dims))


def _equal(b: Bounding, node: Node) -> np.ndarray | None:
    given = _given(b, node)
    return None if given is None else _each(given, _same)


def _same(one: Size, other: Size) -> bool | None:
    if isinstance(one, Count) and isinstance(other, Count):
        return True if one == other else None
    if isinstance(one, Count):
        one, other = other, one
    if isinstance(other, Count):
        return None if isinstance(one, int) and 0 <= one <= other.bound else False
    return bool(one == other)


def _where(b: Bounding, node: Node) -> np.ndarray | None:
    given = _given(b, node)
    if given is None or node.inputs[0] is None or node.inputs[0].const is None:
        return None
    return _each(given, lambda which, one, other: one if which else other)


SIZES: dict[str, SizeRule] = {
    "Cast": _cast,
    "Concat": _concat,
    "Equal": _equal,
    "Gather": _gather,
    "Min": _least,
    "Mul": _mul,
    "ReduceMin": _reduce_least,
    "ReduceProd": _reduce_product,
    "Reshape": _view,
    "Shape": _shape,
    "Slice": _slice,
    "Squeeze": _view,
    "Unsqueeze": _view,
    "Where": _where,
}
