"""Layers as matrices, and the moments of their inputs: what weights are chosen by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ir import Graph, Node
from ._run import Run
from .rounding import DAMPING, input_rows
from .samples import Feed


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


def _rows(node: Node, value: np.ndarray, sample: int) -> np.ndarray | None:
    """Rows that the weights multiply: the same positions in every network."""
    return input_rows(node, value, np.random.default_rng(sample))


def input_means(
    parent: Graph, layers: Sequence[Node], samples: Sequence[Feed], run: Run
) -> dict[str, np.ndarray]:
    """E[x] (groups, columns) by node name, of the layers whose inputs `input_rows` knows."""
    taps = sorted({n.inputs[0].name for n in layers if n.inputs[0] is not None})
    sums: dict[str, np.ndarray] = {}
    for index, feed in enumerate(samples):
        values = {**feed, **run(parent, feed, taps)}
        for node in layers:
            assert node.inputs[0] is not None
            rows = _rows(node, values[node.inputs[0].name], index)
            if rows is not None:
                mean = rows.mean(axis=1, dtype=np.float64)
                sums[node.name] = sums.get(node.name, 0) + mean / len(samples)
    return sums


def input_moments(graph: Graph, node: Node, samples: Sequence[Feed], run: Run) -> Moments:
    """Of a layer's inputs in a graph that may have changed before it."""
    return moments_of(graph, [node], samples, run)[node.name]


def moments_of(
    graph: Graph, layers: Sequence[Node], samples: Sequence[Feed], run: Run
) -> dict[str, Moments]:
    """The same by name of several layers, from one run of each sample."""
    inputs = {n.name: v.name for n in layers if (v := n.inputs[0]) is not None}
    taps = sorted(set(inputs.values()))
    found = {n.name: Moments(0, np.zeros(()), np.zeros(())) for n in layers}
    for index, feed in enumerate(samples):
        values = {**feed, **run(graph, feed, taps)}
        for node in layers:
            rows = _rows(node, values[inputs[node.name]], index)
            assert rows is not None
            x, own = rows.astype(np.float64), found[node.name]
            own.count += x.shape[1]
            own.total = own.total + x.sum(axis=1)
            own.square = own.square + np.matmul(x.transpose(0, 2, 1), x)
    return found


def weight_of(node: Node) -> np.ndarray:
    """The constant weight."""
    weight = node.inputs[1]
    assert weight is not None and weight.const is not None
    return weight.const


def _columns_last(node: Node) -> bool:
    return node.op == "Conv" or bool(node.attrs.get("transB", 0))


def matrix(node: Node, w: np.ndarray) -> np.ndarray:
    """A weight as float64 (groups, outputs, columns), columns being what a dot product sums."""
    rows = w.reshape(w.shape[0], -1) if _columns_last(node) else w.T
    return rows.reshape(node.attrs.get("group", 1), -1, rows.shape[1]).astype(np.float64)


def shaped(node: Node, rows: np.ndarray) -> np.ndarray:
    """The inverse of `matrix`."""
    flat = rows.reshape(-1, rows.shape[2])
    return flat.reshape(weight_of(node).shape) if _columns_last(node) else flat.T


def moved_bias(
    node: Node, change: np.ndarray, mean: np.ndarray, mean_now: np.ndarray
) -> np.ndarray:
    """b + W·E[x] − (W + change)·E[x̂], f32 (outputs,): the bias that keeps a layer's mean output.

    `change` is shaped as `matrix` says, the means are (groups, columns).
    """
    w = matrix(node, weight_of(node))
    shift = np.einsum("gok,gk->go", w, mean) - np.einsum("gok,gk->go", w + change, mean_now)
    bias = node.input(2)
    old = 0.0 if bias is None or bias.const is None else bias.const.ravel().astype(np.float64)
    return np.asarray(old + shift.ravel()).astype(np.float32)
