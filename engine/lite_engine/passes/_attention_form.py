"""Attention between DequantizeLinear and QuantizeLinear becomes QLinearAttention."""

from __future__ import annotations

from lite_messages import tr

from ..ir import Graph, Node
from ..ops.attention import why_not_integer
from ..ops.quant_attention import qlinear_attention
from ._quantised import Quantized, is_bytes


def attention_form(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    """The node in place of Attention → Q, or why there is none."""
    reason = why_not_integer(node)
    if reason:
        return reason
    operands = [x for x in inputs[:3] if is_bytes(x)]
    if len(operands) < 3 or not is_bytes(y):
        return tr("an operand is not quantized to 8 bits")
    given = [part for x in operands for part in (x.value, x.scale, x.zero)]
    mask = node.input(3)
    attrs = {k: v for k, v in node.attrs.items() if k in qlinear_attention.attrs}
    every = [*given, y.scale, y.zero, *([mask] if mask is not None else [])]
    return [graph.replace([node, q], "QLinearAttention", every, attrs, name=node.name)]
