"""bf16, which NumPy lacks: arrays hold its bits in uint16, widened to compute, rounded to store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from .dtype import DType

if TYPE_CHECKING:
    from .graph import Graph


def bf16_to_f32(bits: np.ndarray) -> np.ndarray:
    """bfloat16 held as uint16 → the same numbers as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(x: np.ndarray) -> np.ndarray:
    """float32 → bfloat16 held as uint16, rounded half to even; NaN stays NaN."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), (bits >> 16) | 0x40, rounded).astype(np.uint16).reshape(x.shape)


def stored(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    """Numbers as the array that holds them in this type: of bf16 the bits, rounded half to even."""
    if dtype is DType.BF16:
        return f32_to_bf16(numbers.astype(np.float32, copy=False))
    return numbers.astype(dtype.np, copy=False)


def widened(
    arrays: Mapping[str, np.ndarray], graph: Graph | Callable[[], Graph]
) -> dict[str, np.ndarray]:  # fmt: skip
    """Values and layers' outputs by name, those in bf16 as float32. A graph that has to be read
    first is asked for only where an array can be bits."""
    if not any(a.dtype == np.uint16 for a in arrays.values()):
        return dict(arrays)
    known = graph() if callable(graph) else graph
    made = [(name, v) for n in known.nodes for v in n.outputs for name in (v.name, n.name)]
    made += [(v.name, v) for v in known.inputs]
    bits = {name for name, v in made if v.dtype is DType.BF16}
    return {
        name: bf16_to_f32(a) if name in bits and a.dtype == np.uint16 else a
        for name, a in arrays.items()
    }
