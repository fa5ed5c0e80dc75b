"""Learned rounding: weights of least error on the inputs that a layer really gets, then its bias.

    q = argmin tr(D·H·Dᵀ), D = W − s·q, each q the integer below or above W/s;  H = cov(x̂)
    b′ = b + W·E[x] − s·q·E[x̂]

x are the float network's inputs of the layer, x̂ those of the network whose earlier layers are
quantized and learned already, so each bias also takes back what those shifted on average; deep
networks learn a few neighboring layers at a time. The
objective is that of Nagel 2020 (AdaRound, equation 21); q is found without gradients: from the
nearest integers the weight moves that lowers a row's error most, until none does.

E‖W·x − s·q·x̂‖² as the objective (its section 4.3) is not used: where x̂ is noisy, its least squares
shrink the weights, as every regression on noisy inputs does, and a few samples are fitted too well.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import Graph, Node
from ._run import Run, reference_run
from .calibrate import Ranges
from .moments import input_means, matrix, moments_of, moved_bias, shaped, weight_of
from .rounding import MAX_COLUMNS, MAX_SAMPLES, remembered, sum_preserving
from .samples import read_samples
from .scheme import Rounding, Scheme, clip_weight
from .select import WEIGHTED, integer_nodes
from .static import quantize_static

#: Networks with more layers than SINGLE are learned in at most ROUNDS rounds.
SINGLE, ROUNDS = 32, 16
#: Moves of one row, for each of its weights.
MOVES = 2
_TOP = 127


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
    rounding: Rounding = sum_preserving,
) -> Learned:
    """From a prepared float graph and samples, layer by layer. `biases` and `rounding` are those of
    the layers that are not learned: later ones, ConvTranspose, and layers with more than
    MAX_COLUMNS inputs per output."""
    other = remembered(rounding)
    chosen, _ = integer_nodes(parent, scheme.keep_float)
    layers = [
        n for n in parent.nodes
        if n.name in chosen and n.op in WEIGHTED and n.op != "ConvTranspose"
        and matrix(n, weight_of(n)).shape[2] <= MAX_COLUMNS
    ]  # fmt: skip
    samples = list(itertools.islice(read_samples(source, parent), MAX_SAMPLES))
    means = input_means(parent, layers, samples, run)
    done: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def learned(node: Node, w: np.ndarray, scale: np.ndarray, axis: int | None) -> np.ndarray:
        q, own = done.get(node.name, (None, scale))
        if q is not None and np.array_equal(scale, own):
            return q
        return other(node, w, scale, axis)

    found = Learned(learned, dict(biases))
    for nodes in _rounds([n for n in layers if n.name in means]):
        now = quantize_static(parent, ranges, scheme, rounding=learned, biases=found.biases)
        moments = moments_of(now, nodes, samples, run)
        for node in nodes:
            own, scale = moments[node.name], _scale(now.node(node.name))
            q = _solve(node, scale, own.covariance())
            done[node.name] = q, scale
            if node.op != "MatMul":
                w = matrix(node, weight_of(node))
                change = _row_scales(node, scale, w)[..., None] * matrix(node, q) - w
                found.biases[node.name] = moved_bias(node, change, means[node.name], own.mean)
    return found


def _rounds(layers: list[Node]) -> list[list[Node]]:
    """Layers that are learned together, in order: one after the other in networks of few; each
    round of the others compiles and runs the network once."""
    size = 1 if len(layers) <= SINGLE else -(-len(layers) // ROUNDS)
    return [layers[i : i + size] for i in range(0, len(layers), size)]


def _scale(node: Node) -> np.ndarray:
    """Scale of the weight of a node of the QDQ form."""
    weight = node.inputs[1]
    assert weight is not None and weight.producer is not None
    scale = weight.producer.inputs[1]
    assert scale is not None and scale.const is not None
    return scale.const


def _row_scales(node: Node, scale: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(groups, outputs per group) for w (groups, outputs, columns)."""
    return np.broadcast_to(scale.reshape(-1), (w.shape[0] * w.shape[1],)).reshape(w.shape[:2])


def _solve(node: Node, scale: np.ndarray, h: np.ndarray) -> np.ndarray:
    w = matrix(node, weight_of(node))
    scales = _row_scales(node, scale, w).astype(np.float64)
    return clip_weight(shaped(node, np.stack([descend(*group) for group in zip(w, scales, h)])))


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
    fixed = w == 0  # pruned weights stay 0
    least = 1e-12 * np.abs(gradient).max(initial=1e-30)
    for _ in range(MOVES * q.shape[1]):
        move = 1 - 2 * (q[rows] - low[rows])
        s = scale[rows, None]
        gain = np.where(fixed[rows], -np.inf, -2 * s * move * gradient[rows] - s * s * own)
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
