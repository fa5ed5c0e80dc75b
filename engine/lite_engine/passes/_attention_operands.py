"""Queries, keys and values of an attention: where they lie before exporters turned them around, and
the node that reads them there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from ..ir import Dim, Graph, Node, Shape, Value
from ..ops._helpers import reshape_target
from ._core import infer_new
from ._rewrite import known_shape
from .merge_views import RESHAPES
from .recompose_activations import number

#: Of leaving out axes of size 1 that are looked at: a damaged file may have very many.
_MOST_WAYS = 64
#: What hides a key is added to its score; a larger number than this would leave some of it.
HIDES = -1e8


def _heads_first(perm: Sequence[int]) -> bool:
    """(…, heads, length, size) of (…, length, heads, size)."""
    rank = len(perm)
    return rank > 2 and list(perm) == [*range(rank - 3), rank - 2, rank - 3, rank - 1]


@dataclass(frozen=True)
class Operand:
    """`scale` times a matrix of rows for each of `lead` (…, heads): those of `value`, whose leading
    axes may be split otherwise, or, where `perm` is given, of `value` (in the shape `sizes`)
    transposed by it. `swapped`: rows and columns have changed places."""

    value: Value
    lead: tuple[Dim, ...]
    swapped: bool = False
    scale: float = 1.0
    perm: tuple[int, ...] | None = None
    sizes: tuple[Dim, ...] | None = None
    nodes: tuple[Node, ...] = ()  # that it stands for, besides what computes `value`

    @property
    def heads(self) -> Dim:
        return self.lead[-1]

    def plain(self, graph: Graph, before: Node) -> Value:
        """(batch, heads, length, size)"""
        value, perm = self.value, self.perm
        if perm is not None and self.sizes is not None:
            if self.sizes != known_shape(value):
                value = _reshaped(graph, before, value, self.sizes)
            value = _added(graph, before, "Transpose", [value], {"perm": list(perm)})
        if self.swapped:
            rank = len(value.shape or ())
            perm = (*range(rank - 2), rank - 1, rank - 2)
            value = _added(graph, before, "Transpose", [value], {"perm": list(perm)})
        assert value.shape is not None
        if len(self.lead) == 1 and len(value.shape) == 3:
            axes = graph.constant(np.array([0], np.int64))
            return _added(graph, before, "Unsqueeze", [value, axes])
        if len(self.lead) != 2 or value.shape[:-2] != self.lead:
            value = _reshaped(graph, before, value, self._split(value.shape))
        return value

    def _split(self, shape: Shape) -> Shape:
        """(batch, heads, length, size) of a matrix for each of some other leading axes."""
        return (None, self.heads, *shape[-2:])

    def reachable(self) -> bool:
        """Can `plain` be written down, with at most one open size that moves?"""
        shape = self.value.shape or ()
        if self.perm is not None and self.sizes is not None:
            if self.sizes != shape and reshape_target(self.sizes, shape) is None:
                return False
            shape = tuple(self.sizes[p] for p in self.perm)
        if self.swapped:
            shape = (*shape[:-2], *shape[:-3:-1])
        same = len(self.lead) == 2 and shape[:-2] == self.lead
        same = same or (len(self.lead) == 1 and len(shape) == 3)
        return same or reshape_target(self._split(shape), shape) is not None

    def packable(self) -> bool:
        """Does it come from (batch, length, heads, size), of which heads and size are numbers?"""
        if self.perm is None or self.sizes is None:
            return False
        sizes = self.sizes
        whole = self.lead in ((*(sizes[:-3] or (1,)), sizes[-2]), (sizes[-2],))
        shape = self._packed_shape()
        written = shape is not None and reshape_target(shape, self.value.shape) is not None
        return _heads_first(self.perm) and not self.swapped and whole and written

    def _packed_shape(self) -> Shape | None:
        """(batch, length, heads * size)"""
        *lead, length, heads, size = self.sizes or ()
        if not (isinstance(heads, int) and isinstance(size, int)):
            return None
        open_batch = [n for n in lead if not isinstance(n, int)]
        fixed = math.prod(n for n in lead if isinstance(n, int))
        batch = fixed if not open_batch else open_batch[0] if len(lead) == 1 else None
        return batch, length, heads * size

    def packed(self, graph: Graph, before: Node) -> Value:
        """(batch, length, heads * size)"""
        shape = self._packed_shape()
        assert shape is not None
        return _reshaped(graph, before, self.value, shape)

    def times(self, graph: Graph, factor: np.ndarray, before: Node) -> Operand:
        """Multiplied by a constant for each head, by a row for all of them where packed."""
        factor = factor.astype(np.float32)
        if self.packable() and self.sizes is not None and isinstance(size := self.sizes[-1], int):
            row = graph.constant(np.repeat(factor.ravel(), size))
            value = _added(graph, before, "Mul", [self.packed(graph, before), row])
            return replace(self, value=value)
        given = graph.constant(factor)
        value = _added(graph, before, "Mul", [self.plain(graph, before), given])
        return Operand(value, (value.shape or ())[:-2], False, self.scale, nodes=self.nodes)

    def behind(self, node: Node, **changes: Any) -> Operand:
        """The operand before `node`, which it then stands for."""
        return replace(self, nodes=(node, *self.nodes), **changes)


def trace(value: Value, *, lead: tuple[Dim, ...] | None = None, swapped: bool = False) -> Operand:
    """The operand before views, turns and multiplications by a number; `lead` where it is not the
    value's own."""
    found = best = Operand(value, lead or tuple((value.shape or ())[:-2]), swapped)
    while (further := _further(found)) is not None:
        found = further
        best = found if found.reachable() else best
    node = found.value.producer
    if node is None or node.op != "Transpose":
        return best
    sizes, perm = known_shape(node.input(0)), list(node.attrs.get("perm") or ())
    if sizes is None:
        return best
    if found.swapped:
        perm[-2:] = perm[:-3:-1]
    perm, sizes = _without_ones(perm, sizes, len(found.lead) + 2)
    if not _heads_first(perm):
        perm, sizes = _ones_in_place(perm, sizes)
    if not _heads_first(perm):
        return best
    inner = found.behind(node, value=node.input(0), swapped=False, perm=tuple(perm), sizes=sizes)
    while (less := _unscaled(inner)) is not None:
        inner = less
    return inner if inner.reachable() else best


