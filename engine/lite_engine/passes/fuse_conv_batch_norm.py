"""Conv or ConvTranspose + BatchNormalization → the convolution alone.

s = γ / √(σ² + ε)        W' = W·s  (per output channel)        b' = (b − μ)·s + β
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import constant_like


@rule("fuse-conv-batch-norm", source="Jacob 2018 §3.2")
class fuse_conv_batch_norm:
    patterns = [
        P(
            "BatchNormalization",
            P(("Conv", "ConvTranspose"), "x", "w", "b?", name="conv"),
            C("gamma"), C("beta"), C("mean"), C("var"),
            name="bn",
        )
    ]  # fmt: skip

    def check(self, graph: Graph, m: Match) -> Skip | None:
        return foldable(m.conv) or not_affine(m.bn)

    def rewrite(self, graph: Graph, m: Match) -> Node:
        return fold_affine(graph, [m.conv, m.bn], *affine_of(m, m.bn))


def not_affine(bn: Node) -> Skip | None:
    """Why a batch norm is not one factor and one offset of each channel."""
    if bn.attrs.get("training_mode") or len(bn.outputs) > 1:
        return skip(tr("batch-norm is in training mode"), bn)
    # Where the input has no shape yet, nobody has compared them before.
    sizes = {v.const.shape for v in bn.inputs[1:5] if v is not None and v.const is not None}
    if len(sizes) > 1:
        return skip(tr("the constants of batch-norm differ in size"), bn)
    return None


def affine_of(m: Match, bn: Node) -> tuple[np.ndarray, np.ndarray]:
    """The factor and the offset of a batch norm, whose constants a pattern calls gamma, beta, mean
    and var: (channels,) each, in double precision."""
    gamma, beta, mean, var = (
        np.asarray(m.array(n), np.float64) for n in ("gamma", "beta", "mean", "var")
    )
    scale = gamma / np.sqrt(var + bn.attrs.get("epsilon", 1e-5))
    return scale, beta - mean * scale


def foldable(conv: Node) -> Skip | None:
    """Why a per-channel factor and offset cannot go into this convolution."""
    weight, bias = conv.inputs[1], conv.input(2)
    if weight is None or weight.const is None:
        return skip(tr("the weight is not constant"), conv)
    if bias is not None and bias.const is None:
        return skip(tr("the bias is not constant"), conv)
    if bias is not None and bias.const is not None and bias.const.ndim != 1:
        return skip(tr("the bias does not have one axis"), conv)
    if conv.attrs.get("activation"):
        return skip(tr("an activation comes between"), conv)
    return None


def out_channels(conv: Node) -> int:
    weight = conv.inputs[1]
    assert weight is not None and weight.const is not None
    if conv.op == "Conv":
        return int(weight.const.shape[0])
    return int(weight.const.shape[1] * conv.attrs.get("group", 1))


def fold_affine(graph: Graph, nodes: list[Node], scale: np.ndarray, offset: np.ndarray) -> Node:
    """The convolution nodes[0] with y·scale + offset folded in; it takes over nodes[-1]'s output.

    scale, offset (O,) or scalars.
    """
    conv = nodes[0]
    weight, bias = conv.inputs[1], conv.input(2)
    assert weight is not None and weight.const is not None
    channels, w = out_channels(conv), weight.const
    scale = np.broadcast_to(np.asarray(scale, np.float64), (channels,))
    if conv.op == "Conv":
        scaled = w * scale.reshape(-1, *[1] * (w.ndim - 1))
    else:  # (C, O/g, …): group g's filters hold its own slice of the channels
        group = conv.attrs.get("group", 1)
        grouped = w.reshape(group, w.shape[0] // group, w.shape[1], *w.shape[2:])
        factor = scale.reshape(group, 1, w.shape[1], *[1] * (w.ndim - 2))
        scaled = (grouped * factor).reshape(w.shape)
    b = np.zeros(channels) if bias is None or bias.const is None else bias.const
    new_bias = b * scale + np.broadcast_to(offset, (channels,))
    new_weight = weight
    if not np.all(scale == 1):
        new_weight = constant_like(graph, scaled.astype(w.dtype), weight, "weight")
    inputs = [
        conv.inputs[0],
        new_weight,
        constant_like(graph, new_bias.astype(w.dtype), bias or weight, "bias"),
    ]
    return graph.replace(nodes, conv.op, inputs, conv.attrs, name=conv.name)
