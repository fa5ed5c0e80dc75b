"""Softmax, LogSoftmax and Hardmax along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir import TypeInfo
from ._core import OpDef, define_op
from ._helpers import normalise_axis, typed, wide
from ._records import Cost


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """y = e^(x−max) / Σ e^(x−max)"""
    e = np.exp(wide(x) - np.max(wide(x), axis=axis, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=axis, keepdims=True)


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """y = x − max − ln Σ e^(x−max)"""
    shifted = wide(x) - np.max(wide(x), axis=axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _hardmax(x: np.ndarray, axis: int) -> np.ndarray:
    """y = 1 at the first maximum, 0 elsewhere"""
    y = np.zeros_like(x)
    np.put_along_axis(y, np.argmax(x, axis=axis, keepdims=True), 1, axis)
    return y


def _along_axis(
    name: str, fn: Callable[..., np.ndarray], flops: int, *, native: bool = False, **properties: Any
) -> OpDef:
    op = define_op(
        name,
        inputs="x",
        attrs={"axis": -1},
        layout="axis",
        axis_attrs=("axis",),
        transpose_rule="axis",
        source=f"ONNX {name}-13",
        **properties,
    )

    @op.infer
    def _(x: TypeInfo, *, axis: int) -> TypeInfo:
        if x.shape is not None:
            normalise_axis(axis, x.rank)
        return TypeInfo(x.dtype, x.shape)

    op.reference(typed(fn))
    op.cost(lambda x, **_: Cost(flops=flops * x.size))
    if native:
        op.kernel("cpu", "f32_softmax")
        op.kernel("opencl", "softmax", dtype="f32,f16")
    return op


_along_axis(
    "Softmax", softmax, 12, native=True, output_range=(0, 1), integer_form="simple",
    postprocess="scores",
)  # fmt: skip
_along_axis("LogSoftmax", _log_softmax, 13, native=True, postprocess="scores")
_along_axis("Hardmax", _hardmax, 2, postprocess="choice")