def _without_ones(
    perm: Sequence[int], sizes: Sequence[Dim], rank: int
) -> tuple[list[int], tuple[Dim, ...]]:
    """The permutation and the shape before it without as many sizes of 1 as are beyond `rank`:
    where the batch is 1, too, those without which heads come first."""
    ones = [p for p in range(len(perm)) if sizes[p] == 1]
    found = []
    ways = combinations(ones, min(len(ones), max(0, len(perm) - rank)))
    for spare in islice(ways, _MOST_WAYS):
        kept = [p for p in range(len(perm)) if p not in spare]
        found.append(([kept.index(p) for p in perm if p in kept], tuple(sizes[p] for p in kept)))
    return next((f for f in found if _heads_first(f[0])), found[0])


def _ones_in_place(perm: Sequence[int], sizes: Sequence[Dim]) -> tuple[list[int], tuple[Dim, ...]]:
    """The permutation and the shape before it where sizes of 1 already lie as they will."""
    ones = [i for i, p in enumerate(perm) if sizes[p] == 1]
    places = [i for i in range(len(perm)) if i not in ones]
    longer = [p for p in range(len(perm)) if sizes[p] != 1]
    place_of = dict(zip(longer, places, strict=True))
    shape: list[Dim] = [1] * len(perm)
    for axis, place in place_of.items():
        shape[place] = sizes[axis]
    return [i if i in ones else place_of[p] for i, p in enumerate(perm)], tuple(shape)


def _further(found: Operand) -> Operand | None:
    """One node nearer to where the operand was computed."""
    node = found.value.producer
    if node is None or (node.op not in RESHAPES and node.op != "Transpose"):
        return _unscaled(found)
    value = node.input(0)
    sizes, inner = known_shape(found.value), known_shape(value)
    if value is None or sizes is None or inner is None or len(inner) < 3:
        return None
    if node.op != "Transpose":
        return found.behind(node, value=value) if sizes[-2:] == inner[-2:] else None
    rank = len(inner)
    if list(node.attrs.get("perm") or ()) != [*range(rank - 2), rank - 1, rank - 2]:
        return None
    return found.behind(node, value=value, swapped=not found.swapped)


def _unscaled(found: Operand) -> Operand | None:
    """x of x · number, of a shape that the number does not change."""
    node = found.value.producer
    if node is None or node.op not in ("Mul", "Div") or node.attrs.get("activation"):
        return None
    for index in (0, 1) if node.op == "Mul" else (1,):
        given, factor = node.input(1 - index), number(node.input(index))
        if factor and given is not None and given.shape == found.value.shape:
            scale = found.scale * (factor if node.op == "Mul" else 1 / factor)
            return found.behind(node, value=given, scale=scale)
    return None


def shared_by_groups(keys: Operand, values: Operand) -> tuple[Operand, Operand]:
    """Keys and values before each of their heads was repeated for a group of query heads."""
    key, value = _unrepeated(keys), _unrepeated(values)
    if key is None or value is None or key.heads != value.heads:
        return keys, values
    return key, value


