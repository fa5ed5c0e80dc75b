"""Rearrangements of images and windows."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ....ir import Value
from ..registry import Call, translates
from .conv import channels_first, channels_last, is_channels_last

#: Windows become columns by a convolution with an identity weight of so many numbers at most.
MAX_WINDOW, MAX_WEIGHT = 1 << 10, 1 << 24


@translates("pixel_shuffle")
def _(op: Call) -> None:
    x = op.need("X")
    last = is_channels_last(op)
    if last:
        x = channels_first(op, x)
    factor = int(op.attr("upscale_factor", 1))
    y = op.node("DepthToSpace", [x], blocksize=factor, mode="CRD")
    op.set("Out", channels_last(op, y) if last else y)


def _fixed(op: Call, x: Value) -> list[int]:
    dims = list(x.shape or ())
    if len(dims) != 4 or not all(isinstance(d, int) for d in dims[1:]):
        raise op.unsupported(
            tr("it needs a known shape (N,C,H,W) of {x}; import with shapes=…", x=x.name)
        )
    return [int(d) for d in dims[1:]]  # type: ignore[arg-type]


@translates("pixel_unshuffle")
def _(op: Call) -> None:
    x, r = op.need("X"), int(op.attr("downscale_factor", 1))
    c, h, w = _fixed(op, x)
    if r < 1:
        raise op.unsupported(tr("the factor must be at least 1, got {reason}", reason=r))
    y = op.to_shape(x, [0, c, h // r, r, w // r, r])
    y = op.transpose(y, [0, 1, 3, 5, 2, 4])
    op.set("Out", op.to_shape(y, [0, c * r * r, h // r, w // r]))


@translates("space_to_depth")
def _(op: Call) -> None:
    op.set("Out", op.node("SpaceToDepth", [op.need("X")], blocksize=int(op.attr("blocksize", 2))))


@translates("shuffle_channel", "channel_shuffle")
def _(op: Call) -> None:
    """(N, g·k, H, W) → (N, k·g, H, W)"""
    x = op.need("X")
    groups = int(op.attr("group", op.attr("groups", 1)))
    channels = op.size(x, 1)
    if channels is None or groups <= 0 or channels % groups:
        raise op.unsupported(
            tr(
                "{channels} channels do not split into {groups} groups",
                channels=channels,
                groups=groups,
            )
        )
    dims = list(x.shape or ())[2:]
    tail = [d if isinstance(d, int) else None for d in dims]
    if None in tail:  # spatial sizes are copied around the transposition: merge them
        y = op.to_shape(x, [0, groups, channels // groups, -1])
        y = op.transpose(y, [0, 2, 1, 3])
        shape = op.node("Shape", [x])
        op.set("Out", op.node("Reshape", [y, shape]))
        return
    y = op.to_shape(x, [0, groups, channels // groups, *tail])  # type: ignore[list-item]
    y = op.transpose(y, [0, 2, 1, *range(3, 3 + len(tail))])
    op.set("Out", op.to_shape(y, [0, channels, *tail]))  # type: ignore[list-item]


@translates("temporal_shift")
def _(op: Call) -> None:
    """Channels c < C·r come from the next frame, the next C·r from the one before."""
    x, frames = op.need("X"), int(op.attr("seg_num", 1))
    c, h, w = _fixed(op, x)
    part = int(c * float(op.attr("shift_ratio", 0.25)))
    y = op.to_shape(x, [-1, frames, c, h, w])
    zero = op.const([0, 1, 0, 0, 0, 0, 1, 0, 0, 0])
    padded = op.node("Pad", [y, zero, op.const(0.0)], mode="constant")

    def window(start: int, first: int, last: int) -> Value:
        return op.node("Slice", [
            padded, op.const([start, first]), op.const([start + frames, last]), op.const([1, 2])
        ])  # fmt: skip

    parts = [window(0, 0, part), window(2, part, 2 * part), window(1, 2 * part, c)]
    op.set("Out", op.to_shape(op.node("Concat", parts, axis=2), [-1, c, h, w]))


def _columns(op: Call, x: Value, kernel: list[int], strides: list[int], pads: list[int],
             dilations: list[int]) -> Value:  # fmt: skip
    """Windows as columns (N, C·kh·kw, oh, ow): a convolution with an identity weight, grouped."""
    channels = op.size(x, 1)
    if channels is None:
        raise op.unsupported(tr("it needs a known number of channels"))
    if len(kernel) != 2 or not all(0 < k <= MAX_WINDOW for k in kernel):
        raise op.unsupported(tr("windows of {kernel} are not supported", kernel=kernel))
    taps = kernel[0] * kernel[1]
    if channels * taps * taps > MAX_WEIGHT:
        raise op.unsupported(
            tr(
                "windows of {kernel} over {channels} channels are too large",
                kernel=kernel,
                channels=channels,
            )
        )
    weight = np.tile(np.eye(taps, dtype=np.float32).reshape(taps, 1, *kernel), (channels, 1, 1, 1))
    return op.node(
        "Conv", [x, op.const(weight)], kernel_shape=kernel, strides=strides, pads=pads,
        dilations=dilations, group=channels,
    )  # fmt: skip


@translates("unfold")
def _(op: Call) -> None:
    """(N, C, H, W) → (N, C·kh·kw, windows)"""
    pads = op.ints("paddings", [0, 0, 0, 0])
    pads = pads + pads if len(pads) == 2 else pads
    y = _columns(
        op, op.need("X"), op.ints("kernel_sizes"), op.ints("strides", [1, 1]), pads,
        op.ints("dilations", [1, 1]),
    )  # fmt: skip
    op.set("Y", op.to_shape(y, [0, 0, -1]))


@translates("im2sequence")
def _(op: Call) -> None:
    """(N, C, H, W) → (N·windows, C·kh·kw)"""
    kernel = op.ints("kernels")
    pads = op.ints("paddings", [0, 0, 0, 0])
    y = _columns(op, op.need("X"), kernel, op.ints("strides", [1, 1]), pads, [1, 1])
    y = op.transpose(y, [0, 2, 3, 1])
    channels = op.size(y, 3)
    op.set("Out", op.to_shape(y, [-1, -1 if channels is None else channels]))
