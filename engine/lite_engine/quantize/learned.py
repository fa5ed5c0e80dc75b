"""Learned rounding: weights of least error on the inputs that a layer really gets, then its bias.

    q = argmin tr(D·H·Dᵀ), D = W − s·q, each q the integer below or above W/s;  H = cov(x̂)
    b′ = b + W·E[x] − s·q·E[x̂]

x are the float network's inputs of the layer, x̂ those of the network whose earlier layers are
quantized and learned already, so each bias also takes back what those shifted on average. The
objective is that of Nagel 2020 (AdaRound, equation 21); q is found without gradients: from the
nearest integers the weight moves that lowers a row's error most, until none does.

E‖W·x − s·q·x̂‖² as the objective (its section 4.3) is not used: where x̂ is noisy, its least squares
shrink the weights, as every regression on noisy inputs does, and a few samples are fitted too well.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import Graph, Node
from ._run import Run, reference_run
from .calibrate import Ranges
from .rounding import DAMPING, MAX_COLUMNS, MAX_SAMPLES, input_rows, sum_preserving
from .samples import Feed, read_samples
from .scheme import Rounding, Scheme, clip_weight
from .select import WEIGHTED, integer_nodes
from .static import quantize_static

#: Moves of one row, for each of its weights.
MOVES = 2
_TOP = 127


@dataclass
class Moments:
    """Sums over positions of the inputs (groups, columns) of a layer, and of their products."""

    count: int
    total: np.ndarray  # (groups, columns)
    square: np.ndarray  # (groups, columns, columns)

    @property
    def mean(self) -> np.ndarray:
        return self.total / self.count

    def covariance(self) -> np.ndarray:
        """(groups, columns, columns). Few positions know little of how many columns depend on each
        other: the more the diagonal is raised."""
        mean = self.mean
        h = self.square / self.count - mean[:, :, None] * mean[:, None, :]
        own = np.einsum("gkk->gk", h)
        raised = own * (h.shape[1] / self.count) + DAMPING * own.mean(axis=1, keepdims=True) + 1e-12
        return h + raised[:, :, None] * np.eye(h.shape[1])


@dataclass(frozen=True)
class Learned:
    """What `learn` found: a rounding for `quantize_static`, and biases by node name."""

    rounding: Rounding
    biases: dict[str, np.ndarray]


def learn(
    parent: Graph,
    ranges: Ranges,
    source: Any,
    scheme: Scheme,
    *,
    biases: Mapping[str, np.ndarray],
    run: Run = reference_run,
) -> Learned:
    """From a prepared float graph and samples, layer by layer. `biases` are those of the layers
    that are not learned: ConvTranspose, and layers with more than MAX_COLUMNS inputs per output.
    """
    chosen, _ = integer_nodes(parent, scheme.keep_float)
    layers = [
        n for n in parent.nodes
        if n.name in chosen and n.op in WEIGHTED and n.op != "ConvTranspose"
        and _matrix(n, _weight(n)).shape[2] <= MAX_COLUMNS
    ]  # fmt: skip
    samples = list(itertools.islice(read_samples(source, parent), MAX_SAMPLES))
    means = _means(parent, layers, samples, run)
    done: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def rounding(node: Node, w: np.ndarray, scale: np.ndarray, axis: int | None) -> np.ndarray:
        q, own = done.get(node.name, (None, scale))
        if q is not None and np.array_equal(scale, own):
            return q
        return sum_preserving(node, w, scale, axis)

    found = Learned(rounding, dict(biases))
    for node in layers:
        if node.name not in means:
            continue
        now = quantize_static(parent, ranges, scheme, rounding=rounding, biases=found.biases)
        moments = _moments(now, node, samples, run)
        scale = _scale(next(n for n in now.nodes if n.name == node.name))
        q = _solve(node, scale, moments.covariance())
        done[node.name] = q, scale
        if node.op != "MatMul":
            found.biases[node.name] = _bias(node, q, scale, means[node.name], moments.mean)
    return found


def _inputs(node: Node, value: np.ndarray, sample: int) -> np.ndarray | None:
    """Rows that the weights multiply: the same positions in every network."""
    return input_rows(node, value, np.random.default_rng(sample))


def _means(
    parent: Graph, layers: Sequence[Node], samples: Sequence[Feed], run: Run
) -> dict[str, np.ndarray]:
    """E[x] (groups, columns) by node name, of the layers whose inputs `input_rows` knows."""
    taps = sorted({n.inputs[0].name for n in layers if n.inputs[0] is not None})
    sums: dict[str, np.ndarray] = {}
    for index, feed in enumerate(samples):
        values = {**feed, **run(parent, feed, taps)}
        for node in layers:
            assert node.inputs[0] is not None
            rows = _inputs(node, values[node.inputs[0].name], index)
            if rows is not None:
                mean = rows.mean(axis=1, dtype=np.float64)
                sums[node.name] = sums.get(node.name, 0) + mean / len(samples)
    return sums


def _moments(quantized: Graph, node: Node, samples: Sequence[Feed], run: Run) -> Moments:
    assert node.inputs[0] is not None
    name = node.inputs[0].name
    found = Moments(0, np.zeros(()), np.zeros(()))
    for index, feed in enumerate(samples):
        value = {**feed, **run(quantized, feed, [name])}[name]
        rows = _inputs(node, value, index)
        assert rows is not None
        x = rows.astype(np.float64)
        found.count += x.shape[1]
        found.total = found.total + x.sum(axis=1)
        found.square = found.square + np.matmul(x.transpose(0, 2, 1), x)
    return found


def _weight(node: Node) -> np.ndarray:
    weight = node.inputs[1]
    assert weight is not None and weight.const is not None
    return weight.const


def _scale(node: Node) -> np.ndarray:
    """Scale of the weight of a node of the QDQ form."""
    weight = node.inputs[1]
    assert weight is not None and weight.producer is not None
    scale = weight.producer.inputs[1]
    assert scale is not None and scale.const is not None
    return scale.const


def _columns_last(node: Node) -> bool:
    return node.op == "Conv" or bool(node.attrs.get("transB", 0))


def _matrix(node: Node, w: np.ndarray) -> np.ndarray:
    """(groups, outputs, columns)"""
    matrix = w.reshape(w.shape[0], -1) if _columns_last(node) else w.T
    return matrix.reshape(node.attrs.get("group", 1), -1, matrix.shape[1]).astype(np.float64)


def _shaped(node: Node, matrix: np.ndarray) -> np.ndarray:
    """The inverse of `_matrix`."""
    flat = matrix.reshape(-1, matrix.shape[2])
    return flat.reshape(_weight(node).shape) if _columns_last(node) else flat.T


def _row_scales(node: Node, scale: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(groups, outputs per group) for w (groups, outputs, columns)."""
    return np.broadcast_to(scale.reshape(-1), (w.shape[0] * w.shape[1],)).reshape(w.shape[:2])


