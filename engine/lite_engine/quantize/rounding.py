"""Rounding of weights that looks at the layer's output, not at each weight alone.

Sum-preserving (no data): weights are rounded to nearest, then those that were nearly rounded the
other way are flipped until the sum of every kernel window, and of every filter, is kept to half a
step. Behind a ReLU inputs share a large positive mean: it meets the sum of the errors, so this is
where most of the damage comes from. Source: Guo 2022 (SQuant).

Adaptive (with samples): column by column, what rounding one weight changes in the output is made up
for by the weights that are not rounded yet, along the correlations H = E[xxᵀ] of the inputs:

    e = (w_j − ŵ_j) / U_jj,   w_k ← w_k − e·U_jk  (k > j),   UᵀU = (H + λI)⁻¹

Source: Frantar 2022 (GPTQ), the closed form of what Nagel 2020 (AdaRound) is after.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import Graph, Node
from ._run import Run, reference_run
from .samples import read_samples
from .scheme import Rounding, Scheme, clip_weight, shaped_scale
from .select import WEIGHTED, integer_nodes, weight_axis

#: Samples, and positions of each sample, that H is taken from.
MAX_SAMPLES = 16
POSITIONS = 256
#: λ relative to the mean of H's diagonal.
DAMPING = 0.01
#: Larger layers are rounded without samples: H would not fit.
MAX_COLUMNS = 4608
#: Columns that are compensated one by one; those behind them get their errors in one product.
_BLOCK = 256


def preserve_sums(w: np.ndarray, scale: np.ndarray, axis: int | None, bits: int = 8) -> np.ndarray:
    """Integers of a weight whose windows and filters keep their sums.

    w (O,C,*K) with axis 0, (C,O,*K) with axis 1, or a matrix with its output axis; one window is
    the last axes of a convolution's weight.
    """
    out_axis = 0 if axis is None else axis
    steps = np.moveaxis(w.astype(np.float64) / shaped_scale(scale, w.ndim, axis), out_axis, 0)
    rows = steps.reshape(steps.shape[0], -1)
    q = np.rint(rows)
    if w.ndim > 2:
        windows = rows.reshape(-1, int(np.prod(w.shape[2:])))
        q = _flip(windows, q.reshape(windows.shape)).reshape(rows.shape)
    q = _flip(rows, q)
    return clip_weight(np.moveaxis(q.reshape(steps.shape), 0, out_axis), bits)


def _flip(real: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Moves those elements of each row by one step that cost least, until the sums agree."""
    left = real - q
    missing = np.rint(left.sum(axis=1))
    sign = np.sign(missing)[:, None]
    rank = np.argsort(np.argsort(-sign * left, axis=1), axis=1)
    return q + sign * (rank < np.abs(missing)[:, None])


def nearest(node: Node, w: np.ndarray, scale: np.ndarray, axis: int | None) -> np.ndarray:
    """Each weight to its nearest step, as a `rounding` of `quantize_static`."""
    return clip_weight(np.rint(w / shaped_scale(scale, w.ndim, axis)))


def sum_preserving(node: Node, w: np.ndarray, scale: np.ndarray, axis: int | None) -> np.ndarray:
    """The same as a `rounding` of `quantize_static`."""
    return preserve_sums(w, scale, axis)


def remembered(rounding: Rounding) -> Rounding:
    """The same, each weight rounded once for each scale: a network is written many times while its
    ranges and layers are chosen. For one graph only, since layers are known by name."""
    done: dict[tuple[str, bytes], np.ndarray] = {}

    def again(node: Node, w: np.ndarray, scale: np.ndarray, axis: int | None) -> np.ndarray:
        key = node.name, scale.tobytes()
        if key not in done:
            done[key] = rounding(node, w, scale, axis)
        return done[key]

    return again


def adaptive_rounding(
    graph: Graph, source: Any, scheme: Scheme, *, run: Run = reference_run
) -> Rounding:
    """A `rounding` for `quantize_static`, from at most MAX_SAMPLES samples."""
    chosen, _ = integer_nodes(graph, scheme.keep_float)
    # an output of ConvTranspose reads some taps of several positions: no one H
    layers = [
        n for n in graph.nodes if n.name in chosen and n.op in WEIGHTED and n.op != "ConvTranspose"
    ]
    correlations = input_correlations(graph, layers, source, run)

    def rounding(node: Node, w: np.ndarray, scale: np.ndarray, axis: int | None) -> np.ndarray:
        if node.name not in correlations:
            return preserve_sums(w, scale, axis)
        return _round_layer(node, w, scale, correlations[node.name])

    return remembered(rounding)


