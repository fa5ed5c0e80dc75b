"""Winograd's F(4x4, 3x3): transforms that CPU and GPU convolutions share (Lavin 2016)."""

from __future__ import annotations

from collections.abc import Sequence

from .constants import Constant
from .launch import Launch, Scratch
from .options import join
from .problem import Convolution

WINOGRAD_POINTS = 36
_MIN_CHANNELS = 16


def suits(problem: Convolution) -> bool:
    """Whether 36 products may be worth it."""
    channels, outputs, window = problem.sizes[3], problem.sizes[6], problem.window
    same = window[:4] == [3, 3, 1, 1] and window[6:] == [1, 1]
    return same and channels % 4 == 0 and min(channels, outputs) >= _MIN_CHANNELS


def tiles_of(sizes: list[int]) -> int:
    """Tiles of 4x4 outputs; `sizes` as Convolution has them."""
    m, _, _, _, out_h, out_w, _ = sizes
    return m // (out_h * out_w) * -(-out_h // 4) * -(-out_w // 4)


def points_of(taps: Constant, channels: int) -> Constant:
    """taps (O, 9·C) → (36, C, O)."""
    return taps.reshape(-1, 3, 3, channels).winograd()


def to_points(
    problem: Convolution,
    before: Scratch,
    options: str,
    v: int = 1,
    group: tuple[int, int] | None = None,
) -> Launch:
    """Inputs as (36, tiles, C), V channels an item."""
    _, height, width, channels, out_h, out_w, _ = problem.sizes
    tiles = tiles_of(problem.sizes)
    down, across = -(-out_h // 4), -(-out_w // 4)
    sizes = [tiles, height, width, channels, down, across, *problem.window[4:6]]
    args = [problem.x, before, *sizes, *problem.places[:2]]
    return _transform("to_points", args, channels // v, tiles, options, v, group)


def from_points(
    problem: Convolution,
    after: Scratch,
    options: str,
    v: int = 1,
    group: tuple[int, int] | None = None,
) -> Launch:
    """(36, tiles, O) as outputs, V channels an item."""
    out_h, out_w, outputs = problem.sizes[4:]
    tiles, y = tiles_of(problem.sizes), problem.y
    down, across = -(-out_h // 4), -(-out_w // 4)
    tensors = [after, problem.bias, problem.residual or y, y]
    sizes = [tiles, out_h, out_w, outputs, down, across]
    args = [*tensors, *sizes, *problem.places[2:], *problem.ending]
    return _transform("from_points", args, outputs // v, tiles, options, v, group)


def _transform(
    kernel: str,
    args: Sequence[object],
    blocks: int,
    tiles: int,
    options: str,
    v: int,
    group: tuple[int, int] | None,
) -> Launch:
    text = join(options, f"#define V {v}")
    rows = tiles if group is None else -(-tiles // group[1]) * group[1]
    return Launch("winograd", kernel, list(args), (blocks, rows), text, group)
