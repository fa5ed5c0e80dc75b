"""Layers against the NumPy reference, each on the values that its own run gave it."""

from __future__ import annotations

from ..backends.reference import evaluate
from ..ir import Node, outer_reads
from .alignment import Pair
from .comparison import LayerDifference
from .difference import Difference, difference, other_shape
from .judge import within
from .matched import Matched, whole_run
from .side import Side


def off(on: Matched, node: Node, out: str, *, of_b: bool = False) -> Difference:
    """How far a layer's output of this name in the whole run of A (or B) is from what the reference
    makes of the inputs that it had there, and of what its branches read from outside."""
    reads = outer_reads(node)
    at = [v.name for v in node.outputs].index(out)
    names = [*(v.name for v in reads if v.const is None), out]
    values = whole_run(on, names, of_b=of_b)
    held = {id(v): values[v.name] if v.const is None else v.const for v in reads}
    mine = evaluate(node, [None if v is None else held[id(v)] for v in node.inputs], held)[at]
    if mine.shape != values[out].shape:
        return other_shape(mine, values[out])
    return difference(mine, values[out])


def follows(on: Matched, pair: Pair, row: LayerDifference) -> bool:
    """Whether a layer with branches, which cannot run alone, differs only because its inputs do: on
    both sides it is right on those that it had."""
    if not (isinstance(on.a, Side) and isinstance(on.b, Side)) or pair.node_b is None:
        return False
    if not (pair.node.has_subgraph and pair.node_b.has_subgraph):
        return False
    both = (off(on, pair.node, pair.name_a), off(on, pair.node_b, pair.name_b, of_b=True))
    return all(within(each, row.tolerance, row.floor) for each in both)
