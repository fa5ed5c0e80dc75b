"""Weights in b = 4 bits with a scale, and a zero point if asymmetric, for each group of inputs.

    w[n,k] ≈ (q[n,k] − z[n,g])·s[n,g],   0 ≤ q < 2^b,   g = k // size

Each group's range is clipped to the share of SHRINK with the least squared error. With the
correlations H = E[xxᵀ] of the inputs, rounding errors are compensated column by column as in
`rounding` (Frantar 2022, GPTQ), and inputs can be scaled: W·diag(s) is rounded and x/s multiplied,
s = E[x²]^(α/2), with the α of least output error (Lin 2024, AWQ).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from lite_messages import tr

from ..errors import check_choice
from ..ops.matmul_nbits import group_count, pack_bits
from .rounding import compensate

SIZES = (16, 32, 64, 128, 256)
#: Shares of a group's range that are tried; the first one is what other tools use.
SHRINK = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
#: Exponents of the inputs' magnitudes that are tried as scales.
ALPHAS = tuple(i / 10 for i in range(11))


@dataclass(frozen=True)
class Groups:
    """How weights are grouped: `size` neighbouring inputs share parameters."""

    size: int = 64
    symmetric: bool = True
    bits: int = 4

    def __post_init__(self) -> None:
        check_choice(tr("group size"), self.size, SIZES)

    @property
    def top(self) -> int:
        """The largest integer."""
        return (1 << self.bits) - 1

    @property
    def middle(self) -> int:
        """The zero point of symmetric groups."""
        return 1 << (self.bits - 1)


@dataclass(frozen=True)
class Packed:
    """A matrix (N,K) in groups: q u8 (N,K), scales f32 and zeros u8 (N, groups)."""

    q: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray
    groups: Groups

    def real(self) -> np.ndarray:
        """What the integers stand for, f32 (N,K)."""
        at = np.arange(self.q.shape[1]) // self.groups.size
        q = self.q.astype(np.float32) - self.zeros[:, at]
        return np.asarray(q * self.scales[:, at])

    def inputs(self) -> list[np.ndarray | None]:
        """b, scales and zero_points of MatMulNBits; those of symmetric groups are left out."""
        rows, columns = self.q.shape
        count = group_count(columns, self.groups.size)
        bits, middle = self.groups.bits, self.groups.middle
        padded = np.full((rows, count * self.groups.size), middle, np.uint8)
        padded[:, :columns] = self.q
        blocks = pack_bits(padded.reshape(rows, count, -1), bits)
        zeros = None if (self.zeros == middle).all() else pack_bits(self.zeros, bits)
        return [blocks, self.scales, zeros]


def parameters(
    block: np.ndarray, groups: Groups, importance: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Scale f32 and zero point u8 (N,) of a block (N, ≤ size); `importance` (≤ size,) weighs the
    squared errors of its columns."""
    tiny, top, middle = np.finfo(np.float32).tiny, groups.top, groups.middle
    best = np.full(len(block), np.inf)
    scales, zeros = np.full(len(block), tiny, np.float32), np.full(len(block), middle, np.uint8)
    low, high = np.minimum(block.min(axis=1), 0), np.maximum(block.max(axis=1), 0)
    for share in SHRINK:
        if groups.symmetric:
            # -2^(b-1) has no counterpart: the larger side gets it
            reach = np.where(high > -low, high, low) * share
            scale = np.where(reach == 0, tiny, reach / -middle)
            zero = np.full(len(block), float(middle))
        else:
            scale = np.maximum((high - low) * share / top, tiny)
            zero = np.clip(np.rint(-low * share / scale), 0, top)
        scale = scale.astype(np.float32)
        noise = np.square(_rounded(block, scale[:, None], zero[:, None], top) - block)
        error = noise.sum(axis=1) if importance is None else noise @ importance
        better = error < best
        best = np.where(better, error, best)
        scales, zeros = np.where(better, scale, scales), np.where(better, zero, zeros)
    return scales.astype(np.float32), zeros.astype(np.uint8)


