"""What TensorFlow's convolution gives, and runs of an imported graph."""

from __future__ import annotations

import numpy as np

from tests.importers.golden_runs import run_graph


def run(graph, **feeds):
    return run_graph(graph, feeds)


RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 6, 7, 3)).astype(np.float32)
W = RNG.standard_normal((3, 3, 3, 4)).astype(np.float32)


def same_conv(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """SAME convolution of x (N,H,W,C) by w (kh,kw,C,O)."""
    pads = []
    out = []
    for size, k in zip(x.shape[1:3], w.shape[:2]):
        n = -(-size // stride)
        total = max(0, (n - 1) * stride + k - size)
        pads.append((total // 2, total - total // 2))
        out.append(n)
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    y = np.zeros((x.shape[0], *out, w.shape[3]))
    for i, j in np.ndindex(*out):
        window = padded[
            :, i * stride : i * stride + w.shape[0], j * stride : j * stride + w.shape[1]
        ]
        y[:, i, j] = np.tensordot(window, w, 3)
    return y
