"""Which nodes compute in integers.

Heavy operators (a constant weight times an activation, and attention, whose products are of
computed tensors) are worth it by themselves. Light ones join when their input is in integers
already and a reader wants integers as well; views follow their input. So no conversion is made for
the sake of a cheap node.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..ir import DType, Graph, Node, Value
from ..ops import find_op, get_op, op_names
from ..ops.attention import why_not_integer

WEIGHTED = op_names(lambda op: op.quantized == "weights")
JOINING = op_names(lambda op: op.quantized == "joins")
VIEWS = op_names(lambda op: op.quantized == "follows")
#: Products of computed tensors: their first inputs are quantized, others (a mask) are not.
ATTENTION = op_names(lambda op: op.quantized == "operands")
OPERANDS = 3
#: Where most of the time is: what a search for sensitive layers tries in floats.
HEAVY = (*WEIGHTED, *ATTENTION)


def weight_axis(node: Node) -> int:
    """Axis of the weight that runs over the output channels."""
    if node.op == "Gemm":
        return 0 if node.attrs.get("transB", 0) else 1
    weight = node.inputs[1]
    assert weight is not None and weight.shape is not None
    return get_op(node.op).weights[1] % len(weight.shape)


def why_float(node: Node, keep: frozenset[str] = frozenset()) -> str:
    """Why a node cannot compute in integers, "" when it can."""
    if node.name in keep:
        return tr("kept in float on request")
    x = node.inputs[0] if node.inputs else None
    if x is None or x.dtype is not DType.F32:
        return tr("its input is not f32")
    if node.op in WEIGHTED:
        return _why_not_weighted(node)
    if node.op in ATTENTION:
        return why_not_integer(node)
    if node.op in VIEWS:
        return "" if len(node.outputs) == 1 or node.op == "Split" else tr("it has several outputs")
    if node.op in JOINING:
        if node.op in ("Add", "Mul") and any(_shapeless(v) for v in node.inputs):
            return tr("a shape is not known")
        return ""
    if node.op == "Resize":
        return "" if node.attrs.get("mode", "nearest") == "nearest" else tr("it interpolates")
    return tr("{node} has no integer form", node=node.op)


def in_integers(graph: Graph) -> bool:
    """Does the graph compute in integers, with no convolution or product left that could?"""
    quantised = any(n.op.startswith(("QLinear", "QuantizeLinear")) for n in graph.nodes)
    return quantised and all(why_float(n) for n in graph.nodes if n.op in WEIGHTED)


def _why_not_weighted(node: Node) -> str:
    weight, bias = node.inputs[1], node.input(2)
    if weight is None or weight.const is None:
        return tr("its weight is not constant")
    if bias is not None and (bias.const is None or bias.const.size != _channels(node, weight)):
        return tr("its bias is not one constant per output channel")
    if node.op == "MatMul" and weight.const.ndim != 2:
        return tr("its weight is a stack of matrices")
    if node.op == "Gemm":
        plain = node.attrs.get("alpha", 1.0) == 1 and node.attrs.get("beta", 1.0) == 1
        return (
            "" if plain and not node.attrs.get("transA", 0) else tr("it has alpha, beta or transA")
        )
    return ""


def _channels(node: Node, weight: Value) -> int:
    assert weight.const is not None
    groups = node.attrs.get("group", 1) if node.op == "ConvTranspose" else 1
    return int(weight.const.shape[weight_axis(node)]) * groups


def _shapeless(value: Value | None) -> bool:
    return value is None or value.shape is None


def named_layers(graph: Graph, names: Iterable[str]) -> frozenset[str]:
    """Nodes that a person names: as they are called here, or before `prepare` split them; `A..B`
    are those from A to B. Raises UsageError for a layer that is not there."""
    order = [n.name for n in graph.nodes]
    found: set[str] = set()
    for text in names:
        first, _, last = text.partition("..")
        at = [_places(order, end) for end in (first, last or first)]
        if at[0][0] > at[1][-1]:
            raise UsageError(
                tr(
                    "no layers are from {first} to {last}: {last} comes first",
                    first=first,
                    last=last,
                ),
                fix=tr("write {last}..{first}", first=first, last=last),
            )
        found.update(order[at[0][0] : at[1][-1] + 1] if last else (order[i] for i in at[0]))
    return frozenset(found)


def _places(order: list[str], name: str) -> list[int]:
    """Where the parts of a layer stand."""
    found = [i for i, own in enumerate(order) if name in (own, own.rpartition(".")[0])]
    if not found:
        near = difflib.get_close_matches(name, order, n=1)
        hint = (
            tr("did you mean {near}?", near=near[0])
            if near
            else tr("`lite info --layers` lists them")
        )
        raise UsageError(tr("there is no layer {name!r}", name=name), fix=hint)
    return found


def infinite_values(graph: Graph) -> set[int]:
    """Ids of the values in which a mask of the model puts −∞ (or ∞) for a Softmax behind it: those
    are right, and have no range. A bound of a Clip, Min or Max does not reach its result."""
    found: set[int] = set()
    for node in graph.nodes:
        op = find_op(node.op)
        moves = op is not None and op.integer_form in ("view", "keep")
        at = (op and op.carries) or slice(1 if moves else 0)
        carried = [v for v in node.inputs[at] if v is not None]
        filled = node.op == "ConstantOfShape" and np.isinf(node.attrs.get("value", 0)).any()
        if filled or any(id(v) in found or _holds_infinity(v) for v in carried):
            found.update(id(v) for v in node.outputs)
    return found


def _holds_infinity(value: Value) -> bool:
    x = value.const
    if x is None or x.dtype.kind != "f" or not x.size:
        return False
    return bool(np.isinf(x.min()) or np.isinf(x.max()))  # without a table as large as x


def integer_nodes(
    graph: Graph, keep: frozenset[str] = frozenset()
) -> tuple[set[str], dict[str, str]]:
    """(names of the nodes that compute in integers, name → why the others do not)."""
    why = {n.name: why_float(n, keep) for n in graph.nodes}
    endless = infinite_values(graph)
    for node in graph.nodes if endless else ():
        read = node.inputs[:OPERANDS] if node.op in ATTENTION else node.inputs
        if not why[node.name] and any(id(v) in endless for v in (*read, *node.outputs)):
            why[node.name] = tr("it is masked by infinities, which no integer stands for")
    able = {name for name, reason in why.items() if not reason}
    chosen = {n.name for n in graph.nodes if n.name in able and n.op in HEAVY}
    for node in graph.nodes:  # forward: an input in integers
        if node.name in able and node.op not in HEAVY and _fed(node, chosen):
            chosen.add(node.name)
    for node in reversed(graph.nodes):  # backward: a reader that wants integers
        if node.name in chosen and node.op not in HEAVY and not _wanted(graph, node, chosen):
            chosen.discard(node.name)
    for node in graph.nodes:
        if node.name in able and node.name not in chosen:
            why[node.name] = tr("a conversion would cost more than it saves")
    return chosen, {k: v for k, v in why.items() if k not in chosen}


def _fed(node: Node, chosen: set[str]) -> bool:
    data = [v for v in node.inputs if v is not None and not v.is_const and _is_float(v)]
    made = [v for v in data if v.producer is not None and v.producer.name in chosen]
    if get_op(node.op).commutative or node.op == "Concat":
        return bool(made)
    return bool(made) and made[0] is data[0]


def _is_float(value: Value) -> bool:
    return value.dtype is None or value.dtype.is_float


def _wanted(graph: Graph, node: Node, chosen: set[str]) -> bool:
    return any(r.name in chosen for v in node.outputs for r in v.readers)


def conversions(graph: Graph, chosen: Mapping[str, object] | set[str]) -> list[tuple[str, str]]:
    """(value, "quantize" | "dequantize") for every crossing between floats and integers."""
    out = []
    for value in graph.values():
        if value.is_const or not _is_float(value):
            continue
        made = value.producer is not None and value.producer.name in chosen
        readers = {r.name in chosen for r in value.readers}
        if made and (False in readers or graph.is_output(value)):
            out.append((value.name, "dequantize"))
        if not made and True in readers:
            out.append((value.name, "quantize"))
    return out
