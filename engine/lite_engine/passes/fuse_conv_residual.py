"""Conv + Add of a tensor of the same shape → Conv with that tensor as its `residual` input."""

from __future__ import annotations

from lite_messages import tr

from ..ir import Graph, Node
from ._core import Match, P, Skip, rule, skip
from ._rewrite import same_shape


@rule("fuse-conv-residual")
class fuse_conv_residual:
    """Of two convolutions that meet, the one that runs last takes the other's output."""

    patterns = [P("Add", P("Conv", "x", "w", "b?", name="conv"), "other", name="add")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.conv.attrs.get("activation"):
            return skip(tr("an activation comes between"), m.conv)
        if m.other.is_const:
            return skip(tr("the other operand is constant"), m.add)
        if not same_shape(m.conv.output, m.other):
            return skip(tr("the operands differ in shape, or it is not known"), m.add)
        rival = m.other.producer
        if rival is not None and rival.op == "Conv" and _takes(graph, rival, m):
            return skip(tr("the other convolution runs last and takes this one's output"), m.conv)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        inputs = [m.x, m.w, m.bound.get("b"), m.other]
        attrs = {**m.conv.attrs, **m.add.attrs}  # an activation behind the addition comes along
        return graph.replace([m.conv, m.add], "Conv", inputs, attrs, name=m.conv.name)


def _takes(graph: Graph, rival: Node, m: Match) -> bool:
    """Could the convolution behind the other operand be fused, and does it run later?"""
    free = rival.input(3) is None and not rival.attrs.get("activation")
    alone = graph.sole_reader(rival.output) is m.add
    return free and alone and graph.position(rival) > graph.position(m.conv)
