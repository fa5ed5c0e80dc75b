"""Bias correction: what rounding the weights shifts on average goes back through the bias.

    b' = b − Σ (Ŵ − W)·E[x]          per output channel; E[x] per input channel, from calibration

Source: Nagel 2019 §4.2, with measured instead of estimated means.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..ir import Graph, Node
from .rounding import sum_preserving
from .scheme import Rounding, Scheme, shaped_scale, weight_scale
from .select import WEIGHTED, integer_nodes, weight_axis
from .statistics import Statistics


def corrected_biases(
    graph: Graph,
    statistics: Mapping[str, Statistics],
    scheme: Scheme,
    rounding: Rounding = sum_preserving,
) -> dict[str, np.ndarray]:
    """Node name → corrected float bias, for `quantize_static(..., biases=…)`.

    Nodes whose input means are not known, and MatMul, which has no bias, are left out.
    """
    chosen, _ = integer_nodes(graph, scheme.keep_float)
    out = {}
    for node in graph.nodes:
        if node.name not in chosen or node.op not in WEIGHTED or node.op == "MatMul":
            continue
        x, weight, bias = node.inputs[0], node.inputs[1], node.input(2)
        mean = statistics[x.name].channel_mean if x is not None and x.name in statistics else None
        if mean is None or weight is None or weight.const is None:
            continue
        axis = weight_axis(node) if scheme.per_channel else None
        scale = weight_scale(weight.const, axis)
        q = rounding(node, weight.const, scale, axis)
        error = q * shaped_scale(scale, q.ndim, axis) - weight.const
        shift = _shift(node, error, mean)
        if shift is not None:
            old = np.zeros(len(shift)) if bias is None or bias.const is None else bias.const.ravel()
            out[node.name] = (old - shift).astype(np.float32)
    return out


def _shift(node: Node, error: np.ndarray, mean: np.ndarray) -> np.ndarray | None:
    """Mean change of each output channel. None when the means do not fit the weight."""
    if node.op == "Gemm":
        error = error if node.attrs.get("transB", 0) else error.T  # (N, K)
        return error @ mean if error.shape[1] == len(mean) else None
    group = node.attrs.get("group", 1)
    if node.op == "ConvTranspose":
        return _transposed_shift(error, mean, group, node.attrs.get("strides") or [1])
    per_filter = error.reshape(*error.shape[:2], -1).sum(axis=2)  # (O, C/g)
    if per_filter.shape[1] * group != len(mean):
        return None
    grouped = per_filter.reshape(group, -1, per_filter.shape[1])
    return np.einsum("goc,gc->go", grouped, mean.reshape(group, -1)).reshape(-1)


def _transposed_shift(
    error: np.ndarray, mean: np.ndarray, group: int, strides: list[int]
) -> np.ndarray | None:
    """The taps of (C, O/g, *K) are spread over as many outputs as the stride makes of an input."""
    if len(error) != len(mean):
        return None
    per_filter = error.reshape(group, -1, error.shape[1], int(np.prod(error.shape[2:]))).sum(axis=3)
    sums = np.einsum("gco,gc->go", per_filter, mean.reshape(group, -1))
    return sums.reshape(-1) / np.prod(strides)
