"""Channels-last convolutions in plain NumPy (float64 or int64), for the kernel tests."""

from __future__ import annotations

import numpy as np


def same_pads(size: int, k: int, stride: int, dilation: int, lower: bool) -> tuple[int, int]:
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + (k - 1) * dilation + 1 - size)
    small = total // 2
    return (total - small, small) if lower else (small, total - small)


def conv(
    x, w, *, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1, auto_pad="", fill=0
) -> np.ndarray:
    """x (N,H,W,C), w (O,C/group,kh,kw) → (N,H',W',O); padding holds `fill`."""
    _, h, width, _ = x.shape
    o, cg, kh, kw = w.shape
    (t, le, b, r), (sh, sw), (dh, dw) = pads, strides, dilations
    if auto_pad.startswith("SAME"):
        t, b = same_pads(h, kh, sh, dh, auto_pad == "SAME_LOWER")
        le, r = same_pads(width, kw, sw, dw, auto_pad == "SAME_LOWER")
    wide = np.float64 if x.dtype.kind == "f" else np.int64
    padded = np.pad(x.astype(wide), ((0, 0), (t, b), (le, r), (0, 0)), constant_values=fill)
    oh = (h + t + b - (kh - 1) * dh - 1) // sh + 1
    ow = (width + le + r - (kw - 1) * dw - 1) // sw + 1
    y = np.zeros((x.shape[0], oh, ow, o), wide)
    og = o // group
    for ky in range(kh):
        for kx in range(kw):
            part = padded[
                :,
                ky * dh : ky * dh + (oh - 1) * sh + 1 : sh,
                kx * dw : kx * dw + (ow - 1) * sw + 1 : sw,
            ]
            for g in range(group):
                y[..., g * og : (g + 1) * og] += (
                    part[..., g * cg : (g + 1) * cg]
                    @ w[g * og : (g + 1) * og, :, ky, kx].astype(wide).T
                )
    return y


def deconv(
    x, w, *, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1), group=1, output_padding=(0, 0)
) -> np.ndarray:
    """x (N,H,W,C), w (C,O/group,kh,kw) → (N,H',W',O), by scattering every input pixel."""
    n, h, width, c = x.shape
    _, og, kh, kw = w.shape
    (t, le, b, r), (sh, sw), (dh, dw) = pads, strides, dilations
    oh = (h - 1) * sh + (kh - 1) * dh + 1 + output_padding[0]
    ow = (width - 1) * sw + (kw - 1) * dw + 1 + output_padding[1]
    y = np.zeros((n, oh, ow, og * group))
    cg = c // group
    for ky in range(kh):
        for kx in range(kw):
            for g in range(group):
                y[
                    :,
                    ky * dh : ky * dh + (h - 1) * sh + 1 : sh,
                    kx * dw : kx * dw + (width - 1) * sw + 1 : sw,
                    g * og : (g + 1) * og,
                ] += x[..., g * cg : (g + 1) * cg].astype(np.float64) @ w[
                    g * cg : (g + 1) * cg, :, ky, kx
                ].astype(np.float64)
    return y[:, t : oh - b, le : ow - r]
