"""bf16 at the borders of a model. NumPy has no such type: arrays hold its bits as uint16."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..ir import DType
from ..ops._bf16 import bf16_to_f32, f32_to_bf16

if TYPE_CHECKING:
    from ..ir import Graph


def stored(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    """Numbers as the array that holds them in this type: of bf16 the bits, rounded half to even."""
    if dtype is DType.BF16:
        return f32_to_bf16(numbers.astype(np.float32, copy=False))
    return numbers.astype(dtype.np, copy=False)


def widened(
    arrays: Mapping[str, np.ndarray], graph: Callable[[], Graph]
) -> dict[str, np.ndarray]:  # fmt: skip
    """Values and layers' outputs by name, those in bf16 as float32. The graph is asked for only
    where an array can be bits."""
    if not any(a.dtype == np.uint16 for a in arrays.values()):
        return dict(arrays)
    known = graph()
    made = [(name, v) for n in known.nodes for v in n.outputs for name in (v.name, n.name)]
    made += [(v.name, v) for v in known.inputs]
    bits = {name for name, v in made if v.dtype is DType.BF16}
    return {
        name: bf16_to_f32(a) if name in bits and a.dtype == np.uint16 else a
        for name, a in arrays.items()
    }
