"""Calibration methods: statistics of a tensor → the range that its integers cover.

minmax    everything seen                          never clips, suffers from outliers
avg       mean of each sample's extremes           one odd sample matters less
moving    moving average of the extremes
hist      99.97 % of the values
kl        smallest divergence of the quantised distribution (Migacz 2017)
mse       smallest squared error of the quantised values (Banner 2019)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from lite_messages import tr

from ..errors import check_choice
from .statistics import BINS, Statistics

Range = tuple[float, float]
#: Less than 0.01 % at an end would hang on single elements of small tensors.
PERCENTILE = 99.97
LEVELS = 256
#: Smallest width of a range: a constant tensor still gets a scale.
_NARROW = 1e-8


def minmax(s: Statistics) -> Range:
    return s.low, s.high


def average(s: Statistics) -> Range:
    return s.mean_low, s.mean_high


def moving_average(s: Statistics) -> Range:
    return s.moving


def percentile(s: Statistics, percent: float = PERCENTILE) -> Range:
    """The range that leaves (100 − percent) % of the values outside, half on each side."""
    total = s.counts.sum()
    if total == 0:
        return minmax(s)
    below = np.concatenate([[0], np.cumsum(s.counts)])  # of each edge, linear in between
    edges = np.linspace(-s.edge, s.edge, BINS + 1)
    cut = total * (1 - percent / 100) / 2
    low, high = np.interp([cut, total - cut], below, edges)
    return _inside(s, low, high)


def kl(s: Statistics) -> Range:
    """Threshold on |x| whose quantised histogram diverges least from the clipped one.

    For every threshold: P is the histogram with what lies outside added to its last bin, Q the same
    histogram in 128 levels (half of 256 when both signs occur), spread over P's non-empty bins.
    """
    half = BINS // 2
    magnitudes = s.counts[half:] + s.counts[:half][::-1]
    levels = LEVELS // 2 if s.low < 0 else LEVELS
    used = int(np.flatnonzero(magnitudes)[-1]) + 1 if magnitudes.any() else 0
    if used <= levels:
        return minmax(s)
    h = magnitudes.astype(np.float64)
    h[0] = 0  # exact zeros are represented exactly by every threshold
    best, best_at = np.inf, used
    for count in range(levels, used + 1, max(1, (used - levels) // 128)):
        divergence = _divergence(h, count, levels)
        if divergence < best:
            best, best_at = divergence, count
    threshold = best_at * s.edge / half
    return _inside(s, -threshold, threshold)


def _divergence(h: np.ndarray, count: int, levels: int) -> float:
    p = h[:count].copy()
    p[-1] += h[count:].sum()
    starts = (np.arange(levels) * count) // levels
    filled = h[:count] > 0
    sums = np.add.reduceat(h[:count], starts)
    members = np.add.reduceat(filled.astype(np.float64), starts)
    means = np.divide(sums, members, out=np.zeros(levels), where=members > 0)
    sizes = np.diff(np.append(starts, count))
    q = np.where(filled, np.repeat(means, sizes), 0.0)
    p_sum, q_sum = p.sum(), q.sum()
    if p_sum == 0 or q_sum == 0:
        return np.inf
    p, q = p / p_sum, q / q_sum
    at = p > 0
    return float(np.sum(p[at] * np.log(p[at] / np.maximum(q[at], 1e-12))))


def mse(s: Statistics) -> Range:
    """Range of least squared error over the histogram: both ends together, then each alone."""
    if s.edge == 0 or s.counts.sum() == 0:
        return minmax(s)
    filled = s.counts > 0
    centres = s.centres[filled]
    weights = s.counts[filled] / s.counts.sum()
    low, high = min(s.low, 0.0), max(s.high, 0.0)

    def error(lo: float, hi: float) -> float:
        scale = max(hi - lo, _NARROW) / (LEVELS - 1)
        zero = np.rint(-lo / scale)
        q = np.clip(np.rint(centres / scale) + zero, 0, LEVELS - 1)
        return float(np.sum(weights * ((q - zero) * scale - centres) ** 2))

    factors = np.linspace(0.2, 1.0, 41)
    both = min(factors, key=lambda f: error(f * low, f * high))
    lo, hi = both * low, both * high
    hi = min(factors, key=lambda f: error(lo, f * high)) * high
    lo = min(factors, key=lambda f: error(f * low, hi)) * low
    return float(lo), float(hi)


def _inside(s: Statistics, low: float, high: float) -> Range:
    return max(float(low), s.low), min(float(high), s.high)


METHODS: dict[str, Callable[[Statistics], Range]] = {
    "minmax": minmax,
    "avg": average,
    "moving": moving_average,
    "hist": percentile,
    "kl": kl,
    "mse": mse,
}


def range_of(statistics: Statistics, method: str) -> Range:
    """(low, high) that holds 0. Raises UsageError for an unknown method."""
    check_choice(tr("method"), method, METHODS)
    low, high = METHODS[method](statistics)
    low, high = min(low, 0.0), max(high, 0.0)
    return (low, high) if high - low > _NARROW else (low, low + _NARROW)
