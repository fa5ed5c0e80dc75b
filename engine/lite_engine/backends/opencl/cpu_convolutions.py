"""Convolutions and products on CPU devices: sums in vector registers, no barriers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir import DType
from ...plan import PlanTensor, Step
from .device import Device
from .launch import Launch, Scratch, activation_options, join, storage_option, vector
from .winograd import WINOGRAD_POINTS, from_points, points_of, tiles_of, to_points

#: Vectors of a block and most pixels of a tile by the floats that a register holds: compilers keep
#: a pixel's factor in a register of its own beside its sums, so 3·TM + 2 of them must do.
_REGISTERS = {16: (2, 9), 8: (2, 4), 4: (2, 4)}
#: Pixels of a tile to choose from: each is a program that a first run has to build.
_PIXELS = (1, 2, 4, 7, 8, 9)
#: A tile's cost beside its pixels, in pixels: its start and its end.
_TILE_COST = 1.5
_MIN_WINOGRAD_CHANNELS = 16
#: Below so many output pixels, 36 small products lose to one.
_MIN_WINOGRAD_PIXELS = 100


@dataclass(frozen=True)
class Block:
    """TM pixels x NV vectors of V channels in registers."""

    v: int
    nv: int
    tm: int

    @property
    def channels(self) -> int:
        return self.v * self.nv

    def defines(self) -> str:
        return f"#define V {self.v}\n#define NV {self.nv}\n#define TM {self.tm}"


def block_of(device: Device, width: int, outputs: int) -> Block:
    """For rows of `width` pixels and so many output channels."""
    lanes = device.lanes
    nv, most = _REGISTERS[lanes]
    if outputs <= lanes:
        nv = 1
        while lanes > 4 and outputs <= lanes // 2:
            lanes //= 2
    sizes = [tm for tm in _PIXELS if tm <= min(most, width)]
    return Block(lanes, nv, min(sizes, key=lambda tm: -(-width // tm) * (tm + _TILE_COST)))


def packed(taps: np.ndarray, channels: int) -> np.ndarray:
    """(…, O, K) as (…, blocks, K, channels), zeros beyond O."""
    *planes, count, depth = taps.shape
    blocks = -(-count // channels)
    out = np.zeros((*planes, blocks * channels, depth), np.float32)
    out[..., :count, :] = taps
    out = out.reshape(*planes, blocks, channels, depth)
    return np.ascontiguousarray(np.swapaxes(out, -1, -2))


def tiled(
    step: Step,
    device: Device,
    x: PlanTensor,
    y: PlanTensor | Scratch,
    sizes: list[int],
    window: list[int],
    taps: np.ndarray,
    bias: np.ndarray,
    residual: PlanTensor | None,
) -> list[Launch]:
    """taps (O, K). `sizes` and `window` as convolutions._geometry gives them."""
    m, height, width, channels, out_h, out_w, outputs = sizes
    kh, kw, sh, sw, top, left, dh, dw = window
    if _wants_winograd(sizes, window):
        return _winograd(step, device, x, y, sizes, window, taps, bias, residual)
    images = m // (out_h * out_w)
    # What the window of the last output needs; more of the input is not looked at.
    tall = max((out_h - 1) * sh + (kh - 1) * dh + 1, top + height)
    wide = max((out_w - 1) * sw + (kw - 1) * dw + 1, left + width)
    launches = []
    source: PlanTensor | Scratch = x
    if (tall, wide) != (height, width) or x.dtype is not DType.F32:
        source = Scratch(images * tall * wide * channels * 4)
        launches.append(_surround(x, source, images, sizes, (top, left, tall, wide), device))
    rows = images * out_h
    if (kh, kw, sh, sw) == (1, 1, 1, 1) and (tall, wide) == (height, width):
        rows, out_w, wide = 1, m, m  # every pixel lies a constant step after the one before
        out_h = tall = 1
    block = block_of(device, out_w, outputs)
    options = join(
        storage_option(y.dtype), _fma(device), block.defines(), activation_options(step),
        "#define BIAS", "#define RESIDUAL" if residual is not None else "",
    )  # fmt: skip
    weights = packed(taps, block.channels)
    wanted = len(weights) * block.channels
    args = [
        source, weights, np.pad(bias, (0, wanted - outputs)), residual or y, y,
        tall, wide, channels, out_h, out_w, outputs, kh, kw, sh, sw, dh, dw, 0, 0, 0,
    ]  # fmt: skip
    grid = (rows * -(-out_w // block.tm), len(weights), 1)
    return [*launches, Launch("conv", "conv", args, grid, options, (1, 1, 1))]


def product(
    step: Step,
    device: Device,
    a: PlanTensor,
    b: PlanTensor,
    y: PlanTensor,
    sizes: tuple[int, int, int, int],
    planes: tuple[int, int],
) -> list[Launch]:
    """y (batch,M,N) = a (…,M,K) · b (…,K,N), both computed. `sizes` (batch, M, N, K); `planes` how
    many a and b have, 1 or batch."""
    batch, m, n, k = sizes
    block = block_of(device, m, n)
    blocks = -(-n // block.channels)
    text = join(storage_option(y.dtype), _fma(device), block.defines())
    weights = Scratch(planes[1] * blocks * k * block.channels * 4)
    layout = join(storage_option(b.dtype), f"#define WIDTH {block.channels}")
    launches = [Launch("pack", "pack", [b, weights, k, n, blocks], (k, blocks, planes[1]), layout)]
    source: PlanTensor | Scratch = a
    if a.dtype is not DType.F32:
        source = Scratch(planes[0] * m * k * 4)
        whole = [1, planes[0] * m, 1, k]
        launches.append(_surround(a, source, 1, whole, (0, 0, planes[0] * m, 1), device))
    steps = [0 if p == 1 else count for p, count in zip(planes, (m * k, blocks * k))]
    args = [
        source, weights, Scratch(4), y, y, 1, m, k, 1, m, n, 1, 1, 1, 1, 1, 1,
        steps[0], steps[1] * block.channels, m * n,
    ]  # fmt: skip
    grid = (-(-m // block.tm), blocks, batch)
    text = join(text, activation_options(step))
    return [*launches, Launch("conv", "conv", args, grid, text, (1, 1, 1))]


def scattered(
    step: Step,
    device: Device,
    x: PlanTensor,
    y: PlanTensor,
    w: np.ndarray,
    bias: np.ndarray,
) -> list[Launch]:
    """ConvTranspose with stride = kernel and no padding: one product whose columns are (ky, kx, o),
    then its rows in their places. w (C, O, KH, KW)."""
    cin, cout, kh, kw = w.shape
    taps = w.transpose(2, 3, 1, 0).reshape(kh * kw * cout, cin)
    n, height, width, _ = x.dims
    m = n * height * width
    made = Scratch(m * len(taps) * y.dtype.itemsize, y.dtype)
    sizes = [m, m, 1, cin, m, 1, len(taps)]
    window = [1] * 4 + [0, 0, 1, 1]
    product = tiled(step, device, x, made, sizes, window, taps, np.tile(bias, kh * kw), None)
    text = join(storage_option(y.dtype), f"#define V {device.lanes}\n#define WIDTH 1")
    args = [made, y, n * height, width, kh, kw * cout]
    return [*product, Launch("pack", "spread", args, (n * height, kh), text, (1, 1))]


def _fma(device: Device) -> str:
    return "#define FAST_FMA" if device.fast_fma else ""


def _surround(
    x: PlanTensor,
    target: Scratch,
    images: int,
    sizes: list[int],
    frame: tuple[int, int, int, int],
    device: Device,
) -> Launch:
    """x as floats with its padding. `frame` is (top, left, height, width) of the padded image."""
    _, height, width, channels = sizes[:4]
    top, left, tall, wide = frame
    rows = images * tall
    args = [x, target, rows, height, width, channels, top, left, tall, wide]
    text = join(storage_option(x.dtype), f"#define V {device.lanes}\n#define WIDTH 1")
    return Launch("pack", "surround", args, (rows,), text, (1,))


def _wants_winograd(sizes: list[int], window: list[int]) -> bool:
    m, _, _, channels, _, _, outputs = sizes
    same = window[:4] == [3, 3, 1, 1] and window[6:] == [1, 1]
    few = min(channels, outputs) < _MIN_WINOGRAD_CHANNELS or channels % 4 or outputs % 4
    return same and not few and m >= _MIN_WINOGRAD_PIXELS


def _winograd(
    step: Step,
    device: Device,
    x: PlanTensor,
    y: PlanTensor | Scratch,
    sizes: list[int],
    window: list[int],
    taps: np.ndarray,
    bias: np.ndarray,
    residual: PlanTensor | None,
) -> list[Launch]:
    channels, outputs, tiles = sizes[3], sizes[6], tiles_of(sizes)
    points = points_of(taps, outputs, channels)  # (36, C, O)
    block = block_of(device, tiles, outputs)
    weights = packed(points.swapaxes(-1, -2), block.channels)
    before = Scratch(WINOGRAD_POINTS * tiles * channels * 4)
    after = Scratch(WINOGRAD_POINTS * tiles * outputs * 4)
    blocks = weights.shape[1]
    args = [
        before, weights, before, after, after, 1, tiles, channels, 1, tiles, outputs,
        1, 1, 1, 1, 1, 1, tiles * channels, blocks * channels * block.channels, tiles * outputs,
    ]  # fmt: skip
    grid = (-(-tiles // block.tm), blocks, WINOGRAD_POINTS)
    multiplied = join(_fma(device), block.defines())
    text = join(
        storage_option(y.dtype), activation_options(step),
        "#define RESIDUAL" if residual is not None else "",
    )  # fmt: skip
    group = (1, 8)
    v, u = vector(device, DType.F32, channels), vector(device, DType.F32, outputs)
    return [
        to_points(x, before, sizes, window, text, v, group),
        Launch("conv", "conv", args, grid, multiplied, (1, 1, 1)),
        from_points(after, bias, residual, y, sizes, text, u, group),
    ]
