"""What a Transpose in front of an operator with one data input means for the operator.

A rule gets the node and p (axis i of the operator's input is axis p[i] of x) and answers the other
inputs and the attributes of the same operator on x, and the permutation that its outputs need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Node, Value
from ..ops import all_ops, get_op

Perm = list[int]
Const = Callable[[np.ndarray, Value], Value]


@dataclass
class Moved:
    """The operator after the move: inputs, attributes, one permutation per output."""

    inputs: list[Value | None]
    attrs: dict[str, Any]
    perms: list[Perm]


def perm_of(node: Node) -> Perm:
    """A Transpose's permutation; [] when it has none, or (a damaged file's) none of its input's
    rank."""
    perm, x = list(node.attrs.get("perm") or []), node.inputs[0]
    fits = x is None or x.shape is None or len(x.shape) == len(perm)
    return perm if fits and sorted(perm) == list(range(len(perm))) else []


def inverse(perm: Sequence[int]) -> Perm:
    out = [0] * len(perm)
    for i, p in enumerate(perm):
        out[p] = i
    return out


def without(perm: Perm, gone: Sequence[int]) -> Perm:
    """The permutation after axes `gone` of the transposed tensor are removed."""
    left = [p for i, p in enumerate(perm) if i not in gone]
    order = sorted(left)
    return [order.index(p) for p in left]


def with_new(perm: Perm, new: Sequence[int]) -> Perm:
    """The permutation after size-1 axes are inserted at output positions `new`."""
    rank = len(perm) + len(new)
    old = [i for i in range(rank) if i not in new]
    out = list(range(rank))
    for j, at in enumerate(old):
        out[at] = old[perm[j]]
    return out


def moved_alone(node: Node, perm: Perm, const: Const) -> Moved | str | None:
    """The move, a reason why not, or None for an operator that Transposes do not pass.

    `Moved.inputs` are those after the data input.
    """
    rule = TRANSPOSE_RULES.get(node.op)
    return None if rule is None else rule(node, perm, const)


def _ints(value: Value | None) -> list[int] | None:
    if value is None or value.const is None:
        return None
    return [int(v) for v in value.const.ravel()]


def _array(values: Sequence[int], like: Value, const: Const) -> Value:
    assert like.const is not None
    return const(np.array(values, like.const.dtype), like)


def _same(node: Node, perm: Perm, inputs: list[Value | None] | None = None, **attrs: Any) -> Moved:
    rest = list(node.inputs[1:]) if inputs is None else inputs
    return Moved(rest, {**node.attrs, **attrs}, [perm] * len(node.outputs))


def _axis(node: Node, perm: Perm, const: Const) -> Moved:
    """Operators with one attribute `axis` that keep their input's rank."""
    axis = int(node.attrs.get("axis", get_op(node.op).attrs["axis"]))
    return _same(node, perm, axis=perm[axis % len(perm)])


def _turn(node: Node, perm: Perm, const: Const) -> Moved | str:
    """The last axis, whose numbers are turned in pairs, has to stay; angles move the other way."""
    if perm[-1] != len(perm) - 1:
        return tr("the pairs would lie along another axis")
    rest: list[Value | None] = []
    for value in node.inputs[1:]:
        if value is None or value.const is None:
            return tr("the angles are not constant")
        array = value.const.reshape((1,) * (len(perm) - value.const.ndim) + value.const.shape)
        rest.append(const(array.transpose(inverse(perm)), value))
    return _same(node, perm, rest)


def _quantize(node: Node, perm: Perm, const: Const) -> Moved | str:
    scale = node.input(1)
    if scale is None or scale.shape is None or len(scale.shape) > 1:
        return tr("the scale has more than one axis")
    if len(scale.shape) == 0 or scale.shape == (1,):
        return _same(node, perm)
    return _axis(node, perm, const)


def _reduce(node: Node, perm: Perm, const: Const) -> Moved | str:
    """Reduce*(x, axes): axes may be absent (all)."""
    axes, given = node.input(1), _ints(node.input(1))
    keep = bool(node.attrs.get("keepdims", 1))
    if axes is not None and given is None:
        return tr("the axes are not constant")
    if not given:
        if node.attrs.get("noop_with_empty_axes") or keep:
            return _same(node, perm)
        return Moved(list(node.inputs[1:]), dict(node.attrs), [[]])
    gone = [a % len(perm) for a in given]
    assert axes is not None
    rest: list[Value | None] = [_array([perm[a] for a in gone], axes, const)]
    out = perm if keep else without(perm, gone)
    return Moved(rest, dict(node.attrs), [out])


def _arg(node: Node, perm: Perm, const: Const) -> Moved:
    axis = int(node.attrs.get("axis", 0)) % len(perm)
    out = perm if node.attrs.get("keepdims", 1) else without(perm, [axis])
    return Moved([], {**node.attrs, "axis": perm[axis]}, [out])


