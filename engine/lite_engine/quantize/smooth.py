"""Outlier channels of normalizations: their magnitude moves into the weights that read them.

    s_j = max|x_j|^α / max|W_·j|^(1−α),   W·x = (W·diag s) · (x / s)

A few channels of a transformer's normalizations are often far larger than the others, and with one
scale for the whole tensor nothing is left for those. Weights have a scale for each output, and hold
a large input channel well. Source: Xiao 2023 (SmoothQuant), there with α = 0.5; here, for every
normalization the α, or none, for which rounding both sides is expected to add least to the outputs:

    noise = Σ_n (Δx² Σ_j (W_nj s_j)² + Δw_n² Σ_j E[x_j²] / s_j²),   Δ the steps of eight bits
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import Graph, Node
from ._run import Run, reference_run
from .equalize import LIMIT
from .moments import matrix, weight_of
from .norm_scaling import normalized_products, scale_products
from .rounding import MAX_SAMPLES
from .samples import read_samples
from .select import integer_nodes

ALPHAS = tuple(i / 10 for i in range(1, 10))


@dataclass
class _Channels:
    """Extremes and mean square of each channel over samples and positions."""

    low: np.ndarray
    high: np.ndarray
    square: np.ndarray

    @staticmethod
    def of(x: np.ndarray) -> _Channels:
        rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
        return _Channels(rows.min(axis=0), rows.max(axis=0), (rows * rows).mean(axis=0))

    def joined(self, other: _Channels, count: int) -> _Channels:
        """With `other`, the newest of `count` samples."""
        square = self.square + (other.square - self.square) / count
        return _Channels(np.minimum(self.low, other.low), np.maximum(self.high, other.high), square)


def smooth(
    graph: Graph, source: Any, keep: frozenset[str] = frozenset(), *, run: Run = reference_run
) -> list[str]:
    """Moves outliers of normalizations into the weights of the integer layers behind them, in
    place; `keep` are layers that stay in float. Returns the names of the normalizations."""
    chosen, _ = integer_nodes(graph, keep)
    found = list(normalized_products(graph, frozenset(chosen)))
    seen = _observe(graph, [norm for norm, _ in found], source, run) if found else {}
    done = []
    for norm, readers in found:
        w = np.concatenate([matrix(r, weight_of(r))[0] for r in readers])
        s = factors(w, seen[norm.name]) if norm.name in seen else None
        if s is not None:
            scale_products(graph, norm, readers, s)
            done.append(norm.name)
    return done


def _observe(graph: Graph, norms: list[Node], source: Any, run: Run) -> dict[str, _Channels]:
    taps = [n.output.name for n in norms]
    graph = graph.copy()  # what runs graphs keeps programs of those that it has seen
    seen: dict[str, _Channels] = {}
    samples = itertools.islice(read_samples(source, graph), MAX_SAMPLES)
    for count, feed in enumerate(samples, 1):
        values = run(graph, feed, taps)
        for norm in norms:
            own = _Channels.of(values[norm.output.name])
            seen[norm.name] = seen[norm.name].joined(own, count) if norm.name in seen else own
    return seen


def factors(w: np.ndarray, x: _Channels) -> np.ndarray | None:
    """Factors (columns,) for weights w (rows, columns) and their inputs; None where no α is
    expected to be better than the weights as they are."""
    loud = np.maximum(np.abs(x.low), np.abs(x.high))
    most = np.abs(w).max(axis=0)
    alive = (loud > 0) & (most > 0)
    if not alive.any():
        return None
    best, found = _noise(w, x, np.ones(len(loud))), None
    for alpha in ALPHAS:
        s = np.where(alive, loud, 1.0) ** alpha / np.where(alive, most, 1.0) ** (1 - alpha)
        s = np.where(alive, s / np.exp(np.log(s[alive]).mean()), 1.0)
        s = np.clip(s, 1 / LIMIT, LIMIT)
        now = _noise(w, x, s)
        if now < best:
            best, found = now, s
    return found


def _noise(w: np.ndarray, x: _Channels, s: np.ndarray) -> float:
    """Expected squared error of the outputs, up to a factor."""
    step_x = (np.maximum(x.high / s, 0).max() - np.minimum(x.low / s, 0).min()) / 255
    scaled = w * s
    step_w = np.abs(scaled).max(axis=1) / 127
    of_inputs = step_x**2 * (scaled * scaled).sum()
    return float(of_inputs + (step_w**2).sum() * (x.square / s**2).sum())
