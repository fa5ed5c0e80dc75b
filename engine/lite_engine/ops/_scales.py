"""Scales and zero points of quantized operators: real = (q − zero_point) · scale."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class Scale(NamedTuple):
    """Scale and zero point of one tensor; no zero point means 0."""

    scale: Any
    zero: Any

    def shifted(self, q: Array, dtype: Any = np.int32) -> Array:
        """q − zero_point"""
        return q.astype(dtype) - (0 if self.zero is None else dtype(self.zero.reshape(())))

    def real(self, q: Array) -> Array:
        """(q − zero_point) · scale in float32"""
        return self.shifted(q).astype(np.float32) * self.scale.reshape(()).astype(np.float32)

    def quantized(self, y: Array, dtype: np.dtype) -> Array:
        """clamp(round(y / scale) + zero_point), in the type of y"""
        q = np.rint(y / y.dtype.type(self.scale.reshape(())))
        return saturate(
            q + (0 if self.zero is None else q.dtype.type(self.zero.reshape(()))), dtype
        )


def scales(parameters: tuple[Any, ...]) -> list[Scale]:
    """The inputs scale, zero_point, scale, zero_point, … in pairs."""
    return [Scale(*pair) for pair in zip(parameters[::2], parameters[1::2])]


def saturate(q: Array, dtype: np.dtype) -> Array:
    """Whole numbers clamped to an integer type."""
    info = np.iinfo(dtype)
    return np.clip(q, info.min, info.max).astype(dtype)


def per_axis(v: Array, axis: int, rank: int) -> Array:
    """One number, or one per index of axis, made to broadcast."""
    if v.size == 1:
        return v.reshape(())
    return v.reshape([-1 if i == axis else 1 for i in range(rank)])


def requantize(acc: Array, scale: Array, zero_point: Array, residual: Array | None = None) -> Array:
    """Accumulators to the element type of `zero_point`; `scale` f32 broadcasts against them.
    `residual` f32 is in units of y."""
    real = acc.astype(np.float32) * scale.astype(np.float32)
    if residual is not None:
        real = real + residual
    return saturate(np.rint(real) + zero_point.astype(np.float32), zero_point.dtype)
