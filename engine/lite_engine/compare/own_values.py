"""Layers against the NumPy reference, each on the values that its own run gave it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..backends.reference import evaluate
from ..ir import Node, outer_reads
from ..model_file.precision import is_quantised
from .alignment import Pair
from .comparison import LayerDifference
from .difference import Difference, difference, other_shape
from .judge import within
from .matched import Arrays, Matched, given_by_a, real, whole_run
from .side import Side, as_read


def off(on: Matched, node: Node, out: str, *, of_b: bool = False) -> Difference:
    """How far a layer's output of this name in the whole run of A (or B) is from what the reference
    makes of the inputs that it had there, and of what its branches read from outside."""
    reads = outer_reads(node)
    names = [*(v.name for v in reads if v.const is None), out]
    values = whole_run(on, names, of_b=of_b)
    return _apart(_made(node, out, values), values[out])


def on_values_of_a(on: Matched, pair: Pair, va: Arrays) -> Difference | None:
    """How far B's layer with branches is from A's value on what A's layer read: the reference
    computes it, as no run of a layer alone has what branches capture. None where it reads a value
    that A does not have, or where the branches of one side alone hold integers: how much of the
    difference is rounding there is not known."""
    assert pair.node_b is not None
    if _in_integers(pair.node) != _in_integers(pair.node_b):
        return None
    reads = {v.name: v for v in outer_reads(pair.node_b) if v.const is None}
    if not reads.keys() <= on.known.keys():
        return None
    inputs = {name: on.known[name] for name in reads}
    given = given_by_a(on, inputs, whole_run(on, list(inputs.values())))
    given = {name: as_read(array, reads[name]) for name, array in given.items()}
    made = _made(pair.node_b, pair.name_b, given)
    return _apart(*real(on, pair, va[pair.name_a], made))


def _made(node: Node, out: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """What the reference makes of these values, of a layer's output of this name."""
    reads = outer_reads(node)
    at = [v.name for v in node.outputs].index(out)
    held = {id(v): values[v.name] if v.const is None else v.const for v in reads}
    return evaluate(node, [None if v is None else held[id(v)] for v in node.inputs], held)[at]


def _apart(x: np.ndarray, y: np.ndarray) -> Difference:
    return difference(x, y) if x.shape == y.shape else other_shape(x, y)


def _in_integers(node: Node) -> bool:
    return any(is_quantised(graph) for _, graph in node.subgraphs())


def follows(on: Matched, pair: Pair, row: LayerDifference) -> bool:
    """Whether a layer with branches, which cannot run alone, differs only because its inputs do: on
    both sides it is right on those that it had."""
    if not (isinstance(on.a, Side) and isinstance(on.b, Side)) or pair.node_b is None:
        return False
    if not (pair.node.has_subgraph and pair.node_b.has_subgraph):
        return False
    both = (off(on, pair.node, pair.name_a), off(on, pair.node_b, pair.name_b, of_b=True))
    return all(within(each, row.tolerance, row.floor) for each in both)
