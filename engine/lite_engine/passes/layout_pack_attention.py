"""Attention that a model says itself reads its operands where they lie.

Transpose → Attention → Transpose      Attention over (batch, length, heads · size)
a mask that hides later keys           is_causal
"""

from __future__ import annotations

import math

import numpy as np

from ..ir import Graph, Journal, Node, Value
from ._attention_operands import (
    Operand,
    attention_of,
    batches_fit,
    is_causal,
    packed_output,
    shared_by_groups,
    trace,
)
from ._core import graph_pass


@graph_pass("layout-pack-attention", local=True)
def layout_pack_attention(graph: Graph, journal: Journal) -> int:
    """Attention without the transposes around it, without a mask that an attribute stands for, and
    with keys that a group of heads shares."""
    count = 0
    for node in [n for n in graph.nodes if n.op == "Attention"]:
        if len(node.outputs) > 1 or any(node.input(i) is not None for i in (4, 5, 6)):
            continue
        attrs, mask = dict(node.attrs), node.input(3)
        if mask is not None and _says_causal(mask):
            attrs["is_causal"], mask = 1, None
        operands = _operands(graph, node)
        if operands is None and mask is node.input(3):
            continue
        name = node.name
        if operands is None:
            made = graph.replace([node], "Attention", [*node.inputs[:3], mask], attrs, name=name)
        else:
            first, keys, values = operands
            own = attrs.get("scale") or 1 / math.sqrt(node.input(0).shape[-1])  # type: ignore[union-attr, index, arg-type]
            attrs["scale"] = own * first.scale * keys.scale
            sources = [s for x in operands for n in x.nodes for s in n.sources]
            node.sources = tuple(dict.fromkeys([*sources, *node.sources]))
            made = attention_of(graph, node, [first, keys, values], mask, attrs)
        journal.rewrote("layout-pack-attention", (name,), (made.name,))
        count += 1
    if count:
        graph.remove_unread()
    return count


def _says_causal(mask: Value) -> bool:
    if mask.const is None or mask.const.ndim < 2:
        return False
    if mask.const.dtype == bool:
        return is_causal(np.where(mask.const, np.float32(0), np.float32(-np.inf)))
    return is_causal(mask.const)


def _operands(graph: Graph, node: Node) -> list[Operand] | None:
    """Queries, keys and values where they lie, if nothing needs to be turned around then or heads
    share keys; else None."""
    given = node.inputs[:3]
    if any(v is None or v.shape is None or len(v.shape) != 4 for v in given):
        return None
    queries, keys, values = (trace(v) for v in given if v is not None)
    shared = shared_by_groups(keys, values)
    grouped = shared != (keys, values)
    operands = [queries, *shared]
    if not batches_fit(*operands) or shared[1].scale != 1.0:
        return None
    size = given[0].shape[-1] if given[0] is not None and given[0].shape else None
    packs = all(x.packable() for x in operands) and packed_output(graph, node) is not None
    return operands if isinstance(size, int) and size > 0 and (packs or grouped) else None
