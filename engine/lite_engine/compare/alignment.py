"""Which value of one side is which value of the other, where names and fusions differ.

Two values are the same when they have the same name; when they have it but for what quantisation
adds; or when they are what the same node of the original model left behind on both sides, with
the same shape. Where nothing is the same by name (one network in two formats), they are when layers
with the same weights make them. Values whose channels quantisation has scaled are compared in the
other side's numbers (`scaled`).
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..ir import Graph, Node, Value
from ..passes.merge_views import RESHAPES
from ..quantize.select import WEIGHTED
from .scaled import in_numbers_of, is_scaled, plain_value, unscaled_name
from .side import Valued

_NODE_SUFFIX = re.compile(r"(_quant(ized)?|_QuantizeLinear|_DequantizeLinear|:\d+)$")
#: Of the largest weight: batch norms folded in another order or precision.
SAME_WEIGHTS = 1e-4


@dataclass(frozen=True, eq=False)
class Pair:
    """One value that both sides have. `node` is the layer of the side that has a graph (B's when
    both have one, so that fusions are B's own); `value_a`, `value_b` are None for a framework.
    `weights_apart` is the relative L2 distance of constants that another order of folding made."""

    name_a: str
    name_b: str
    node_a: Node | None
    node_b: Node | None
    value_a: Value | None
    value_b: Value | None
    weights_apart: float = 0.0

    @property
    def node(self) -> Node:
        node = self.node_a or self.node_b
        assert node is not None
        return node


def align(a: Valued, b: Valued) -> list[Pair]:
    """Pairs in the order of A's graph (B's when A is another framework).

    Raises UsageError when the sides have nothing in common.
    """
    if a.graph is None and b.graph is None:
        raise UsageError(tr("one side of a comparison must run on this engine"))
    if a.graph and b.graph:
        found = _both(a.graph, b.graph) or _of_same_weights(a.graph, b.graph)
    else:
        found = _foreign(a, b)
    if not found:
        raise UsageError(
            tr(
                "{a} and {b} have no layer in common: no value has the same name, no "
                "layer comes from the same node of the original model, and no two "
                "have the same weights",
                a=a.label,
                b=b.label,
            )
        )
    return found


def _foreign(a: Valued, b: Valued) -> list[Pair]:
    """Another framework knows values by the names of the original file."""
    graph = a.graph or b.graph
    names = set((b if a.graph else a).value_names())
    out = []
    for node in graph.nodes if graph else ():
        for value in node.outputs:
            name = _foreign_name(node, value, names)
            if name is None:
                continue
            if a.graph:
                out.append(Pair(value.name, name, node, None, value, None))
            else:
                out.append(Pair(name, value.name, None, node, None, value))
    return out


def _foreign_name(node: Node, value: Value, names: set[str]) -> str | None:
    """By the value's own name, or by the original node's (TFLite's nodes are named by what they
    make) when this is the last layer that came from it."""
    candidates = [value.name, plain_value(value.name), _left_by(node)]
    return next((n for n in candidates if n and n in names), None)


def _left_by(node: Node) -> str:
    """The original node whose value this layer leaves behind: the last of its sources that is not
    (also) part of a layer that reads it. Empty when there is none."""
    if len(node.outputs) != 1:
        return ""
    following = {s for reader in node.output.readers for s in reader.sources}
    return next((s for s in reversed(node.sources) if s not in following), "")


def _both(a: Graph, b: Graph) -> list[Pair]:
    scaled_a, scaled_b = in_numbers_of(b, a), in_numbers_of(a, b)
    by_name = {value.name: (node, value) for node, value in _values(b, scaled_b)}
    by_plain = {unscaled_name(name): x for name, x in by_name.items()}
    last_a, last_b = _last(a), _last(b)
    out = []
    for node, value in _values(a, scaled_a):
        other = by_name.get(value.name) or by_plain.get(unscaled_name(value.name))
        if other is None or not _same_shape(value, other[1]):
            key = plain_node(_left_by(node))
            if key in last_a and last_a[key][1] is value:
                other = last_b.get(key)
            if other is not None and node.op in RESHAPES and _has_its_own(value, other[1]):
                continue
        if other is not None and _same_shape(value, other[1]):
            other = _as_integers(*other) if node.op != "DequantizeLinear" else other
            name, name_b = value.name, other[1].name
            mine = value if name_b in scaled_b else scaled_a.get(name, value)
            its = scaled_b.get(name_b, other[1])
            out.append(Pair(name, name_b, node, other[0], mine, its))
    return out


def _has_its_own(view: Value, value: Value) -> bool:
    """Does a value of B have its own in A, which this one only reshapes? B has dropped the view,
    and what its layer has lost is that layer's row."""
    maker = view.producer
    while maker is not None and maker.op in RESHAPES and maker.inputs[0] is not None:
        if plain_value(maker.inputs[0].name) == plain_value(value.name):
            return True
        maker = maker.inputs[0].producer
    return False


