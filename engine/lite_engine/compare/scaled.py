"""Values whose channels quantization has scaled, in the numbers of the other side.

Equalization divides the output channels of one layer by factors and multiplies the next layer's
weights by them. No file tells the factors, but the weights do: they are the other side's largest
weight of each channel, divided by this side's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..ir import DType, Graph, Node, QuantParams, Value
from ..ops import find_op
from ..quantize.equalize import EQUALIZED
from ..quantize.norm_scaling import NORMS
from .side import quant_of, to_float

_QUANT_SUFFIX = re.compile(r"(\.q|_quantized|_QuantizeLinear_Output|_DequantizeLinear_Output)$")
#: Integers that quantization rounds by more than half a step (adaptive rounding) still have their
#: largest weight this near to the end of their type.
NEAR_THE_END = 125
#: Relative L2 distance of weights of 8 bits from the other side's, once they are scaled.
SAME_LAYER = 0.1


class _Factors(NamedTuple):
    """What the channels of a value along `axis` are multiplied by to be the other side's."""

    each: np.ndarray
    axis: int


def plain_value(name: str) -> str:
    """A value's name without what conversions to integers add."""
    return _QUANT_SUFFIX.sub("", name)


def is_scaled(value: Value) -> bool:
    return plain_value(value.name).endswith(EQUALIZED)


def unscaled_name(name: str) -> str:
    """A value's name without what quantization adds."""
    return plain_value(name).removesuffix(EQUALIZED)


def in_numbers_of(other: Graph, own: Graph) -> dict[str, Value]:
    """The scaled values of `own` by name, as values that stand for `other`'s numbers: integers get
    a scale per channel. Those whose factors are not known are left out."""
    theirs = {unscaled_name(v.name): n for n in other.nodes for v in n.outputs}
    factors: dict[str, _Factors] = {}
    found = {}
    for node in own.nodes:
        for value in filter(is_scaled, node.outputs):
            made = theirs.get(unscaled_name(value.name))
            factor = _carried(node, factors) if made else None
            if made is not None and factor is None:
                factor = _factor(_with_weights(made), node, factors)
            if factor is None:
                continue
            factors[value.name] = factor
            if np.all(factor.each == 1):
                found[value.name] = value
            elif (quant := _times(value, factor)) is not None:
                found[value.name] = value.copy()
                found[value.name].quant = quant
    return found


def _carried(node: Node, factors: Mapping[str, _Factors]) -> _Factors | None:
    """The factors of a layer without weights that keeps those of its input."""
    x = node.inputs[0] if node.inputs else None
    return None if x is None or _weights(node) is not None else factors.get(x.name)


def _with_weights(node: Node) -> Node:
    """The layer itself, or the one whose numbers it only stores, cuts off or reshapes."""
    while _weights(node) is None and node.inputs and node.inputs[0] is not None:
        before = node.inputs[0].producer
        if before is None:
            break
        node = before
    return node


def _factor(other: Node, own: Node, factors: Mapping[str, _Factors]) -> _Factors | None:
    """Those of `own`'s result, which is `other`'s in other numbers."""
    theirs, mine = _weights(other), _weights(own)
    if theirs is None or mine is None or theirs[0].shape != mine[0].shape:
        return None
    w, reach = theirs
    before = factors.get(own.inputs[0].name) if own.inputs[0] is not None else None
    if before is not None and np.any(before.each != 1):
        axis = 0 if own.attrs.get("group", 1) > 1 else 1
        if w.ndim < 2 or w.shape[axis] != before.each.size:
            return None
        shape = [-1 if i == axis else 1 for i in range(w.ndim)]
        w = w * before.each.reshape(shape)
        reach = _reach(w) if axis == 1 else reach * before.each
    alive = (reach > 0) & (mine[1] > 0)
    s = np.where(alive, reach / np.where(alive, mine[1], 1), 1.0)
    apart = w - mine[0] * s.reshape(-1, *[1] * (w.ndim - 1))
    same = np.linalg.norm(apart) <= SAME_LAYER * np.linalg.norm(w)
    return _Factors(s, 1 if w.ndim > 1 else -1) if same else None


def _weights(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """A convolution's or normalization's weights as real numbers, and the largest magnitude of
    each output channel."""
    op = find_op(node.op)
    named = {op.input_name(i): v for i, v in enumerate(node.inputs) if v} if op else {}
    value = node.input(1) if node.op in NORMS else named.get("w")
    if value is None or value.const is None:
        return None
    w = value.const
    if w.dtype.kind == "f":
        return w, _reach(w)
    scale, zero = named.get("w_scale"), named.get("w_zero_point")
    if scale is None or scale.const is None or w.dtype != np.int8:
        return None
    zeros = np.zeros((), np.int8) if zero is None or zero.const is None else zero.const
    if zeros.any():
        return None
    axis = 0 if scale.const.size > 1 else None
    each = scale.const.reshape(-1) if axis == 0 else scale.const.reshape(())
    real = to_float(w, QuantParams(each, np.zeros(each.shape, np.int8), axis))
    top = np.abs(w.astype(np.int16)).max(axis=tuple(range(1, w.ndim)))
    exact = (top >= NEAR_THE_END) & (axis == 0)
    return real, np.where(exact, np.iinfo(np.int8).max * each, _reach(real))


def _reach(w: np.ndarray) -> np.ndarray:
    return np.abs(w).max(axis=tuple(range(1, w.ndim)), initial=0.0)


def _times(value: Value, factor: _Factors) -> QuantParams | None:
    """The scale and zero point of each channel. None for floats."""
    quant = quant_of(value)
    if quant is None or value.dtype in (None, DType.F32) or np.size(quant.scale) != 1:
        return None
    scale = (factor.each * quant.scale.reshape(())).astype(np.float32)
    zeros = np.full(scale.shape, quant.zero_point.reshape(()))
    return QuantParams(scale, zeros, factor.axis)


__all__ = ["in_numbers_of", "is_scaled", "plain_value", "unscaled_name"]
