"""Convolutions through image2d: a way to compute that phones' GPUs prefer (`conv_image.cl`)."""

from __future__ import annotations

import numpy as np

from ...plan import PlanTensor
from .device import Device
from .launch import Image, Launch, join, storage_option

#: Neighbouring pixels of a work-item.
_PIXELS = 4


def _blocks(channels: int) -> int:
    return -(-channels // 4)


def suits(device: Device, sizes: list[int], window: list[int], depthwise: bool = False) -> bool:
    """Whether input and weights fit into the device's images. `sizes` and `window` as
    convolutions._geometry gives them."""
    m, height, width, channels, out_h, out_w, outputs = sizes
    columns, rows = device.images
    deep = window[0] * window[1] * (1 if depthwise else 4 * _blocks(channels))
    wide, tall = width * _blocks(channels), m // (out_h * out_w) * height
    return out_w > 1 and max(wide, deep) <= columns and max(tall, _blocks(outputs)) <= rows


def convolved(
    x: PlanTensor,
    y: PlanTensor,
    sizes: list[int],
    window: list[int],
    taps: np.ndarray,
    bias: np.ndarray,
    residual: PlanTensor | None,
    options: list[str],
    depthwise: bool = False,
) -> list[Launch]:
    """taps (O, KH·KW·C), depthwise (C, KH·KW)."""
    m, height, width, channels, out_h, out_w, outputs = sizes
    blocks, images = _blocks(channels), m // (out_h * out_w)
    columns, rows = width * blocks, images * height
    source = Image(columns, rows, x.dtype)
    text = join(
        storage_option(y.dtype), f"#define TM {_PIXELS}", "#define DEPTHWISE" if depthwise else "",
        *options,
    )  # fmt: skip
    weights = taps if depthwise else _deepened(taps, channels)
    args: list[object] = [
        source, Image.of(_texels(weights), y.dtype), np.pad(bias, (0, -len(bias) % 4)),
        residual or y, y, images, height, width, blocks, out_h, out_w, outputs, *window,
    ]  # fmt: skip
    grid = (_blocks(outputs), images * out_h * -(-out_w // _PIXELS))
    filled: list[object] = [x, source, channels, columns, rows]
    return [
        Launch("conv_image", "to_image", filled, (columns, rows), text),
        Launch("conv_image", "conv_image", args, grid, text),
    ]


def _deepened(taps: np.ndarray, channels: int) -> np.ndarray:
    """(O, taps·C) with C a multiple of four, zeros beyond."""
    by_tap = taps.reshape(len(taps), -1, channels)
    return np.pad(by_tap, ((0, 0), (0, 0), (0, -channels % 4))).reshape(len(taps), -1)


def _texels(weights: np.ndarray) -> np.ndarray:
    """(O, K) → (blocks of four O, K, 4), zeros beyond O."""
    count, depth = weights.shape
    whole = np.pad(weights, ((0, -count % 4), (0, 0)))
    return np.ascontiguousarray(whole.reshape(-1, 4, depth).swapaxes(1, 2))
