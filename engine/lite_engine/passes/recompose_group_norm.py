"""A group norm written as an instance norm of groups becomes one operator again.

(N, C, …) → (N, G, C/G·…), normalized, → (N, C, …) · γ + β        GroupNormalization

Exporters write it so where the opset has no such operator. One step takes channels-last tensors, as
convolutions do; the Reshapes need the channels first.
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node
from ._core import C, Match, P, Skip, no_match, rule, skip
from ._rewrite import constant_like, per_channel, rank_of, same_shape

_OF_GROUPS = P(
    "InstanceNormalization", P("Reshape", "x", "groups"), C("scale"), C("b"), name="norm"
)
_NORM = P("GroupNormalization", "x", C("scale"), C("b"), name="norm")


@rule("recompose-group-norm", source="Wu 2018")
class recompose_group_norm:
    patterns = [P("Reshape", _OF_GROUPS, "shape")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        grouped = m.norm.output.shape
        if (rank_of(m.x) or 0) < 3 or grouped is None or len(grouped) != 3:
            return no_match(m.norm)
        if not same_shape(m.x, m.root.output):
            return skip(tr("the result has another shape"), m.root)
        channels, groups = m.x.shape[1], grouped[1]
        if grouped[0] != m.x.shape[0] or not isinstance(channels, int):
            return skip(tr("it does not normalize groups of channels"), m.norm)
        if not isinstance(groups, int) or groups < 1 or channels % groups:
            return skip(tr("it does not normalize groups of channels"), m.norm)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        groups = int(m.norm.output.shape[1])
        each = int(m.x.shape[1]) // groups
        of_channels = [constant_like(graph, np.repeat(v.const, each), v, "scale")
                       for v in (m.scale, m.b)]  # fmt: skip
        attrs = {**m.norm.attrs, "num_groups": groups}
        return graph.replace(m.nodes, "GroupNormalization", [m.x, *of_channels], attrs)


@rule("fuse-group-norm-affine")
class fuse_group_norm_affine:
    """γ and β of each channel behind a group norm become its scale and bias."""

    patterns = [P("Mul", _NORM, C("k")), P("Add", _NORM, C("k"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.norm.attrs.get("activation"):
            return skip(tr("an activation is fused already"), m.norm)
        if per_channel(m.k.const, m.scale.const.size, rank_of(m.x)) is None:
            return skip(tr("the constant is not one number per channel"), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        scale, bias = m.scale.const, m.b.const
        k = per_channel(m.k.const, scale.size, rank_of(m.x))
        assert k is not None
        scale, bias = (scale * k, bias * k) if m.root.op == "Mul" else (scale, bias + k)
        inputs = [
            m.x,
            constant_like(graph, scale.astype(m.scale.const.dtype), m.scale, "scale"),
            constant_like(graph, bias.astype(m.b.const.dtype), m.b, "bias"),
        ]
        return graph.replace([m.norm, m.root], m.norm.op, inputs, {**m.norm.attrs, **m.root.attrs})