def _unrepeated(operand: Operand) -> Operand | None:
    """x of Reshape(Expand(Unsqueeze(x, 2))): (batch, heads, length, size). `trace` has gone through
    the Reshape where the heads could be written down again."""
    if operand.perm is not None or len(operand.lead) != 2:
        return None
    node = operand.value.producer
    if node is not None and node.op in RESHAPES:
        operand = _further(operand) or operand
        node = operand.value.producer
    if node is None or node.op != "Expand" or node.input(0) is None:
        return None
    x = node.input(0)
    repeated, single = known_shape(operand.value), known_shape(x)
    if x is None or repeated is None or single is None or len(repeated) != 5 or len(single) != 5:
        return None
    batch, heads, group, *rest = repeated
    if not (isinstance(heads, int) and isinstance(group, int)):
        return None
    if single != (batch, heads, 1, *rest) or operand.lead != (batch, heads * group):
        return None
    base = trace(x, lead=(batch, heads), swapped=operand.swapped)
    if not base.reachable():
        return None
    nodes = (*base.nodes, node, *operand.nodes)
    return replace(base, scale=base.scale * operand.scale, nodes=nodes)


def packed_output(graph: Graph, root: Node) -> Node | None:
    """The Transpose behind the product of weights and values whose output is (batch, length, heads,
    size) in memory; None where there is none, or sizes are unknown. In front of it heads that were
    a batch may have become an axis."""
    shape, reader = known_shape(root.output), graph.sole_reader(root.output)
    if reader is not None and reader.op in RESHAPES:
        split = known_shape(reader.output)
        if shape is None or split is None or split != (1, *shape[-3:]) or len(shape) > 4:
            return None
        shape, reader = split, graph.sole_reader(reader.output)
    if shape is None or reader is None or reader.op != "Transpose":
        return None
    perm = list(reader.attrs.get("perm") or ())
    turned = shape[0] == 1 and perm == [2, 0, 1, 3]
    return reader if turned or _heads_first(perm) else None


def batches_fit(queries: Operand, keys: Operand, values: Operand) -> bool:
    """One batch for all, and as many heads of keys as of values, which divide those of queries."""
    batches = {operand.lead[:-1] for operand in (queries, keys, values)}
    heads, shared = queries.heads, keys.heads
    if len(batches) > 1 or any(None in batch for batch in batches) or shared != values.heads:
        return False
    return isinstance(heads, int) and isinstance(shared, int) and heads % shared == 0


def is_causal(bias: np.ndarray) -> bool:
    """Whether it hides exactly the keys behind each row's own number, and adds nothing to others.
    What it adds to those need not be −∞: each row sees a key, beside which they weigh nothing."""
    rows, keys = bias.shape[-2:]
    if bias.size != rows * keys or rows == 1:
        return False
    behind = np.arange(keys) > np.arange(rows)[:, None]
    return bool(((bias <= HIDES) == behind).all() and not bias[..., ~behind].any())


def attention_of(
    graph: Graph, root: Node, operands: list[Operand], mask: Value | None, attrs: dict[str, object]
) -> Node:
    """The attention in place of `root`, over packed heads where all operands have that form."""
    last = packed_output(graph, root)
    if last is not None and all(o.packable() for o in operands):
        inputs = [o.packed(graph, root) for o in operands]
        attrs = {
            **attrs, "q_num_heads": operands[0].heads, "kv_num_heads": operands[1].heads,
        }  # fmt: skip
    else:
        last, inputs = root, [o.plain(graph, root) for o in operands]
        if len(root.output.shape or ()) == 4:
            return graph.replace([root], "Attention", [*inputs, mask], attrs)
    node = graph.add("Attention", [*inputs, mask], attrs, before=root, sources=root.sources)
    infer_new([node])
    if last is root and len(root.output.shape or ()) == 3:
        axes = graph.constant(np.array([0], np.int64))
        graph.replace([root], "Squeeze", [node.output, axes])
    else:
        target = reshape_target(last.output.shape or (), node.output.shape)
        shape = graph.constant(np.array(target, np.int64))
        graph.replace([last], "Reshape", [node.output, shape])
    return node


def _reshaped(graph: Graph, before: Node, value: Value, shape: Shape) -> Value:
    target = reshape_target(shape, value.shape)
    assert target is not None
    return _added(graph, before, "Reshape", [value, graph.constant(np.array(target, np.int64))])


def _added(
    graph: Graph,
    before: Node,
    op: str,
    inputs: Sequence[Value | None],
    attrs: dict[str, Any] | None = None,
) -> Value:
    node = graph.add(op, inputs, attrs, before=before, sources=before.sources)
    infer_new([node])
    return node.output