def input_correlations(
    graph: Graph, layers: Sequence[Node], source: Any, run: Run = reference_run
) -> dict[str, np.ndarray]:
    """Node name → E[xxᵀ] (groups, columns, columns) of the vectors that its weights multiply, from
    at most MAX_SAMPLES samples. Layers that are too large, or padded by name, are left out."""
    found: dict[str, np.ndarray] = {}
    taps = sorted({n.inputs[0].name for n in layers if n.inputs[0] is not None})
    rng = np.random.default_rng(0)
    count = 0
    for feed in itertools.islice(read_samples(source, graph), MAX_SAMPLES):
        values = {**feed, **run(graph, feed, taps)}
        for node in layers:
            assert node.inputs[0] is not None
            rows = input_rows(node, values[node.inputs[0].name], rng)
            if rows is not None:
                h = np.einsum("gnk,gnm->gkm", rows, rows, optimize=True) / rows.shape[1]
                found[node.name] = found.get(node.name, 0) + h
        count += 1
    return {name: h / count for name, h in found.items()}


def _columns(node: Node) -> int:
    weight = node.inputs[1]
    assert weight is not None and weight.const is not None
    return weight.const.size // weight.const.shape[weight_axis(node)]


def input_rows(node: Node, x: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """(groups, positions, columns): inputs of the dot products at some output positions."""
    if _columns(node) > MAX_COLUMNS:
        return None
    if node.op != "Conv":
        flat = x.reshape(-1, x.shape[-1])
        picked = flat if len(flat) <= POSITIONS else flat[rng.choice(len(flat), POSITIONS, False)]
        return picked[None].astype(np.float32)
    weight = node.inputs[1]
    assert weight is not None and weight.const is not None
    kernel, group = weight.const.shape[2:], node.attrs.get("group", 1)
    if len(kernel) != 2 or node.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "", "VALID"):
        return None
    strides, dilations = (node.attrs.get(k) or [1, 1] for k in ("strides", "dilations"))
    top, left, bottom, right = node.attrs.get("pads") or [0, 0, 0, 0]
    padded = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)])
    sizes = [
        (padded.shape[2 + i] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
        for i in range(2)
    ]
    count = min(POSITIONS, sizes[0] * sizes[1])
    at = rng.choice(sizes[0] * sizes[1], count, replace=False)
    ys, xs = at // sizes[1] * strides[0], at % sizes[1] * strides[1]
    iy = ys[:, None, None] + (np.arange(kernel[0]) * dilations[0])[None, :, None]
    ix = xs[:, None, None] + (np.arange(kernel[1]) * dilations[1])[None, None, :]
    patches = padded[0][:, iy, ix]  # (C, positions, kh, kw)
    grouped = patches.reshape(group, -1, count, kernel[0] * kernel[1]).transpose(0, 2, 1, 3)
    return grouped.reshape(group, count, -1).astype(np.float32)


def _round_layer(node: Node, w: np.ndarray, scale: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Integers of the shape of w."""
    columns_last = node.op == "Conv" or bool(node.attrs.get("transB", 0))
    matrix = w.reshape(w.shape[0], -1) if columns_last else w.T
    scales = np.broadcast_to(scale.reshape(-1), (len(matrix),)).reshape(len(h), -1)
    grouped = matrix.reshape(len(h), -1, matrix.shape[1])
    q = np.concatenate([_compensate(g, s, c) for g, s, c in zip(grouped, scales, h)])
    return clip_weight(q.reshape(w.shape) if columns_last else q.T)


def _compensate(w: np.ndarray, scale: np.ndarray, h: np.ndarray) -> np.ndarray:
    """w (rows, columns) with one scale per row → integers (rows, columns)."""
    q = np.empty(w.shape)

    def column(j: int, now: np.ndarray) -> np.ndarray:
        q[:, j] = np.clip(np.rint(now[:, j] / scale), -127, 127)
        return np.asarray(q[:, j] * scale)

    compensate(w, h, column)
    return q


def compensate(
    w: np.ndarray, h: np.ndarray, column: Callable[[int, np.ndarray], np.ndarray]
) -> None:
    """Walks the columns of w (rows, columns) with the input correlations h (columns, columns).

    `column(j, now)` gets the weights with all errors before j made up for, and returns column j as
    it was rounded. From a multiple of 256 on, the next 256 columns are up to date.
    """
    w, h = w.astype(np.float64), h.astype(np.float64)
    damping = DAMPING * max(float(np.mean(np.diag(h))), 1e-12)
    upper = np.linalg.cholesky(np.linalg.inv(h + damping * np.eye(len(h)))).T
    for begin in range(0, w.shape[1], _BLOCK):
        end = min(begin + _BLOCK, w.shape[1])
        errors = np.empty((len(w), end - begin))
        for j in range(begin, end):
            error = (w[:, j] - column(j, w)) / upper[j, j]
            w[:, j + 1 : end] -= np.outer(error, upper[j, j + 1 : end])
            errors[:, j - begin] = error
        w[:, end:] -= errors @ upper[begin:end, end:]
