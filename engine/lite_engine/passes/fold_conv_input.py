"""A per-channel factor or offset before a convolution moves into its weight and bias.

W ∗ (x·k + a)  =  (W·k) ∗ x + Σ W·a      the offset only without padding: zeros are padded, not a
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import constant_like, per_channel, rank_of


@rule("fold-conv-input")
class fold_conv_input:
    patterns = [
        P(
            "Conv",
            P(("Mul", "Div", "Add", "Sub"), "x", C("k"), name="before"),
            C("w"),
            C("b?"),
            "residual?",
            name="conv",
        )
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.before.attrs.get("activation"):
            return skip(tr("the addition carries an activation"), m.before)
        if m.before.output.shape is None or m.before.output.shape != m.x.shape:
            return skip(tr("the constant broadcasts to a larger shape"), m.before)
        if per_channel(m.k.const, _channels(m), rank_of(m.x)) is None:
            return skip(tr("the constant is not one number per channel"), m.before)
        if m.before.op in ("Add", "Sub") and _padded(m.conv):
            return skip(tr("an offset cannot pass zero padding"), m.conv)
        if m.before.op == "Div" and not m.k.const.all():
            return skip(tr("division by zero"), m.before)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        w, group = m.w.const, m.conv.attrs.get("group", 1)
        k = per_channel(m.k.const, _channels(m), rank_of(m.x))
        assert k is not None
        # (g, O/g, C/g, …) times (g, 1, C/g, 1…): each group reads its own channels
        grouped = w.reshape(group, w.shape[0] // group, *w.shape[1:]).astype(np.float64)
        factor = k.astype(np.float64).reshape(group, 1, w.shape[1], *[1] * (w.ndim - 2))
        inputs = [m.x, m.w, m.bound.get("b"), m.bound.get("residual")]
        if m.before.op in ("Mul", "Div"):
            scaled = grouped * factor if m.before.op == "Mul" else grouped / factor
            inputs[1] = constant_like(graph, scaled.reshape(w.shape).astype(w.dtype), m.w, "weight")
        else:
            sums = (grouped * factor).sum(axis=tuple(range(2, w.ndim + 1))).reshape(-1)
            old = m.array("b")
            sign = 1 if m.before.op == "Add" else -1
            bias = (0 if old is None else old) + sign * sums
            inputs[2] = constant_like(graph, bias.astype(w.dtype), m.w, "bias")
        while inputs[-1] is None:
            inputs.pop()
        return graph.replace([m.before, m.conv], "Conv", inputs, m.conv.attrs, name=m.conv.name)


def _channels(m: Match) -> int:
    return int(m.w.const.shape[1] * m.conv.attrs.get("group", 1))


def _padded(conv: Node) -> bool:
    auto = conv.attrs.get("auto_pad", "NOTSET")
    return any(conv.attrs.get("pads", [])) or auto not in ("NOTSET", "", "VALID")
