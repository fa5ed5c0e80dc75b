"""Integers of a real tensor, as QuantizeLinear and DequantizeLinear nodes describe them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from ..ir import DType, Graph, Node, Value

EIGHT_BITS = (DType.I8, DType.U8)


@dataclass(frozen=True)
class Quantized:
    """Integers of a real tensor: the value and its parameters as graph values."""

    value: Value
    scale: Value
    zero: Value
    axis: int

    @property
    def scalar(self) -> tuple[float, int]:
        """Scale and zero point of per-tensor parameters."""
        assert self.scale.const is not None and self.zero.const is not None
        return float(self.scale.const.ravel()[0]), int(self.zero.const.ravel()[0])

    @property
    def per_tensor(self) -> bool:
        return self.scale.const is not None and self.scale.const.size == 1

    def same_as(self, other: Quantized) -> bool:
        same_type = self.value.dtype is other.value.dtype
        return self.per_tensor and other.per_tensor and same_type and self.scalar == other.scalar


def dequantised(graph: Graph, value: Value | None) -> Quantized | None:
    """What a DequantizeLinear reads, when its parameters are constants and its scale positive."""
    dq = None if value is None else value.producer
    if dq is None or dq.op != "DequantizeLinear":
        return None
    return _parameters(graph, dq, dq.inputs[0])


def written(graph: Graph, q: Node) -> Quantized | None:
    found = _parameters(graph, q, q.output)
    return found if found is not None and found.per_tensor else None


def rounding(q: Node) -> str:
    """How this QuantizeLinear's integers are rounded: "" as ONNX says."""
    return str(q.attrs.get("rounding", ""))


def _parameters(graph: Graph, node: Node, value: Value | None) -> Quantized | None:
    scale, zero = node.inputs[1], node.input(2)
    if value is None or scale is None or scale.const is None or value.dtype is None:
        return None
    if node.attrs.get("block_size", 0) or (zero is not None and zero.const is None):
        return None
    if not (np.isfinite(scale.const) & (scale.const > 0)).all():
        return None  # integer kernels divide by it; floats compute what the file says
    if zero is None:
        name = graph.unique(f"{value.name}.zero_point")
        zero = graph.constant(np.zeros(scale.const.shape, value.dtype.np), name)
    rank = len(value.shape or ())
    axis = node.attrs.get("axis", 1)
    return Quantized(value, scale, zero, axis % rank if rank else 0)


def is_bytes(found: Quantized | None) -> TypeGuard[Quantized]:
    """Is it an 8-bit tensor with one scale?"""
    return found is not None and found.per_tensor and found.value.dtype in EIGHT_BITS


def alike(found: Quantized | None, y: Quantized) -> TypeGuard[Quantized]:
    """Has it one scale, and 8 bits where y has 8 bits, 16 where y has 16?"""
    if found is None or not found.per_tensor:
        return False
    return found.value.dtype in (EIGHT_BITS if y.value.dtype in EIGHT_BITS else (y.value.dtype,))


def has_integers(y: Quantized | None, q: Node) -> TypeGuard[Quantized]:
    """Are there integer operators for results of this type? 16 bits are signed and LiteRT's, whose
    zero points are 0."""
    if y is None or y.value.dtype in EIGHT_BITS:
        return y is not None
    return y.value.dtype is DType.I16 and bool(rounding(q)) and y.scalar[1] == 0