def _integers(w: np.ndarray, scale: np.ndarray, zero: np.ndarray, top: int) -> np.ndarray:
    return np.clip(np.rint(w / scale) + zero, 0, top)


def _rounded(w: np.ndarray, scale: np.ndarray, zero: np.ndarray, top: int) -> np.ndarray:
    return np.asarray((_integers(w, scale, zero, top) - zero) * scale)


def nearest_in_groups(
    w: np.ndarray, groups: Groups, importance: np.ndarray | None = None
) -> Packed:
    """Each weight of (N,K) to the nearest step of its group; `importance` (K,) as above."""
    return _by_columns(w, groups, importance)


def compensated_in_groups(w: np.ndarray, groups: Groups, h: np.ndarray) -> Packed:
    """The same, with later columns making up for the errors of earlier ones; h (K,K)."""
    w = w.astype(np.float64)
    rows, columns = w.shape
    count = group_count(columns, groups.size)
    q = np.empty((rows, columns), np.uint8)
    scales, zeros = np.empty((rows, count), np.float32), np.empty((rows, count), np.uint8)

    def column(j: int, now: np.ndarray) -> np.ndarray:
        g = j // groups.size
        if j % groups.size == 0:
            scales[:, g], zeros[:, g] = parameters(now[:, j : j + groups.size], groups)
        zero = zeros[:, g].astype(np.float64)
        whole = _integers(now[:, j], scales[:, g].astype(np.float64), zero, groups.top)
        q[:, j] = whole
        return np.asarray((whole - zero) * scales[:, g])

    compensate(w, h, column)
    return Packed(q, scales, zeros, groups)


def _by_columns(w: np.ndarray, groups: Groups, importance: np.ndarray | None) -> Packed:
    parts, scales, zeros = [], [], []
    for begin in range(0, w.shape[1], groups.size):
        block = w[:, begin : begin + groups.size].astype(np.float32)
        own = None if importance is None else importance[begin : begin + groups.size]
        scale, zero = parameters(block, groups, own)
        whole = _integers(block, scale[:, None], zero[:, None].astype(np.float32), groups.top)
        parts.append(whole)
        scales.append(scale)
        zeros.append(zero)
    return Packed(
        np.concatenate(parts, axis=1).astype(np.uint8), np.stack(scales, 1), np.stack(zeros, 1),
        groups,
    )  # fmt: skip


def output_error(error: np.ndarray, h: np.ndarray) -> float:
    """Mean squared error that an error (N,K) of the weights makes in the outputs: tr(E·H·Eᵀ)."""
    return float(np.einsum("nk,nk->", error @ h, error))


def input_scales(weights: list[np.ndarray], groups: Groups, h: np.ndarray) -> np.ndarray | None:
    """Factors s (K,) for which W·diag(s), rounded to nearest, changes the outputs of all the given
    matrices (N,K) least; None when no factors are better."""
    joined = np.concatenate(weights).astype(np.float64)
    magnitude = np.sqrt(np.maximum(np.diag(h), 1e-12))
    best, found = np.inf, None
    for alpha in ALPHAS:
        s = magnitude**alpha
        s = s / np.sqrt(s.max() * s.min())
        error = nearest_in_groups((joined * s).astype(np.float32), groups).real() / s - joined
        now = output_error(error, h)
        if now < best:
            best, found = now, None if alpha == 0 else s
    return None if found is None else found.astype(np.float32)


def with_group_size(groups: Groups, columns: int) -> Groups:
    """Smaller groups where the last one of a matrix would be mostly padding."""
    while (
        groups.size > SIZES[0] and group_count(columns, groups.size) * groups.size > 1.1 * columns
    ):
        groups = replace(groups, size=groups.size // 2)
    return groups
