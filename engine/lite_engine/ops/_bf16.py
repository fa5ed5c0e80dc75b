"""bf16 in NumPy: its bits as uint16, widened to compute and rounded to store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir import DType, Node


def bf16_to_f32(bits: np.ndarray) -> np.ndarray:
    """bfloat16 held as uint16 → the same numbers as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(x: np.ndarray) -> np.ndarray:
    """float32 → bfloat16 held as uint16, rounded half to even; NaN stays NaN."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), (bits >> 16) | 0x40, rounded).astype(np.uint16).reshape(x.shape)


def widened(node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
    """References never see bfloat16: such inputs become float32."""
    return [
        bf16_to_f32(a) if a is not None and v is not None and v.dtype is DType.BF16 else a
        for a, v in zip(arrays, node.inputs)
    ]


def narrowed(node: Node, outs: list[np.ndarray]) -> list[np.ndarray]:
    """Outputs that are declared bfloat16 are rounded to it."""
    return [
        f32_to_bf16(o) if v.dtype is DType.BF16 and o.dtype.kind == "f" else o
        for o, v in zip(outs, node.outputs)
    ]
