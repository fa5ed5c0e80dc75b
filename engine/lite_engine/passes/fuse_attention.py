"""Matrix products around a softmax become one attention.

softmax(q·kᵀ·scale + bias)·v                Attention
softmax(c·tanh(q·kᵀ·scale / c) + bias)·v    Attention whose scores have a soft cap c
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Dim, Graph, Journal, Node, Value
from ..ops import find_op
from ._attention_operands import (
    HIDES,
    Operand,
    attention_of,
    batches_fit,
    shared_by_groups,
    trace,
)
from ._attention_scores import Refusal, Scores, mask_of
from ._core import graph_pass
from ._rewrite import constant_like, static_shape
from .merge_views import RESHAPES
from .recompose_activations import number

#: Attention over channels (El-Nouby et al., XCiT, 2021) stays products: queries so wide, and so
#: many times as wide as they have scores, gain nothing, and kernels of attention are made for
#: narrow ones.
_WIDE, _FEW = 128, 4


@graph_pass("fuse-attention", local=True)
def fuse_attention(graph: Graph, journal: Journal) -> int:
    """softmax(q·kᵀ·scale + bias)·v in its exporters' spellings."""
    count = 0
    for node in list(graph.nodes):
        softmax = _softmax_before(graph, node)
        if softmax is None:
            continue
        try:
            made = _fuse(graph, node, softmax)
        except Refusal as refusal:
            names = (refusal.where.name, softmax.name, node.name)
            journal.refused("fuse-attention", tuple(dict.fromkeys(names)), refusal.reason)
            continue
        journal.rewrote("fuse-attention", (softmax.name, node.name), (made.name,))
        count += 1
    if count:
        graph.remove_unread()
    return count


def _softmax_before(graph: Graph, node: Node) -> Node | None:
    """The Softmax along the last axis that a product of two computed matrices reads."""
    if node.op != "MatMul" or not node.inputs or node.attrs.get("activation"):
        return None
    weights, values = node.input(0), node.input(1)
    if weights is None or values is None or values.is_const or weights.producer is None:
        return None
    softmax = _without_guard(_without_view(weights.producer))
    rank = len(softmax.output.shape or ())
    last = softmax.attrs.get("axis", -1) in (-1, rank - 1)
    return softmax if softmax.op == "Softmax" and rank and last else None


def _without_view(node: Node) -> Node:
    """What makes the matrices of a Reshape that leaves them as they are."""
    value = node.input(0)
    if node.op not in RESHAPES or value is None or value.producer is None:
        return node
    before, after = static_shape(value), static_shape(node.output)
    same = before is not None and after is not None and before[-2:] == after[-2:]
    return value.producer if same and len(after or ()) > 1 else node


def _without_guard(node: Node) -> Node:
    """p of Where(IsNaN(p), 0, p), by which torch gives rows that see nothing a sum of 0, as
    Attention does."""
    if node.op != "Where":
        return node
    test, zero, kept = node.inputs
    if test is None or kept is None or number(zero) != 0 or test.producer is None:
        return node
    if test.producer.op != "IsNaN" or test.producer.input(0) is not kept or not kept.producer:
        return node
    return kept.producer


