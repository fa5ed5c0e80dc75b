"""Which layers get zeros, and how many each.

Zeros are dealt out by what they cost: each layer alone is pruned at every level, and from none on
the step of least noise in the outputs for each new zero is taken until there are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node
from ..ops._sparse import MAX_DENSITY, is_pointwise
from ..quantize._run import Run
from ..quantize.analyze import output_errors
from ..quantize.moments import (
    Moments,
    input_means,
    input_moments,
    matrix,
    moved_bias,
    shaped,
    weight_of,
)
from ..quantize.rounding import MAX_COLUMNS
from ..quantize.samples import Feed
from .channels import WEIGHTED
from .patterns import Pattern
from .refit import prune_rows

#: Shares of zeros that a layer may get besides the one that is asked for: with fewer, or none, it
#: runs as a dense one.
LEVELS = (1 - MAX_DENSITY, 0.8, 0.9, 0.95)
#: Smaller weights are not worth their zeros.
MIN_ELEMS = 1024

#: Layer → share of zeros → SQNR of the outputs in dB when this layer alone has them.
Curves = dict[str, dict[float, float]]


def prunable(graph: Graph, keep: frozenset[str]) -> tuple[list[Node], dict[str, str]]:
    """Layers whose zeros can be skipped, and of the other layers with weights → why not."""
    chosen, left = [], {}
    for node in graph.nodes:
        if node.op in WEIGHTED:
            reason = tr("kept on request") if node.name in keep else _why_not(node)
            if reason:
                left[node.name] = reason
            else:
                chosen.append(node)
    return chosen, left


def _why_not(node: Node) -> str:
    weight = node.inputs[1]
    if weight is None or weight.const is None or weight.const.dtype != np.float32:
        return tr("its weight is not a float32 constant")
    array, attrs = weight.const, node.attrs
    if array.size < MIN_ELEMS:
        return tr("its weight has fewer than {n} elements", n=MIN_ELEMS)
    if len(weight.readers) > 1:
        return tr("another layer reads its weight, too")
    if node.op in ("Conv", "ConvTranspose"):
        if node.op != "Conv" or not is_pointwise(array.shape, attrs):
            return tr("only 1x1 convolutions of stride 1 have sparse kernels")
    elif array.ndim != 2 or attrs.get("transA", 0):
        return tr("its weight is not one matrix")
    elif attrs.get("alpha", 1.0) != 1 or attrs.get("beta", 1.0) != 1:
        return tr("it has alpha, beta or transA")
    if matrix(node, array).shape[2] > MAX_COLUMNS:
        return tr("it has more than {n} inputs", n=MAX_COLUMNS)
    bias = node.input(2)
    if bias is not None and bias.const is None:
        return tr("its bias is not a constant")
    return ""


def curves(
    graph: Graph,
    layers: Sequence[Node],
    levels: Sequence[float],
    pattern: Pattern,
    samples: Sequence[Feed],
    feeds: Sequence[Feed],
    run: Run,
    progress: Callable[[int, int], None],
) -> Curves:
    """Each layer alone at each level; `samples` choose the weights, `feeds` judge."""
    wants = [run(graph, feed) for feed in feeds]
    outputs = [v.name for v in graph.outputs]
    found: Curves = {}
    for number, node in enumerate(layers):
        progress(number, len(layers))
        moments = input_moments(graph, node, samples, run)
        found[node.name] = {}
        for share in levels:
            trial = graph.copy()
            _prune(trial, trial.node(node.name), share, pattern, moments, moments.mean)
            errors = output_errors(trial, feeds, wants, run)
            found[node.name][share] = round(errors.sqnr_db(outputs), 3)
    return found


def dealt(found: Curves, sizes: Mapping[str, int], share: float) -> dict[str, float]:
    """Layer → share of zeros; `share` of all weights of these layers become 0, or nearly."""
    now = dict.fromkeys(found, 0.0)
    noise = {name: {s: 10 ** (-db / 10) for s, db in own.items()} for name, own in found.items()}
    wanted = share * sum(sizes[n] for n in found)
    while sum(now[n] * sizes[n] for n in now) < wanted * (1 - 1e-6):
        steps = [
            ((own[s] - own.get(now[n], 0.0)) / ((s - now[n]) * sizes[n]), n, s)
            for n, own in noise.items()
            for s in own
            if s > now[n]
        ]
        if not steps:
            break  # every layer has as many as it may
        _, name, level = min(steps)
        now[name] = level
    return now


def prune_layers(
    graph: Graph,
    shares: Mapping[str, float],
    pattern: Pattern,
    samples: Sequence[Feed],
    run: Run,
    progress: Callable[[int, int], None],
) -> Graph:
    """A copy in which these layers have zeros, from the first to the last. Each one is solved on
    what reaches it through the pruned layers, and its bias keeps the mean of its outputs."""
    out = graph.copy()
    layers = [n for n in out.nodes if shares.get(n.name)]
    means = input_means(graph, [graph.node(n.name) for n in layers], samples, run)
    for number, node in enumerate(layers):
        progress(number, len(layers))
        # a copy: who runs graphs may keep what it made of one
        moments = input_moments(out.copy(), node, samples, run)
        _prune(out, node, shares[node.name], pattern, moments, means[node.name])
    return out


def _prune(
    graph: Graph, node: Node, share: float, pattern: Pattern, moments: Moments, mean: np.ndarray
) -> None:
    """Zeros in one layer, whose inputs had this `mean` and have these `moments` now."""
    w = matrix(node, weight_of(node))[0]
    made = prune_rows(w, moments.covariance()[0], share, pattern)
    if node.op != "MatMul":
        bias = moved_bias(node, (made - w)[None], mean, moments.mean)
        node.set_input(2, graph.constant(bias, graph.unique(f"{node.name}.bias")))
    set_weight(graph, node, made)


def set_weight(graph: Graph, node: Node, rows: np.ndarray) -> None:
    """Gives a node another weight (outputs, inputs)."""
    old = node.inputs[1]
    assert old is not None
    array = np.ascontiguousarray(shaped(node, rows[None]), np.float32)
    node.set_input(1, graph.constant(array, graph.unique(f"{old.name}.pruned")))
