"""Convolutions and Gemm on GPUs: local-memory tiles, split K, few rows, vector depthwise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir import DType
from ...plan import PlanTensor, Step
from .device import Device
from .launch import Launch, Scratch, activation_options, join, storage_option

FEW_ROWS = 8


@dataclass(frozen=True)
class Tile:
    """BM pixels x BN channels a work-group, TM x TN a work-item, BK deep in local memory."""

    bm: int
    bn: int
    tm: int
    tn: int
    bk: int = 16

    def defines(self) -> str:
        values = {"BM": self.bm, "BN": self.bn, "TM": self.tm, "TN": self.tn, "BK": self.bk}
        return "\n".join(f"#define {k} {v}" for k, v in values.items())

    @property
    def items(self) -> int:
        return self.bm // self.tm * (self.bn // self.tn)


#: From large to small: the first that still gives every compute unit a group is taken.
TILES = (
    Tile(128, 128, 8, 8), Tile(128, 64, 8, 4), Tile(128, 32, 8, 4), Tile(64, 64, 4, 4),
    Tile(64, 32, 4, 4), Tile(32, 64, 4, 4, 32),
)  # fmt: skip


def choose_tile(m: int, n: int, k: int, units: int) -> tuple[Tile, int]:
    """(tile, parts of K). Parts are added where the tiles alone leave compute units idle."""
    for tile in TILES:
        groups = -(-m // tile.bm) * -(-n // tile.bn)
        waste = -(-m // tile.bm) * tile.bm / m * (-(-n // tile.bn) * tile.bn / n)
        if groups >= units and waste < 1.35:
            return tile, 1
    narrow = Tile(64, 32, 4, 4) if n <= 32 else Tile(64, 64, 4, 4)
    tile = TILES[-1] if m <= 32 or n * m < 64 * 64 * 16 else narrow
    groups = -(-m // tile.bm) * -(-n // tile.bn)
    parts = max(1, min(2 * units // groups, k // (4 * tile.bk)))
    return tile, parts


def tiled(
    step: Step,
    device: Device,
    x: PlanTensor,
    y: PlanTensor,
    sizes: list[int],
    window: list[int],
    taps: np.ndarray,
    bias: np.ndarray,
    residual: PlanTensor | None,
) -> list[Launch]:
    """taps (O, K). `sizes` and `window` as convolutions._geometry gives them."""
    m, channels, outputs, depth = sizes[0], sizes[3], taps.shape[0], taps.shape[1]
    options = [storage_option(y.dtype), activation_options(step)]
    options += ["#define RESIDUAL"] if residual is not None else []
    pointwise = window == [1, 1, 1, 1, 0, 0, 1, 1] and channels % 4 == 0
    if m < FEW_ROWS and residual is None and sizes[1:3] == [m, 1]:
        return [_gemv(x, y, m, taps, bias, join(*options))]
    tile, parts = choose_tile(m, outputs, depth, device.report.compute_units)
    wide = -(-outputs // tile.bn) * tile.bn
    deep = -(-depth // tile.bk) * tile.bk
    packed = np.zeros((deep, wide), np.float16 if y.dtype is DType.F16 else np.float32)
    packed[:depth, :outputs] = taps.T
    part = -(-(deep // tile.bk) // parts) * tile.bk
    parts = -(-deep // part)
    options += ["#define POINTWISE"] if pointwise else []
    options += ["#define QUADS"] if channels % 4 == 0 else []
    options += ["#define SPLIT"] if parts > 1 else []
    text = join(*options, tile.defines())
    partial = Scratch(parts * m * outputs * 4 if parts > 1 else 4)
    args = [
        x, packed, bias, residual or y, y, partial, *sizes, *window, wide, deep, part,
    ]  # fmt: skip
    grid = (wide // tile.bn * tile.items, -(-m // tile.bm), parts)
    out = [Launch("conv_tile", "conv_tile", args, grid, text, (tile.items, 1, 1))]
    if parts > 1:
        n = m * outputs
        sums = [partial, bias, residual or y, y, n, outputs, parts]
        out.append(Launch("conv_tile", "conv_sum", sums, (n,), text))
    return out


def scattered(
    step: Step,
    device: Device,
    x: PlanTensor,
    y: PlanTensor,
    w: np.ndarray,
    bias: np.ndarray,
) -> list[Launch]:
    """ConvTranspose with stride = kernel and no padding: one product whose columns are (ky, kx, o).

    w (C, O, KH, KW).
    """
    cin, cout, kh, kw = w.shape
    taps = w.transpose(2, 3, 1, 0).reshape(kh * kw * cout, cin)
    m = x.dims[0] * x.dims[1] * x.dims[2]
    tile, _ = choose_tile(m, taps.shape[0], cin, device.report.compute_units)
    wide = -(-taps.shape[0] // tile.bn) * tile.bn
    deep = -(-cin // tile.bk) * tile.bk
    packed = np.zeros((deep, wide), np.float16 if y.dtype is DType.F16 else np.float32)
    packed[:cin, : taps.shape[0]] = taps.T
    text = join(
        storage_option(y.dtype), activation_options(step), tile.defines(), "#define POINTWISE",
        f"#define SCATTER {cout}", f"#define DECONV_H {kh}", f"#define DECONV_W {kw}",
    )  # fmt: skip
    sizes = [m, x.dims[1], x.dims[2], cin, x.dims[1], x.dims[2], taps.shape[0]]
    args = [
        x, packed, bias, y, y, Scratch(4), *sizes, 1, 1, 1, 1, 0, 0, 1, 1, wide, deep, deep,
    ]  # fmt: skip
    grid = (wide // tile.bn * tile.items, -(-m // tile.bm), 1)
    return [Launch("conv_tile", "conv_tile", args, grid, text, (tile.items, 1, 1))]


def _gemv(
    x: PlanTensor, y: PlanTensor, m: int, taps: np.ndarray, bias: np.ndarray, options: str
) -> Launch:
    outputs, depth = taps.shape
    wide = -(-outputs // 16) * 16
    packed = np.zeros((depth, wide), np.float16 if y.dtype is DType.F16 else np.float32)
    packed[:, :outputs] = taps.T
    args = [x, packed, bias, y, m, outputs, depth, wide]
    text = join(options, TILES[-1].defines())
    return Launch("conv_tile", "gemv", args, (wide // 16 * 256, m), text, (256, 1))


def depthwise4(
    step: Step,
    x: PlanTensor,
    y: PlanTensor,
    sizes: list[int],
    window: list[int],
    packed: np.ndarray,
    bias: np.ndarray,
    residual: PlanTensor | None,
) -> list[Launch]:
    """packed (KH·KW, C) in the storage type, C a multiple of 4."""
    options = [storage_option(y.dtype), activation_options(step), TILES[-1].defines()]
    options += ["#define RESIDUAL"] if residual is not None else []
    args = [x, packed, bias, residual or y, y, *sizes, *window]
    grid = (sizes[3] // 4, sizes[0])
    return [Launch("conv_tile", "depthwise4", args, grid, join(*options))]