def _squeeze(node: Node, perm: Perm, const: Const) -> Moved | str:
    axes, given = node.input(1), _ints(node.input(1))
    if axes is None or given is None:
        return tr("the axes are not constant")
    gone = [a % len(perm) for a in given]
    return Moved([_array([perm[a] for a in gone], axes, const)], dict(node.attrs),
                 [without(perm, gone)])  # fmt: skip


def _unsqueeze(node: Node, perm: Perm, const: Const) -> Moved | str:
    given = _ints(node.input(1))
    if given is None:
        return tr("the axes are not constant")
    rank = len(perm) + len(given)
    new = [a % rank for a in given]
    return Moved(list(node.inputs[1:]), dict(node.attrs), [with_new(perm, new)])


def _slice(node: Node, perm: Perm, const: Const) -> Moved | str:
    axes, given = node.input(3), _ints(node.input(3))
    if axes is None or given is None:
        return tr("the axes are not given as constants")
    rest = list(node.inputs[1:])
    rest[2] = _array([perm[a % len(perm)] for a in given], axes, const)
    return _same(node, perm, rest)


def _pad(node: Node, perm: Perm, const: Const) -> Moved | str:
    rest = list(node.inputs[1:])
    axes, given = node.input(3), _ints(node.input(3))
    if axes is not None:
        if given is None:
            return tr("the axes are not constant")
        rest[2] = _array([perm[a % len(perm)] for a in given], axes, const)
        return _same(node, perm, rest)
    pads, amounts = node.input(1), _ints(node.input(1))
    if pads is None or amounts is None or len(amounts) != 2 * len(perm):
        return tr("the padding is not constant")
    back, n = inverse(perm), len(perm)
    rest[0] = _array([amounts[a] for a in back] + [amounts[n + a] for a in back], pads, const)
    return _same(node, perm, rest)


def _per_axis(node: Node, perm: Perm, const: Const) -> Moved | str:
    """Operators whose second input holds one number per axis."""
    value, given = node.input(1), _ints(node.input(1))
    if value is None or given is None or len(given) != len(perm):
        return tr("the amounts per axis are not constant")
    return _same(node, perm, [_array([given[a] for a in inverse(perm)], value, const)])


def _resized(node: Node, rank: int) -> list[int]:
    """Axes whose size changes; all that are not known to stay."""
    if node.attrs.get("axes"):
        return [a % rank for a in node.attrs["axes"]]
    scales, sizes, x = node.input(2), node.input(3), node.input(0)
    if scales is not None and scales.const is not None and scales.const.size == rank:
        return [a for a, s in enumerate(scales.const.tolist()) if s != 1]
    if sizes is not None and sizes.const is not None and x is not None and x.shape is not None:
        return [a for a, (n, d) in enumerate(zip(sizes.const.tolist(), x.shape)) if n != d]
    return list(range(rank))


def _resize(node: Node, perm: Perm, const: Const) -> Moved | str:
    if node.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        return tr("a region of interest is cut out")
    if any(a >= 2 and perm[a] < 2 for a in _resized(node, len(perm))):
        return tr("it would resize other axes than the spatial ones")
    axes = node.attrs.get("axes")
    if axes:
        return _same(node, perm, axes=[perm[a % len(perm)] for a in axes])
    rest: list[Value | None] = [None, *node.inputs[2:]]
    for i, value in enumerate(node.inputs[2:], 1):
        if value is None:
            continue
        if value.const is None or value.const.size not in (0, len(perm)):
            return tr("the size is not constant")
        if value.const.size:
            rest[i] = const(value.const[inverse(perm)], value)
    return _same(node, perm, rest)


def _gather(node: Node, perm: Perm, const: Const) -> Moved | str:
    """Indices of rank 1 keep the axis, of rank 0 remove it."""
    indices = node.input(1)
    axis = int(node.attrs.get("axis", 0)) % len(perm)
    rank = None if indices is None or indices.shape is None else len(indices.shape)
    if rank not in (0, 1):
        return tr("the indices have more than one axis")
    out = perm if rank else without(perm, [axis])
    return Moved(list(node.inputs[1:]), {**node.attrs, "axis": perm[axis]}, [out])


def _axis_input(node: Node, perm: Perm, const: Const) -> Moved | str:
    axis, given = node.input(1), _ints(node.input(1))
    if axis is None or axis.const is None or not given:
        return tr("the axis is not constant")
    moved = np.array(perm[given[0] % len(perm)], axis.const.dtype).reshape(axis.const.shape)
    return _same(node, perm, [const(moved, axis)])


def _unary(node: Node, perm: Perm, const: Const) -> Moved:
    return _same(node, perm)


Rule = Callable[[Node, Perm, Const], "Moved | str"]
#: The function of each `transpose_rule`.
_RULES: dict[str, Rule] = {
    "same": _unary,
    "axis": _axis,
    "axis_input": _axis_input,
    "per_axis": _per_axis,
    "reduce": _reduce,
    "arg": _arg,
    "quantize": _quantize,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "slice": _slice,
    "pad": _pad,
    "resize": _resize,
    "gather": _gather,
    "turn": _turn,
}
TRANSPOSE_RULES = {op.name: _RULES[op.transpose_rule] for op in all_ops() if op.transpose_rule}