def _fuse(graph: Graph, root: Node, softmax: Node) -> Node:
    inner = {id(softmax), id(root), id(root.input(0).producer)}  # type: ignore[union-attr]
    for reader in (*softmax.output.readers, *root.input(0).readers):  # type: ignore[union-attr]
        if id(reader) not in inner and reader.op != "IsNaN":
            raise Refusal(tr("{node} output has another reader", node="Softmax"), softmax)
    if graph.is_output(softmax.output) or graph.is_output(root.input(0)):  # type: ignore[arg-type]
        raise Refusal(tr("{name} is an output of the model", name=softmax.output.name), softmax)
    scores, product = _walk(graph, softmax)
    left, right, values = product.input(0), product.input(1), root.input(1)
    assert left is not None and right is not None and values is not None
    shape = product.output.shape
    rank = len(shape or ())
    if rank < 3 or any(len(v.shape or ()) != rank for v in (left, right, values)):
        raise Refusal(tr("its products do not have rank 3 or more, or not all the same"), product)
    if 0 in (shape or ()):
        raise Refusal(tr("there are no scores"), product)
    queries = trace(left)
    if _over_channels(queries, (shape or (None,))[-1], (left.shape or (None,))[-1]):
        raise Refusal(tr("there are few scores for wide queries"), product)
    if rank > 4 and any(static_shape(v) is None for v in (left, right, values)):
        raise Refusal(tr("products of rank {rank} need fixed sizes", rank=rank), product)
    keys, value = shared_by_groups(trace(right, swapped=True), trace(values))
    if not batches_fit(queries, keys, value):
        raise Refusal(tr("heads of its operands do not fit each other"), product)
    if value.scale != 1.0:
        raise Refusal(tr("the values are scaled"), root)
    scale = scores.scale * queries.scale * keys.scale * (scores.cap or 1.0)
    factor = scores.head_scale
    if factor is not None:
        assert isinstance(queries.heads, int)  # batches_fit
        if queries.heads % len(factor):
            raise Refusal(tr("the scores are scaled by more than one number"), product)
        factor = np.tile(factor, (queries.heads // len(factor), 1, 1))  # batches beside heads
    mask, causal = mask_of(graph, scores, product, root)
    if factor is not None:
        queries = queries.times(graph, factor, root)
    parts = (*queries.nodes, *keys.nodes, *value.nodes, *reversed(scores.nodes), softmax)
    guards = (*(r for r in softmax.output.readers if r is not root), root.input(0).producer)  # type: ignore[union-attr]
    sources = [s for n in (*parts, *guards, root) if n is not None for s in n.sources]
    root.sources = tuple(dict.fromkeys(sources))
    attrs: dict[str, object] = {"scale": scale, **({"is_causal": 1} if causal else {})}
    attrs |= {"softcap": scores.cap} if scores.cap else {}
    return attention_of(graph, root, [queries, keys, value], mask, attrs)


def _over_channels(queries: Operand, seen: Dim, size: Dim) -> bool:
    """Whether wide queries have few scores. Heads that a product has side by side are those of few
    positions instead."""
    if not (isinstance(seen, int) and isinstance(size, int)) or queries.packable():
        return False
    return size > _WIDE and seen * _FEW <= size


def _walk(graph: Graph, softmax: Node) -> tuple[Scores, Node]:
    """From the softmax up to the product. Raises Refusal."""
    found, value = Scores(), softmax.input(0)
    reader = softmax
    while True:
        assert value is not None
        node = value.producer
        if node is None or graph.sole_reader(value) is not reader:
            raise Refusal(
                tr("the scores have another reader, or do not come from a product"), reader
            )
        found.nodes.append(node)
        if node.attrs.get("activation"):
            raise Refusal(tr("{node} carries an activation", node=node.op), node)
        if node.op == "MatMul":
            return found, node
        if (begin := _on_maps(graph, found, node)) is not None:
            node = begin
            value, reader = begin.input(0), begin
        else:
            value, reader = _step(graph, found, node), node


def _on_maps(graph: Graph, found: Scores, end: Node) -> Node | None:
    """Takes what lies between two Reshapes, of which the second, `end`, gives the scores their
    shape back: what is added where rows and keys are the pixels of maps, as relative positions of
    rows and of columns are (Li et al., MViTv2: Improved Multiscale Vision Transformers, 2022). The
    first Reshape; None where something else lies there."""
    value, reader = end.input(0), end
    if end.op not in RESHAPES or value is None or found.scale != 1.0 or found.cap:
        return None
    shape, split = static_shape(end.output), static_shape(value)
    terms: list[Value] = []
    nodes: list[Node] = []
    if shape is None or split is None:
        return None
    while value is not None and graph.sole_reader(value) is reader and value.producer is not None:
        reader = value.producer
        nodes.append(reader)
        if reader.op in RESHAPES:
            scores, sizes = reader.input(0), [static_shape(v) for v in terms]
            if scores is None or static_shape(scores) != shape or found.head_scale is not None:
                return None
            if np.broadcast_shapes(*(n for n in sizes if n is not None)) != split or None in sizes:
                return None
            found.nodes += nodes
            found.maps.append(terms)
            return reader
        if reader.op != "Add" or reader.attrs.get("activation"):
            return None
        sums = [v for v in reader.inputs if v is not None and is_product(graph, v)]
        if len(sums) != 1 or static_shape(sums[0]) != split:
            return None
        terms += [v for v in reader.inputs if v is not None and v is not sums[0]]
        value = sums[0]
    return None


def _step(graph: Graph, found: Scores, node: Node) -> Value | None:
    """Takes one node into `found`; the scores that it reads."""
    if node.op in ("Mul", "Div"):
        return _scaled(found, node)
    if node.op == "Tanh" and found.scale > 0 and found.head_scale is None and not found.cap:
        found.cap, found.scale = found.scale, 1.0
        return node.input(0)
    if found.cap and node.op not in RESHAPES:
        raise Refusal(tr("{op} stands between the product and the softmax", op=node.op), node)
    if node.op == "Add" and found.head_scale is None:
        for index, learned in ((0, False), (1, False), (0, True), (1, True)):
            value = node.input(index)
            bias = node.input(1 - index)
            if value is not None and bias is not None and is_product(graph, value, learned):
                found.biases.append((bias, node.output, found.scale))
                return value
    if node.op == "Where" and found.head_scale is None:
        return _hidden(graph, found, node)
    if node.op in RESHAPES:
        value = node.input(0)
        ends = [static_shape(v) for v in (value, node.output) if v is not None]
        if None not in ends and ends[0][-2:] == ends[1][-2:]:  # type: ignore[index]
            return value
    raise Refusal(tr("{op} stands between the product and the softmax", op=node.op), node)


def _scaled(found: Scores, node: Node) -> Value | None:
    """Takes a multiplication by one number, or by a constant one for each head."""
    for index in (0, 1) if node.op == "Mul" else (1,):
        value, given = node.input(1 - index), node.input(index)
        factor = number(given)
        if factor and found.head_scale is None:
            found.scale *= factor if node.op == "Mul" else 1 / factor
            return value
        array = None if given is None else given.const
        shape = None if value is None else value.shape
        heads = shape[-3] if shape and len(shape) > 2 else None  # a constant may have a lower rank
        per_head = array is not None and array.size == heads and array.shape[-3:] == (heads, 1, 1)
        if per_head and node.op == "Mul" and found.head_scale is None:
            found.head_scale = array.reshape(-1, 1, 1)  # type: ignore[union-attr]
            return value
    raise Refusal(tr("the scores are scaled by more than one number"), node)


def _hidden(graph: Graph, found: Scores, node: Node) -> Value | None:
    """Where(mask, scores, −∞) is the addition of Where(mask, 0, −∞)."""
    test, one, other = node.inputs
    for value, hides, swapped in ((one, other, False), (other, one, True)):
        low = number(hides)
        if low is None or low > HIDES or value is None or test is None:
            continue
        if test.const is not None and is_product(graph, value, learned=True):
            parts = (
                (np.float32(low), np.float32(0)) if swapped else (np.float32(0), np.float32(low))
            )
            bias = np.where(test.const, *parts).astype(np.float32)
            made = constant_like(graph, bias, test, "bias")
            found.biases.append((made, node.output, found.scale))
            return value
    raise Refusal(tr("{op} stands between the product and the softmax", op=node.op), node)


def is_product(graph: Graph, value: Value, learned: bool = False) -> bool:
    """Is it the scores: does a product of computed matrices stand at its beginning? With `learned`
    queries may be constants, too, as in DETR (Carion et al., 2020)."""
    for _ in range(8):
        node = value.producer
        if node is None or graph.sole_reader(value) is None:
            return False
        if node.op == "MatMul":
            first, second = node.input(0), node.input(1)
            left = first is not None and (learned or not first.is_const)
            return left and second is not None and not second.is_const
        op = find_op(node.op)
        if op is None or op.layout not in ("elementwise", "view"):
            return False
        computed = [v for v in node.inputs if v is not None and v.producer is not None]
        if len(computed) > 1:
            return any(is_product(graph, v, learned) for v in computed)
        if not computed:
            return False
        value = computed[0]
    return False