def _solve(node: Node, scale: np.ndarray, h: np.ndarray) -> np.ndarray:
    w = _matrix(node, _weight(node))
    scales = _row_scales(node, scale, w).astype(np.float64)
    return clip_weight(_shaped(node, np.stack([descend(*group) for group in zip(w, scales, h)])))


def descend(w: np.ndarray, scale: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Integers q (rows, columns) next to w/scale: from the nearest ones, moves to the other side
    that lower d·h·dᵀ, d = w − scale·q, of each row most, until none does.

    w (rows, columns), scale (rows,), h (columns, columns) positive definite.
    """
    steps = w / scale[:, None]
    low = np.clip(np.floor(steps), -_TOP, _TOP - 1)
    q = np.clip(np.rint(steps), low, low + 1)
    gradient = (q * scale[:, None] - w) @ h
    own = np.diag(h)[None]
    rows = np.arange(len(q))
    least = 1e-12 * np.abs(gradient).max(initial=1e-30)
    for _ in range(MOVES * q.shape[1]):
        move = 1 - 2 * (q[rows] - low[rows])
        s = scale[rows, None]
        gain = -2 * s * move * gradient[rows] - s * s * own
        at = gain.argmax(axis=1)
        here = np.arange(len(rows))
        lowers = gain[here, at] > least * s[:, 0]
        step = move[here, at][lowers]
        rows, at = rows[lowers], at[lowers]
        if not len(rows):
            break
        q[rows, at] += step
        gradient[rows] += (step * scale[rows])[:, None] * h[at]
    return q


def _bias(
    node: Node, q: np.ndarray, scale: np.ndarray, mean: np.ndarray, mean_q: np.ndarray
) -> np.ndarray:
    """b + W·E[x] − s·q·E[x̂]; means (groups, columns)"""
    w, integers = _matrix(node, _weight(node)), _matrix(node, q)
    shift = np.einsum("gok,gk->go", w, mean)
    shift = shift - _row_scales(node, scale, w) * np.einsum("gok,gk->go", integers, mean_q)
    bias = node.input(2)
    old = 0.0 if bias is None or bias.const is None else bias.const.ravel().astype(np.float64)
    return np.asarray(old + shift.ravel()).astype(np.float32)
