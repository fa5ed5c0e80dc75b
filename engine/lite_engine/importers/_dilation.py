"""SpaceToBatch → convolution → BatchToSpace is a dilated convolution.

    conv(pad(x, p) cut into blocks of b), put together, cropped by c  =  conv(pad(x, p − c),
    dilation b)

for a convolution of stride 1 without padding of its own. TensorFlow writes dilated convolutions so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ir import Node, Value
from ._emit import Emitter

#: what may stand between the two besides the convolution: it does not look at neighbours
_POINTWISE = ("Transpose", "Relu", "Clip", "LeakyRelu", "Add", "Sub", "Mul", "QuantizeLinear",
              "DequantizeLinear", "BatchNormalization", "Identity")  # fmt: skip
_MAX_STEPS = 16


@dataclass(frozen=True)
class Blocked:
    """What a SpaceToBatch made: its input, block sizes and padding [begin, end] per axis."""

    source: Value
    block: tuple[int, ...]
    pads: np.ndarray


def undo_blocks(emit: Emitter, x: Value, block: Sequence[int], crops: np.ndarray) -> Value | None:
    """x put together again, computed by one dilated convolution; None when x is something else."""
    chain: list[Node] = []
    value = x
    while id(value) not in emit.blocked:
        node = value.producer
        if node is None or len(chain) == _MAX_STEPS or not _fits(node, chain):
            return None
        chain.append(node)
        assert node.inputs[0] is not None
        value = node.inputs[0]
    found = emit.blocked[id(value)]
    pads = found.pads - crops
    if found.block != tuple(block) or (pads < 0).any() or not any(n.op == "Conv" for n in chain):
        return None
    y = found.source
    for node in reversed(chain):
        attrs = dict(node.attrs)
        if node.op == "Conv":
            attrs["dilations"] = list(block)
            attrs["pads"] = [int(v) for v in pads.T.ravel()]
        y = emit(node.op, y, *node.inputs[1:], **attrs)
    y.quant = x.quant
    return y


def _fits(node: Node, chain: Sequence[Node]) -> bool:
    if any(v is not None and not _constant(v) for v in node.inputs[1:]):
        return False
    if node.op != "Conv":
        return node.op in _POINTWISE
    plain = set(node.attrs.get("strides", [1])) == {1} and not any(node.attrs.get("pads", []))
    once = all(n.op != "Conv" for n in chain)
    return plain and once and "auto_pad" not in node.attrs and "dilations" not in node.attrs


def _constant(value: Value) -> bool:
    """A constant, or a dequantised one."""
    node = value.producer
    if node is None or node.op != "DequantizeLinear":
        return value.is_const
    return node.inputs[0] is not None and node.inputs[0].is_const
