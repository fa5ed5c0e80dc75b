"""What calibration keeps of a tensor: constant memory, however many samples pass by.

Minimum and maximum, their running means, a histogram that widens by powers of two, minimum, maximum
and mean of each channel. Every calibration method is a function of these (`observers.py`), so the
method may be chosen after the samples have run.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from lite_messages import tr

BINS = 4096
#: Elements of one tensor and sample that enter the histogram; larger tensors are sampled evenly.
SAMPLED_ELEMS = 16384
#: Positions of one channel that enter its mean.
CHANNEL_ELEMS = 1024
#: Positions side by side while extremes of channels are taken: these elements stay in the cache.
FOLDED_ELEMS = 4096
#: Weight of the newest sample in the moving average.
MOMENTUM = 0.1
_CHANNELS = ("channel_low", "channel_high", "channel_sum")


class Statistics:
    """Running statistics of one tensor. `counts[i]` covers [−edge + i·w, −edge + (i+1)·w),
    w = 2·edge / BINS. `start` is how many samples came before the first one here; it spreads the
    elements that enter the histogram."""

    def __init__(self, start: int = 0) -> None:
        self.start, self.samples = start, 0
        self.first = (0.0, 0.0)  # extremes of the first sample, from which the moving ones start
        self.low, self.high = math.inf, -math.inf
        self.moving = (0.0, 0.0)
        self.mean_low, self.mean_high = 0.0, 0.0
        self.edge = 0.0
        self.counts = np.zeros(BINS, np.int64)
        self.channel_low: np.ndarray | None = None
        self.channel_high: np.ndarray | None = None
        self.channel_sum: np.ndarray | None = None
        self.per_channel = 0  # elements behind each entry of channel_sum

    def update(self, x: np.ndarray) -> bool:
        """Adds a tensor (N,C,…). False, and nothing changed, when it holds NaN or infinity."""
        if x.size == 0:
            return True
        x = x.astype(np.float32, copy=False)
        rows, axis = _by_channel(x)
        lows, highs = _reduced(np.min, rows, axis), _reduced(np.max, rows, axis)
        low, high = float(lows.min()), float(highs.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            return False
        self.samples += 1
        n = self.samples
        if n == 1:
            self.first = low, high
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.mean_low += (low - self.mean_low) / n
        self.mean_high += (high - self.mean_high) / n
        rate = 1.0 if n == 1 else MOMENTUM
        old_low, old_high = self.moving
        self.moving = (old_low + rate * (low - old_low), old_high + rate * (high - old_high))
        if axis is not None:
            self._add_channels(rows, axis, lows, highs)
        self._add_histogram(rows.reshape(-1), max(abs(low), abs(high)))
        return True

    def _add_channels(
        self, rows: np.ndarray, axis: int, lows: np.ndarray, highs: np.ndarray
    ) -> None:
        """Extremes of all, sums of evenly spaced positions of each channel."""
        positions = rows.shape[2] if axis == 1 else rows.shape[0]
        step = max(1, positions // CHANNEL_ELEMS)
        picked = rows[:, :, ::step] if axis == 1 else rows[::step]
        sums = _reduced(np.sum, picked, axis).astype(np.float64)
        count = picked.size // len(sums)
        if self.channel_low is None or self.channel_low.shape != lows.shape:
            self.channel_low, self.channel_high = lows.copy(), highs.copy()
            self.channel_sum, self.per_channel = sums, count
            return
        assert self.channel_high is not None and self.channel_sum is not None
        np.minimum(self.channel_low, lows, out=self.channel_low)
        np.maximum(self.channel_high, highs, out=self.channel_high)
        self.channel_sum += sums
        self.per_channel += count

    def _add_histogram(self, flat: np.ndarray, reach: float) -> None:
        if reach > self.edge:
            self._widen(reach)
        if self.edge == 0:
            self.counts[BINS // 2] += min(flat.size, SAMPLED_ELEMS)
            return
        step = max(1, flat.size // SAMPLED_ELEMS) | 1  # odd: does not lock onto rows or channels
        offset = (self.start + self.samples) % step
        picked = flat[offset::step] if flat.size > SAMPLED_ELEMS else flat
        index = ((picked + np.float32(self.edge)) * np.float32(BINS / (2 * self.edge))).astype(
            np.int32
        )
        self.counts += np.bincount(np.clip(index, 0, BINS - 1), minlength=BINS)

    def merge(self, later: Statistics) -> None:
        """Adds the statistics of the samples that come after these.

        Whoever made the parts, the result is the same to the last bit, as long as the parts are the
        same: counts and extremes are exact, sums are added in this order. Into empty statistics it
        is a copy.
        """
        if not later.samples:
            return
        if not self.samples:
            self.__dict__.update(copy.deepcopy(later.__dict__))
            return
        count, n = later.samples, self.samples + later.samples
        self.low, self.high = min(self.low, later.low), max(self.high, later.high)
        self.mean_low += (later.mean_low - self.mean_low) * count / n
        self.mean_high += (later.mean_high - self.mean_high) * count / n
        kept = (1 - MOMENTUM) ** count
        low, high = (
            after + kept * (before - first)
            for before, after, first in zip(self.moving, later.moving, later.first)
        )
        self.moving, self.samples = (low, high), n
        self._merge_channels(later)
        self._merge_histogram(later)

    def _merge_channels(self, later: Statistics) -> None:
        if later.channel_low is None or later.channel_high is None or later.channel_sum is None:
            return
        if self.channel_low is None or self.channel_low.shape != later.channel_low.shape:
            for key in (*_CHANNELS, "per_channel"):
                setattr(self, key, copy.copy(getattr(later, key)))
            return
        assert self.channel_high is not None and self.channel_sum is not None
        self.channel_low = np.minimum(self.channel_low, later.channel_low)
        self.channel_high = np.maximum(self.channel_high, later.channel_high)
        self.channel_sum = self.channel_sum + later.channel_sum
        self.per_channel += later.per_channel

    def _merge_histogram(self, later: Statistics) -> None:
        if later.edge > self.edge:
            self._widen(later.edge)
        if 0 < later.edge < self.edge:
            later = copy.deepcopy(later)
            later._widen(self.edge)
        self.counts = self.counts + later.counts  # without an edge all are zeros, in one bin

    def _widen(self, reach: float) -> None:
        """Doubles the edge until it reaches; pairs of bins become one."""
        if self.edge == 0:
            zeros = self.counts[BINS // 2]
            self.edge = 2.0 ** math.ceil(math.log2(reach))
            self.counts[:] = 0
            self.counts[BINS // 2] = zeros
            return
        while self.edge < reach:
            merged = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.zeros(BINS, np.int64)
            self.counts[BINS // 4 : 3 * BINS // 4] = merged
            self.edge *= 2

    # ---- reading
    @property
    def centres(self) -> np.ndarray:
        """Middle of each bin; the bins next to 0 count as 0, where a ReLU puts half its output."""
        width = 2 * self.edge / BINS
        middles = -self.edge + (np.arange(BINS) + 0.5) * width
        middles[BINS // 2] = 0.0
        return middles

    @property
    def channel_mean(self) -> np.ndarray | None:
        if self.channel_sum is None:
            return None
        return self.channel_sum / max(1, self.per_channel)

    def dead_channels(self) -> list[int]:
        """Channels that had one and the same value throughout."""
        if self.channel_low is None or self.channel_high is None:
            return []
        return [int(i) for i in np.flatnonzero(self.channel_high == self.channel_low)]

    @property
    def is_constant(self) -> bool:
        return self.samples > 0 and self.low == self.high

    def to_dict(self, bins: int = 64) -> dict[str, Any]:
        """For people and pictures: the histogram is reduced to `bins` over the seen range."""
        inside = self.counts > 0
        centres = self.centres
        low, high = (self.low, self.high) if self.samples else (0.0, 0.0)
        counts, edges = np.histogram(
            centres[inside], bins=bins, range=(low, max(high, low + 1e-12)),
            weights=self.counts[inside],
        )  # fmt: skip
        return {
            "samples": self.samples,
            "min": low,
            "max": high,
            "histogram": [int(c) for c in counts],
            "edges": [float(edges[0]), float(edges[-1])],
            "dead_channels": self.dead_channels(),
        }

    # ---- keeping (calibration may be interrupted and resumed)
    def arrays(self) -> dict[str, np.ndarray]:
        numbers = [self.samples, self.low, self.high, *self.moving, self.mean_low, self.mean_high,
                   self.edge, self.per_channel, self.start, *self.first]  # fmt: skip
        out = {"numbers": np.array(numbers, np.float64), "counts": self.counts}
        for key in _CHANNELS:
            array = getattr(self, key)
            if array is not None:
                out[key] = array
        return out

    @staticmethod
    def from_arrays(arrays: dict[str, np.ndarray]) -> Statistics:
        """Raises KeyError or ValueError for arrays that `arrays` did not make."""
        out = Statistics()
        numbers, counts = arrays["numbers"], arrays["counts"]
        if numbers.shape != (12,) or numbers.dtype.kind != "f" or np.isnan(numbers).any():
            raise ValueError(tr("a tensor does not have 12 numbers"))
        if counts.shape != (BINS,) or counts.dtype.kind != "i" or (counts < 0).any():
            raise ValueError(tr("a histogram is not {bins} counts", bins=BINS))
        samples, out.low, out.high, low, high, out.mean_low, out.mean_high, edge, per, start = (
            numbers[:10].tolist()
        )
        if not all(0 <= v < 1 << 53 for v in (samples, edge, per, start)):
            raise ValueError(tr("the numbers of a tensor are out of range"))
        out.samples, out.per_channel, out.moving = int(samples), int(per), (low, high)
        out.start, out.first = int(start), (float(numbers[10]), float(numbers[11]))
        out.edge, out.counts = edge, counts.astype(np.int64)
        channels = [arrays[key] for key in _CHANNELS if key in arrays]
        if channels:
            if len(channels) != 3 or any(
                c.shape != (channels[0].size,) or c.dtype.kind != "f" for c in channels
            ):
                raise ValueError(tr("the channels of a tensor do not match"))
            out.channel_low, out.channel_high = (c.astype(np.float32) for c in channels[:2])
            out.channel_sum = channels[2].astype(np.float64)
        return out


def _by_channel(x: np.ndarray) -> tuple[np.ndarray, int | None]:
    """(N,C,S) with axis 1, or (positions, C) with axis 2 for a tensor that lies channels-last in
    memory, whichever needs no copy; None for a tensor without a channel axis."""
    if x.ndim < 2:
        return np.ascontiguousarray(x), None
    channels_last = np.moveaxis(x, 1, -1)
    if x.ndim > 2 and not x.flags.c_contiguous and channels_last.flags.c_contiguous:
        return channels_last.reshape(-1, x.shape[1]), 2
    return np.ascontiguousarray(x).reshape(x.shape[0], x.shape[1], -1), 1


def _reduced(fn: Any, rows: np.ndarray, axis: int | None) -> np.ndarray:
    """fn over everything but the channels → (C,), or (1,) without channels."""
    if axis is None:
        return np.atleast_1d(fn(rows))
    if axis == 1:
        return fn(fn(rows, axis=2), axis=0)
    positions, channels = rows.shape
    fold = math.gcd(positions, max(1, FOLDED_ELEMS // max(1, channels)))
    if fold > 1 and fn is not np.sum and rows.flags.c_contiguous:  # long rows reduce faster
        rows = fn(rows.reshape(positions // fold, fold * channels), axis=0).reshape(fold, channels)
    return fn(rows, axis=0)
