"""Measure how two outputs of one layer differ, as the plain data that DifferencePane draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

_BINS = 41


def difference_detail(
    a: np.ndarray, b: np.ndarray, *, channel: int | None = None, layout: str = "NCHW",
    tolerance: float = 1e-2,
) -> dict[str, Any]:  # fmt: skip
    """Return figures, worst place, channel errors, histogram and one channel's map of |b − a|.

    a, b (…) same shape; `layout` "NCHW" or "NHWC" says where channels are when the rank is 4.
    channel: which channel's map; None takes the worst. Map (H,W) float32, non-finite as inf.
    Ranks below 4 are one channel: (…,T,C) is a picture of T rows. Raises ValueError if shapes
    differ. `explained` is 3 · tolerance · rms(a): differences beyond it are not rounding.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        raise ValueError(
            tr(
                "the two outputs have different shapes, {one} and {other}",
                one=a.shape,
                other=b.shape,
            )
        )
    with np.errstate(invalid="ignore", over="ignore"):
        signed = b.astype(np.float64) - a.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))  # NaN and Inf too
    signed = np.where(same, 0.0, signed)
    broken = ~np.isfinite(signed)
    size = np.where(broken, np.inf, np.abs(signed))
    picture = _as_channels(size, layout)
    finite = np.where(np.isfinite(picture), picture, 0.0)
    pixels = max(1, picture.shape[1] * picture.shape[2])  # of an empty tensor none
    rms_by_channel = np.sqrt((finite**2).sum(axis=(1, 2)) / pixels)
    by_channel = np.where(np.isfinite(picture).all(axis=(1, 2)), rms_by_channel, np.inf)
    chosen = int(np.argmax(by_channel)) if channel is None else min(channel, len(picture) - 1)
    worst = np.unravel_index(int(np.argmax(size)), size.shape) if size.size else ()
    rms = (
        float(np.sqrt(np.mean(np.square(a[np.isfinite(a)].astype(np.float64))))) if a.size else 0.0
    )
    return {
        "shape": list(a.shape),
        "worst": {"index": [int(i) for i in worst], "a": _number(a, worst), "b": _number(b, worst)},
        "channel": chosen,
        "channels": [float(v) if np.isfinite(v) else None for v in by_channel],
        "histogram": _histogram(signed[~broken]),
        "explained": 3 * tolerance * rms,
        "not_finite": int(broken.sum()),
        "map": picture[chosen].astype("<f4"),
        "map_shape": list(picture.shape[1:]),
    }


def _as_channels(size: np.ndarray, layout: str) -> np.ndarray:
    """Return (C,H,W): the largest over the batch; other ranks become one channel."""
    if size.ndim == 4:
        planes = np.moveaxis(size, -1, 1) if layout == "NHWC" else size
        largest: np.ndarray = planes.max(axis=0)
        return largest
    if size.ndim == 0:
        return size.reshape(1, 1, 1)
    flat = size.reshape(-1, size.shape[-1])
    return flat[None]


def _number(values: np.ndarray, index: tuple[Any, ...]) -> float | None:
    value = float(values[index]) if values.size else float("nan")
    return value if np.isfinite(value) else None


def _histogram(signed: np.ndarray) -> dict[str, Any]:
    limit = float(np.abs(signed).max()) if signed.size else 0.0
    limit = limit or 1e-12
    counts, _ = np.histogram(signed, bins=_BINS, range=(-limit, limit))
    return {"limit": limit, "counts": counts.tolist()}
