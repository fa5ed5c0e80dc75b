"""Planted faults: one layer made wrong on purpose, to test and to teach `lite compare`.

A fault is applied to a layer's output on the host right after its kernel, whatever the backend, so
everything after it is a true victim.
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..errors import check_choice

#: What a kernel can get wrong. Arrays are logical: channels on axis 1, columns on the last.
KINDS = ("drop_last_column", "swap_channels", "overflow_fp16", "forget_bias", "read_past_edge")


def check_kind(kind: str) -> str:
    """Raises UsageError for an unknown kind."""
    check_choice(tr("fault"), kind, KINDS)
    return kind


def apply_fault(kind: str, y: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """The array as a faulty kernel would leave it. `bias` (C,) is the layer's own, for
    forget_bias."""
    y = np.array(y)
    if kind == "drop_last_column":
        y[..., -1] = 0
    elif kind == "swap_channels":
        axis = 1 if y.ndim > 1 else 0
        first, last = _channel(y, axis, 0).copy(), _channel(y, axis, -1).copy()
        _channel(y, axis, 0)[...] = last
        _channel(y, axis, -1)[...] = first
    elif kind == "overflow_fp16":
        with np.errstate(over="ignore"):
            y = (y.astype(np.float32) * np.float32(3e4)).astype(np.float16).astype(y.dtype)
    elif kind == "forget_bias":
        offset = np.float32(y.std() or 1) if bias is None else bias.reshape(-1, *[1] * (y.ndim - 2))
        y = (y - offset).astype(y.dtype)
    else:
        check_kind(kind)
        y[..., -1] = y[..., 0]
    return y


def _channel(y: np.ndarray, axis: int, index: int) -> np.ndarray:
    return y[(slice(None),) * axis + (index,)]
