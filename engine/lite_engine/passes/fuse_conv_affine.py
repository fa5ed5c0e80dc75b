"""Conv or ConvTranspose followed by Add, Sub, Mul or Div with a constant per channel.

(W∗x + b)·k + a     →     W·k ∗ x + (b·k + a)
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import per_channel, rank_of
from .fuse_conv_batch_norm import fold_affine, foldable, out_channels


def _conv() -> P:
    return P(("Conv", "ConvTranspose"), "x", "w", "b?", name="conv")


def _constant(m: Match) -> np.ndarray | None:
    array = m.array("k")
    assert array is not None
    return per_channel(array, out_channels(m.conv), rank_of(m.conv.inputs[1]))


class _Affine:
    def check(self, graph: Graph, m: Match) -> Skip | None:
        refusal = foldable(m.conv)
        if refusal is None and m.root.attrs.get("activation"):
            refusal = skip(tr("the addition carries an activation"), m.root)
        if refusal is None and _constant(m) is None:
            refusal = skip(tr("the constant is not one number per channel"), m.root)
        return refusal

    def rewrite(self, graph: Graph, m: Match) -> Node:
        k = np.asarray(_constant(m), np.float64)
        one, zero = np.asarray(1.0), np.asarray(0.0)
        match m.root.op:
            case "Add":
                scale, offset = one, k
            case "Sub":
                scale, offset = one, -k
            case "Mul":
                scale, offset = k, zero
            case _:
                scale, offset = 1 / k, zero
        return fold_affine(graph, [m.conv, m.root], scale, offset)


@rule("fuse-conv-bias")
class fuse_conv_bias(_Affine):
    patterns = [P(("Add", "Sub"), _conv(), C("k"))]


@rule("fuse-conv-scale")
class fuse_conv_scale(_Affine):
    patterns = [P(("Mul", "Div"), _conv(), C("k"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        refusal = super().check(graph, m)
        if refusal is None and m.root.op == "Div" and not np.all(m.array("k")):
            refusal = skip(tr("division by zero"), m.root)
        return refusal
