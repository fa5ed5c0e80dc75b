"""Pooling to a given output size, where the size does not divide the input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._core import REQUIRED, define_op
from ._records import Cost

adaptive_pool = define_op(
    "AdaptivePool",
    inputs="x",
    attrs={"output_size": REQUIRED, "mode": "avg"},
    source="Paddle pool2d with adaptive=True",
)


@adaptive_pool.infer
def _(x: TypeInfo, *, output_size: list[int], mode: str) -> TypeInfo:
    if x.rank != len(output_size) + 2 or any(s <= 0 for s in output_size):
        raise ShapeError(
            tr(
                "output_size {output_size} for an input of rank {rank}",
                output_size=output_size,
                rank=x.rank,
            )
        )
    if mode not in ("avg", "max"):
        raise ShapeError(tr("mode {mode!r} is neither avg nor max", mode=mode))
    return x.with_shape((x.dims[0], x.dims[1], *output_size))


@adaptive_pool.reference
def _(x: np.ndarray, *, output_size: list[int], mode: str) -> np.ndarray:
    """y[i] = mean (or max) of x[⌊i·L/O⌋ … ⌈(i+1)·L/O⌉) along each spatial axis"""
    y = np.empty((*x.shape[:2], *output_size), x.dtype)
    axes = tuple(range(2, x.ndim))
    for cell in itertools.product(*map(range, output_size)):
        window: Any = (slice(None), slice(None)) + tuple(
            slice(i * size // out, -(-(i + 1) * size // out))
            for i, size, out in zip(cell, x.shape[2:], output_size)
        )
        place: Any = (slice(None), slice(None), *cell)
        y[place] = x[window].mean(axes) if mode == "avg" else x[window].max(axes)
    return y


@adaptive_pool.cost
def _(x: TypeInfo, *, output_size: list[int], mode: str) -> Cost:
    return Cost(flops=x.size)
