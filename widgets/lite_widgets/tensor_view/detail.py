"""A tensor as the plain data that TensorView draws: figures, histogram, a thumbnail per channel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from lite_messages import tr

#: Thumbnails of one tensor, and the most values of each: among others, and alone.
MOST_TILES, TILE, LARGE = 256, 48 * 48, 192 * 192
#: Share of the values beyond which the common scale of colours ends, so that outliers leave it.
OUTLIERS = 0.002
BINS = 61
#: (planes, first rows or columns of blocks, axis) → planes with one value per block.
Block = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
#: The byte of a value that is not finite; 0…LEVELS are the others.
LEVELS, BROKEN = 254, 255


def tensor_views(
    arrays: Mapping[str, np.ndarray], role: str = "activation"
) -> tuple[list[dict[str, Any]], bytes]:
    """Side → array as (views, tiles) of TensorView; two sides of one shape get a third view, the
    second minus the first. `role`: "activation" (N,C,…: a thumbnail per channel of the first
    sample) or "weight" (O,…: one per output channel, its kernels beside each other)."""
    named = [(name, np.asarray(a)) for name, a in arrays.items()]
    made = [_view(name, array, role, _mean) for name, array in named]
    if len(named) == 2 and named[0][1].shape == named[1][1].shape:
        difference = _difference(*(a for _, a in named))
        made.append(_view(tr("difference"), difference, role, _largest))
    return [view for view, _ in made], b"".join(tiles for _, tiles in made)


def _difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """b − a in float64; 0 where both are the same NaN or infinity."""
    same = (a == b) | ((a != a) & (b != b))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(same, 0.0, b.astype(np.float64) - a.astype(np.float64))


def _view(name: str, array: np.ndarray, role: str, block: Block) -> tuple[dict[str, Any], bytes]:
    real = array.astype(np.float64)
    finite = real[np.isfinite(real)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    planes = kernels(real) if role == "weight" else channels(real)
    factor = _factor(planes.shape[1:], TILE if len(planes) > 1 else LARGE)
    small = _reduced(planes[:MOST_TILES], factor, block)
    lows, highs, tiles = _bytes(small)
    view = {
        "name": name,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "low": low,
        "high": high,
        "scale": _scale(finite, low, high) if block is _mean else [low, high],
        "mean": float(finite.mean()) if finite.size else None,
        "std": float(finite.std()) if finite.size else None,
        "zeros": float((real == 0).mean()) if real.size else None,
        "not_finite": int(real.size - finite.size),
        "histogram": _histogram(finite, low, high),
        "channels": len(planes),
        "tile": list(small.shape[1:]),
        "factor": factor,
        "largest": block is _largest,
        "lows": lows,
        "highs": highs,
    }
    return view, tiles


def channels(values: np.ndarray) -> np.ndarray:
    """(C,H,W) of the first sample; below rank 4 one channel: (…,T,C) is an image of T rows."""
    if not values.size:
        return np.empty((0, 1, 1))
    if values.ndim >= 4:
        first: np.ndarray = values[0]
        return first.reshape(first.shape[0], -1, first.shape[-1])
    return values.reshape(1, -1, values.shape[-1] if values.ndim else 1)


def kernels(values: np.ndarray) -> np.ndarray:
    """(O,H,W): the kernels of each output channel in a grid, NaN where it is not full; below rank
    3 one image of rows."""
    if values.ndim < 3 or not values.size:
        return channels(values)
    outputs, inputs, width = values.shape[0], values.shape[1], values.shape[-1]
    each = values.reshape(outputs, inputs, -1, width)
    height = each.shape[2]
    across = math.ceil(math.sqrt(inputs * height / width))
    down = math.ceil(inputs / across)
    full = np.full((outputs, down * across, height, width), np.nan)
    full[:, :inputs] = each
    grid = full.reshape(outputs, down, across, height, width).swapaxes(2, 3)
    return grid.reshape(outputs, down * height, across * width)


def _factor(shape: tuple[int, ...], most: int) -> list[int]:
    """Rows and columns of the blocks that become one value, for at most `most` values."""
    factor = [1, 1]
    while math.prod(left := [math.ceil(n / f) for n, f in zip(shape, factor, strict=True)]) > most:
        factor[left.index(max(left))] += 1
    return factor


def _reduced(planes: np.ndarray, factor: list[int], block: Block) -> np.ndarray:
    """One value per block of this many rows and columns."""
    for axis, n in zip((1, 2), factor, strict=True):
        if n > 1:
            with np.errstate(invalid="ignore"):
                planes = block(planes, np.arange(0, planes.shape[axis], n), axis)
    return planes


def _mean(planes: np.ndarray, starts: np.ndarray, axis: int) -> np.ndarray:
    sizes = np.diff([*starts, planes.shape[axis]])
    sums = np.add.reduceat(planes, starts, axis=axis)
    means: np.ndarray = sums / (sizes.reshape(-1, 1) if axis == 1 else sizes)
    return means


def _largest(planes: np.ndarray, starts: np.ndarray, axis: int) -> np.ndarray:
    """The value that is farthest from 0: a mean would hide a single one."""
    high = np.maximum.reduceat(planes, starts, axis=axis)
    low = np.minimum.reduceat(planes, starts, axis=axis)
    return np.where(-low > high, low, high)


def _scale(finite: np.ndarray, low: float, high: float) -> list[float]:
    """Ends of the common scale of colours."""
    if not finite.size:
        return [low, high]
    ends = np.quantile(finite, [OUTLIERS, 1 - OUTLIERS])
    return [float(ends[0]), float(ends[1])] if ends[1] > ends[0] else [low, high]


def _bytes(planes: np.ndarray) -> tuple[list[float], list[float], bytes]:
    """Lowest and highest finite value of each plane, and every value between them as a byte."""
    good = np.isfinite(planes)
    if not planes.size:
        return [], [], b""
    lows = np.where(good, planes, np.inf).min(axis=(1, 2))
    highs = np.where(good, planes, -np.inf).max(axis=(1, 2))
    lows, highs = np.where(np.isfinite(lows), lows, 0), np.where(np.isfinite(highs), highs, 0)
    span = np.where(highs > lows, highs - lows, 1)[:, None, None]
    level = np.rint((np.where(good, planes, 0) - lows[:, None, None]) / span * LEVELS)
    out = np.where(good, np.clip(level, 0, LEVELS), BROKEN).astype(np.uint8)
    return lows.tolist(), highs.tolist(), out.tobytes()


def _histogram(finite: np.ndarray, low: float, high: float) -> dict[str, Any]:
    """Counts of values between `low` and `high`."""
    ends = (low, high) if high > low else (low - 0.5, low + 0.5)
    counts, _ = np.histogram(finite, bins=BINS, range=ends)
    return {"low": ends[0], "high": ends[1], "counts": counts.tolist()}
