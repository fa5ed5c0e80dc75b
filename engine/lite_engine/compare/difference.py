"""How far two arrays are apart: the numbers, the histogram and the channel map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Difference:
    """The candidate b against the baseline a. `sqnr_db` is 10·log10(Σa² / Σ(a−b)²), None when the
    difference is zero.

    Elements that are NaN or Inf on one side only, or different ones on both, are counted in
    `nan_baseline` and `nan_candidate` and left out of the sums; any of them makes `rel_l2`
    infinite. `worst` is the index of the largest |a−b|, or of the first such element.
    """

    max_abs: float
    mean_abs: float
    rel_l2: float
    cosine: float
    sqnr_db: float | None
    nan_baseline: int
    nan_candidate: int
    range_baseline: tuple[float, float]
    range_candidate: tuple[float, float]
    worst: tuple[int, ...]
    worst_baseline: float
    worst_candidate: float

    @property
    def broken(self) -> bool:
        """NaN or Inf where the other side has something else."""
        return bool(self.nan_baseline or self.nan_candidate)


def difference(a: np.ndarray, b: np.ndarray) -> Difference:
    """Compares two arrays of one shape; integers and booleans as numbers."""
    shape = np.shape(a)
    x = np.asarray(a, np.float64).ravel()
    y = np.asarray(b, np.float64).ravel()
    with np.errstate(invalid="ignore", over="ignore"):
        square_a, square_b = float(x @ x), float(y @ y)
    finite = math.isfinite(square_a + square_b)  # which says so for nearly every layer
    nan_baseline, nan_candidate, odd, p, q = (0, 0, None, x, y) if finite else _without_bad(x, y)
    if not finite:
        square_a, square_b = float(p @ p), float(q @ q)
    delta = p - q
    square_d = float(delta @ delta)
    size = np.abs(delta)
    worst = int(np.argmax(odd)) if odd is not None else _worst(size, x, y, finite)
    return Difference(
        float(size.max(initial=0.0)),
        float(size.mean()) if size.size else 0.0,
        math.inf if odd is not None else _ratio(square_d, square_a) ** 0.5,
        _cosine(float(p @ q), square_a, square_b),
        None if square_d == 0 else float(10 * np.log10(max(square_a, 1e-300) / square_d)),
        nan_baseline,
        nan_candidate,
        _range(p),
        _range(q),
        tuple(int(i) for i in np.unravel_index(worst, shape)) if x.size else (),
        float(x[worst]) if x.size else 0.0,
        float(y[worst]) if x.size else 0.0,
    )


def other_shape(a: np.ndarray, b: np.ndarray) -> Difference:
    """Two arrays that have different shapes (lists of detections): as far apart as can be."""
    low, high = (_range(x[np.isfinite(x)]) for x in (np.asarray(y, np.float64) for y in (a, b)))
    far = math.inf
    return Difference(far, far, far, 0.0, None, 0, 0, low, high, (), 0.0, 0.0)


def _without_bad(
    x: np.ndarray, y: np.ndarray
) -> tuple[int, int, np.ndarray | None, np.ndarray, np.ndarray]:
    """(bad in x, bad in y, where they differ or None, finite values of x, of y)."""
    bad_a, bad_b = ~np.isfinite(x), ~np.isfinite(y)
    same = bad_a & bad_b & ((x == y) | (np.isnan(x) & np.isnan(y)))
    odd = (bad_a | bad_b) & ~same
    good = ~(bad_a | bad_b)
    shared = int(same.sum())
    return (
        int(bad_a.sum()) - shared,
        int(bad_b.sum()) - shared,
        odd if odd.any() else None,
        x[good],
        y[good],
    )


def _worst(size: np.ndarray, x: np.ndarray, y: np.ndarray, finite: bool) -> int:
    if not size.size:
        return 0
    if finite:
        return int(np.argmax(size))
    with np.errstate(invalid="ignore"):
        return int(np.argmax(np.where(np.isfinite(x - y), np.abs(x - y), -1.0)))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0 if part == 0 else float("inf")


def _cosine(dot: float, a: float, b: float) -> float:
    if a == 0 or b == 0:
        return 1.0 if a == b else 0.0
    return float(min(1.0, dot / (a * b) ** 0.5))


def _range(x: np.ndarray) -> tuple[float, float]:
    return (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """|a−b|, 0 where both are the same NaN or infinity; NaN or infinite where only one is."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(invalid="ignore"):
        return np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))


def histogram(a: np.ndarray, b: np.ndarray, bins: int = 41) -> dict[str, Any]:
    """Counts of log10|a−b| between the smallest and the largest difference that is not zero."""
    delta = _distance(a, b).ravel()
    delta = delta[np.isfinite(delta)]
    positive = delta[delta > 0]
    if not positive.size:
        return {"edges_log10": [], "counts": [], "zero": int(delta.size)}
    counts, edges = np.histogram(np.log10(positive), bins)
    return {
        "edges_log10": edges.tolist(),
        "counts": counts.tolist(),
        "zero": int(delta.size - positive.size),
    }


def channel_map(a: np.ndarray, b: np.ndarray, channel: int | None = None) -> dict[str, Any]:
    """Where the difference lies: error per channel, per column, and the |a−b| map of one channel
    (the worst when None). Arrays are (N,C,H,W) or (N,C,…); others are one channel.
    """
    delta = _distance(a, b)
    delta = np.nan_to_num(delta, nan=np.inf, posinf=np.inf)
    if delta.ndim < 3:
        delta = delta.reshape(1, 1, -1)
    maps = delta.max(axis=0).reshape(delta.shape[1], -1, delta.shape[-1])
    per_channel = maps.max(axis=(1, 2))
    pick = int(np.argmax(per_channel)) if channel is None else channel
    return {
        "channel": pick,
        "per_channel": per_channel.tolist(),
        "per_column": maps.max(axis=(0, 1)).tolist(),
        "per_row": maps.max(axis=(0, 2)).tolist(),
        "map": maps[pick].tolist(),
    }
