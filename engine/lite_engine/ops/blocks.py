"""Blocks of an image as channels and back: DepthToSpace, SpaceToDepth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, TypeInfo
from ._core import REQUIRED, define_op
from ._helpers import (
    ANY,
    check_word,
)
from ._samples import Draw, Sample

# ---- blocks of space and depth

depth_to_space = define_op(
    "DepthToSpace",
    integer_form="view",
    quantized="follows",
    inputs="x",
    attrs={"blocksize": REQUIRED, "mode": "DCR"},
    layout="channels_last",
    source="ONNX DepthToSpace-13",
    choices={"mode": ("DCR", "CRD")},
)


@depth_to_space.infer
def _(x: TypeInfo, *, blocksize: int, mode: str) -> TypeInfo:
    check_word("mode", mode, "DCR", "CRD")
    n, c, h, w = _four(x)
    b = blocksize
    if isinstance(c, int) and c % (b * b):
        raise ShapeError(tr("{c} channels do not split into blocks of {b}x{b}", c=c, b=b))
    grow = [d * b if isinstance(d, int) else None for d in (h, w)]
    return x.with_shape((n, c // (b * b) if isinstance(c, int) else None, *grow))


def _four(x: TypeInfo) -> tuple[Dim, ...]:
    if x.rank != 4:
        raise ShapeError(tr("expected an input of rank 4, found {rank}", rank=x.rank))
    return x.dims


@depth_to_space.reference
def _(x: np.ndarray, *, blocksize: int, mode: str) -> np.ndarray:
    """(N,C·b²,H,W) → (N,C,H·b,W·b); the block index is outermost (DCR) or innermost (CRD)"""
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // b**2, h * b, w * b)


depth_to_space.kernel("cpu", "copy_depth_to_space", dtype=ANY)

space_to_depth = define_op(
    "SpaceToDepth",
    integer_form="view",
    quantized="follows",
    inputs="x",
    attrs={"blocksize": REQUIRED, "mode": "DCR"},
    layout="channels_last",
    source="ONNX SpaceToDepth-27",
    choices={"mode": ("DCR", "CRD")},
)


@space_to_depth.infer
def _(x: TypeInfo, *, blocksize: int, mode: str) -> TypeInfo:
    check_word("mode", mode, "DCR", "CRD")
    n, c, h, w = _four(x)
    b = blocksize
    if any(isinstance(d, int) and d % b for d in (h, w)):
        raise ShapeError(tr("{h}x{w} does not split into blocks of {b}x{b}", h=h, w=w, b=b))
    shrink = [d // b if isinstance(d, int) else None for d in (h, w)]
    return x.with_shape((n, c * b * b if isinstance(c, int) else None, *shrink))


@space_to_depth.reference
def _(x: np.ndarray, *, blocksize: int, mode: str) -> np.ndarray:
    """(N,C,H·b,W·b) → (N,C·b²,H,W); DCR and CRD as in DepthToSpace"""
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape(n, c, h // b, b, w // b, b)
    y = y.transpose(0, 3, 5, 1, 2, 4) if mode == "DCR" else y.transpose(0, 1, 3, 5, 2, 4)
    return y.reshape(n, c * b * b, h // b, w // b)


space_to_depth.kernel("cpu", "copy_space_to_depth", dtype=ANY)


@depth_to_space.samples
def _(draw: Draw) -> Iterator[Sample]:
    for mode in depth_to_space.choices["mode"]:
        yield Sample([draw(2, 12, 3, 5)], {"blocksize": 2, "mode": mode})
        yield Sample([draw(1, 72, 2, 3)], {"blocksize": 3, "mode": mode})


@space_to_depth.samples
def _(draw: Draw) -> Iterator[Sample]:
    for mode in space_to_depth.choices["mode"]:
        yield Sample([draw(2, 3, 6, 4)], {"blocksize": 2, "mode": mode})
        yield Sample([draw(1, 17, 6, 9)], {"blocksize": 3, "mode": mode})
