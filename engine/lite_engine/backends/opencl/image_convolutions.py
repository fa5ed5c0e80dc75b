"""Convolutions through image2d: a way to compute that phones' GPUs prefer (`conv_image.cl`)."""

from __future__ import annotations

from .constants import Constant
from .launch import Image, Launch
from .options import join, storage_option
from .problem import Convolution
from .profile import DeviceProfile

#: Neighbouring pixels of a work-item.
_PIXELS = 4


def _blocks(channels: int) -> int:
    return -(-channels // 4)


def suits(profile: DeviceProfile, problem: Convolution, depthwise: bool = False) -> bool:
    """Whether input and weights fit into the device's images."""
    _, height, width, channels, _, out_w, outputs = problem.sizes
    window = problem.window
    columns, rows = profile.images
    deep = window[0] * window[1] * (1 if depthwise else 4 * _blocks(channels))
    wide, tall = width * _blocks(channels), problem.images * height
    return (
        problem.dense
        and out_w > 1
        and max(wide, deep) <= columns
        and max(tall, _blocks(outputs)) <= rows
    )


def convolved(problem: Convolution, depthwise: bool = False) -> list[Launch]:
    """Depthwise taps are (C, KH·KW)."""
    _, height, width, channels, out_h, out_w, outputs = problem.sizes
    x, y, taps, images = problem.x, problem.y, problem.taps, problem.images
    blocks = _blocks(channels)
    columns, rows = width * blocks, images * height
    source = Image(columns, rows, x.dtype)
    text = join(
        storage_option(y.dtype), f"#define TM {_PIXELS}", "#define DEPTHWISE" if depthwise else "",
        "#define RESIDUAL" if problem.residual is not None else "", problem.act.options,
    )  # fmt: skip
    weights = taps if depthwise else _deepened(taps, channels)
    args: list[object] = [
        source, Image.of(_texels(weights).cast(y.dtype)),
        problem.bias.padded(outputs + -outputs % 4), problem.residual or y, y,
        images, height, width, blocks, out_h, out_w, outputs, *problem.window,
    ]  # fmt: skip
    grid = (_blocks(outputs), images * out_h * -(-out_w // _PIXELS))
    filled: list[object] = [x, source, channels, columns, rows]
    return [
        Launch("conv_image", "to_image", filled, (columns, rows), text),
        Launch("conv_image", "conv_image", args, grid, text),
    ]


def _deepened(taps: Constant, channels: int) -> Constant:
    """(O, taps·C) with C a multiple of four, zeros beyond."""
    by_tap = taps.reshape(taps.shape[0], -1, channels)
    deep = by_tap.padded(*by_tap.shape[:2], 4 * _blocks(channels))
    return deep.reshape(taps.shape[0], -1)


def _texels(weights: Constant) -> Constant:
    """(O, K) → (blocks of four O, K, 4), zeros beyond O."""
    count, depth = weights.shape
    whole = weights.padded(4 * _blocks(count), depth)
    return whole.reshape(-1, 4, depth).transpose(0, 2, 1)
