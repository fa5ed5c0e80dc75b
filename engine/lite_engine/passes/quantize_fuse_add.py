"""QLinearConv → QLinearAdd of a tensor of the same shape → QLinearConv with that `residual`.

The convolution keeps the rounding before the addition: its y_scale and y_zero_point become
sum_scale and sum_zero_point. The sum of the two is scaled by products where QLinearAdd divides:
ties may fall to the other side.
"""

from __future__ import annotations

from lite_messages import tr

from ..ir import Graph, Node
from ._core import C, Match, P, Skip, no_match, rule, skip
from ._rewrite import same_shape

_CONV = P("QLinearConv", more=True, name="conv")
_SUM = (_CONV, C("scale"), C("zero"))
_OTHER = ("r", C("r_scale"), C("r_zero"))
_Y = (C("y_scale"), C("y_zero"))


@rule("quantize-fuse-add")
class quantize_fuse_add:
    """Of two convolutions that meet, the one that runs last takes the other's output."""

    patterns = [
        P("QLinearAdd", *_SUM, *_OTHER, *_Y, name="add"),
        P("QLinearAdd", *_OTHER, *_SUM, *_Y, name="add"),
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if not _takes_residual(m.conv):
            return skip(tr("the convolution has groups or a residual already"), m.conv)
        if m.add.attrs.get("rounding"):
            return skip(
                tr("LiteRT adds in fixed point, behind the convolution's own rounding"), m.add
            )
        if m.r.is_const:
            return skip(tr("the other operand is constant"), m.add)
        if not same_shape(m.conv.output, m.r):
            return skip(tr("the operands differ in shape, or it is not known"), m.add)
        made = m.conv.inputs[6:8]
        if any(a is None or a.const is None or a.const.ravel() != b.const.ravel()
               for a, b in zip(made, (m.scale, m.zero))):  # fmt: skip
            return skip(tr("the addition reads the sums with another scale or zero point"), m.add)
        rival = m.r.producer
        if rival is not None and rival.op == "QLinearConv" and _takes_residual(rival):
            later = graph.position(rival) > graph.position(m.conv)
            if later and graph.sole_reader(rival.output) is m.add:
                return no_match(m.conv)  # it matches itself
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        inputs = [*m.conv.inputs[:6], m.y_scale, m.y_zero, m.conv.input(8)]
        inputs += [m.r, m.r_scale, m.r_zero, m.scale, m.zero]
        return graph.replace([m.conv, m.add], "QLinearConv", inputs, m.conv.attrs, name=m.conv.name)


def _takes_residual(conv: Node) -> bool:
    """Kernels of depthwise and grouped convolutions add nothing."""
    return conv.attrs.get("group", 1) == 1 and conv.input(9) is None