def _of_same_weights(a: Graph, b: Graph) -> list[Pair]:
    """Layers with one operator, activation and shape, whose float weights differ by no more than
    another order of folding makes; the first ones that are left, in both graphs' order."""
    left = [(n, w) for n in b.nodes if (w := _weights(n)) is not None]
    out = []
    for node in a.nodes:
        mine = _weights(node)
        if mine is None:
            continue
        same = (x for x in left if _same_form(node, x[0]) and _same_weights(mine, x[1]))
        found = next(same, None)
        if found is not None:
            left = [x for x in left if x[0] is not found[0]]
            one, two = node.outputs[0], found[0].outputs[0]
            apart = _constants_apart(node, found[0])
            out.append(Pair(one.name, two.name, node, found[0], one, two, apart))
    return out


def _constants_apart(a: Node, b: Node) -> float:
    """The largest relative L2 distance of two layers' float weights and biases."""
    arrays = [(_weights(a), _weights(b))]
    for one, two in zip(a.inputs[2:], b.inputs[2:], strict=False):
        arrays.append((one.const if one else None, two.const if two else None))
    return max(
        float(np.linalg.norm(x - y) / np.linalg.norm(x))
        if x is not None and y is not None and x.shape == y.shape and x.any()
        else 0.0
        for x, y in arrays
    )


def _same_weights(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape:
        return False
    return bool(np.abs(a - b).max(initial=0.0) <= SAME_WEIGHTS * np.abs(a).max(initial=0.0))


def _weights(node: Node) -> np.ndarray | None:
    """A layer's float weights, a Gemm's as (inputs, outputs). None where it has none."""
    value = node.inputs[1] if node.op in WEIGHTED and len(node.inputs) > 1 else None
    if value is None or value.const is None or value.const.dtype != np.float32:
        return None
    return value.const.T if node.op == "Gemm" and node.attrs.get("transB") else value.const


def _same_form(a: Node, b: Node) -> bool:
    """What is fused into the two layers makes the same value of the same numbers."""
    fused = [
        (n.op, n.attrs.get("activation"), n.attrs.get("activation_params"), len(n.inputs) > 3)
        for n in (a, b)
    ]
    return fused[0] == fused[1] and _same_shape(a.outputs[0], b.outputs[0])


def _as_integers(node: Node, value: Value) -> tuple[Node, Value]:
    """A layer's integers rather than their conversion to floats, which is no layer of the other
    side."""
    source = node.inputs[0] if node.op == "DequantizeLinear" else None
    if source is None or source.producer is None:
        return node, value
    return source.producer, source


def _last(graph: Graph) -> dict[str, tuple[Node, Value]]:
    """Original node → the last layer that came from it, and its value."""
    single = [n for n in graph.nodes if len(n.outputs) == 1 and not is_scaled(n.output)]
    found = {plain_node(_left_by(n)): (n, n.output) for n in single}
    found.pop("", None)
    return found


def _values(graph: Graph, scaled: Container[str]) -> list[tuple[Node, Value]]:
    """Values that something reads, of scaled ones those whose factors are known."""
    read = ((n, v) for n in graph.nodes for v in n.outputs if v.readers or v in graph.outputs)
    return [(n, v) for n, v in read if v.name in scaled or not is_scaled(v)]


def _same_shape(a: Value, b: Value) -> bool:
    return a.shape is None or b.shape is None or tuple(a.shape) == tuple(b.shape)


def plain_node(name: str) -> str:
    """A node's name without what exporters and quantisers add: `x:0_QuantizeLinear` → `x`, and
    the first of TFLite's `x;y`."""
    before = ""
    while before != name:
        before, name = name, _NODE_SUFFIX.sub("", name)
    return name.partition(";")[0].strip("/")


def closure(node: Node, known: Container[str]) -> list[Node]:
    """The layers that lead from known values to this one's: itself when every input is known,
    several where the other side has fused what this one has not."""
    wanted, found = [node], {id(node): node}
    while wanted:
        for value in wanted.pop().inputs:
            if value is None or value.const is not None or value.name in known:
                continue
            if value.producer is not None and id(value.producer) not in found:
                found[id(value.producer)] = value.producer
                wanted.append(value.producer)
    return list(found.values())
