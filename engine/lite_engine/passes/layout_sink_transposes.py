"""Transposes move towards the outputs, through operators that do not mind, until they cancel.

For y = Tₚ(x), where axis i of y is axis p[i] of x, and an operator f that treats axes alike:

    f(Tₚ(x), c) = Tₚ(f′(x, Tₚ⁻¹(c)))        f′: axis a becomes p[a]
    T_q(Tₚ(x)) = T_{p∘q}(x), nothing when p∘q is the identity

Constants are permuted now. A Transpose that moves only axes of size 1 becomes a Reshape, or goes
when
a Reshape follows. What is left behind a DequantizeLinear goes in front of it, where elements are
smaller and the DequantizeLinear stays next to its operator.

An input without Transpose is given the inverse one when it is smaller than the transposed ones
(the scale of a squeeze-and-excite block), otherwise the place is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from lite_messages import tr

from ..ir import Graph, Journal, Node, QuantParams, Value
from ..ops import find_op, nested_graphs
from ._core import graph_pass, infer_new
from ._layout_rules import Moved, Perm, inverse, moved_alone, perm_of
from ._rewrite import bypass, constant_like

_NAME = "layout-sink-transposes"


@graph_pass(_NAME)
def layout_sink_transposes(graph: Graph, journal: Journal) -> int:
    """Sinks, cancels and merges; then turns what only moves size-1 axes into views."""
    walk = _Walk(graph, journal)
    for node in list(graph.nodes):
        if node.op == "Transpose":
            walk.merge(node)
        else:
            walk.sink(node)
    graph.remove_unread()
    for node in list(graph.nodes):
        if node.op == "Transpose" and not walk.to_view(node):
            walk.lift_over_dequantize(node)
    graph.remove_unread()
    return walk.count


def behind(value: Value | None) -> tuple[Value, Perm] | None:
    """(x, p) when value is Tₚ(x)."""
    node = None if value is None else value.producer
    if node is None or node.op != "Transpose" or node.inputs[0] is None:
        return None
    perm = perm_of(node)
    return (node.inputs[0], perm) if perm else None


@dataclass
class _Walk:
    graph: Graph
    journal: Journal
    count: int = 0

    def __post_init__(self) -> None:
        #: (id of x, p) → Tₚ(x), so that two readers share one Transpose
        self._made: dict[tuple[int, tuple[int, ...]], Value] = {}
        self.nested = nested_graphs(self.graph)

    # ---- Transpose after Transpose
    def merge(self, node: Node) -> None:
        inner = behind(node.inputs[0])
        if inner is None:
            return
        x, first = inner
        outer = perm_of(node) if node.attrs.get("perm") else list(range(len(first)))[::-1]
        if len(outer) != len(first):
            return  # a damaged file's
        perm = [first[p] for p in outer]
        before = (node.inputs[0].producer.name, node.name)  # type: ignore[union-attr]
        if perm != list(range(len(perm))):
            node.inputs = (x,)  # type: ignore[assignment]
            node.attrs["perm"] = perm
            self._rewrote(before, (node.name,))
        else:
            reason = bypass(self.graph, node, x, self.nested)
            if reason:
                self.journal.refused(_NAME, before, reason)
            else:
                self._rewrote(before, ())

    # ---- Transpose before another operator
    def sink(self, node: Node) -> None:
        if node.op == "Shape" and not node.attrs.get("start") and node.attrs.get("end") is None:
            self._shape_of(node)
            return
        if behind(node.input(0)) is None and not any(behind(v) for v in node.inputs):
            return
        op = find_op(node.op)
        together = node.op == "Concat" or (op is not None and op.layout == "elementwise")
        moved = self._together(node) if together else self._alone(node)
        if isinstance(moved, str):
            self.journal.refused(_NAME, (node.name,), moved)
        elif moved is not None:
            self._replace(node, moved)

    def _alone(self, node: Node) -> Moved | str | None:
        """The operator has one tensor of data, its first input."""
        inner = behind(node.input(0))
        if inner is None:
            return None
        made = moved_alone(node, inner[1], lambda array, like: self._const(array, like))
        if isinstance(made, Moved):
            made.inputs = [inner[0], *made.inputs]
        return made

    def _together(self, node: Node) -> Moved | str | None:
        """Every input counts: element-wise operators with broadcasting, and Concat."""
        found = [f for f in map(behind, node.inputs) if f is not None]
        _, perm = max(found, key=lambda f: _elements(f[0]) or 0)
        rank = len(perm)
        moving, standing = 0, 0
        for value in node.inputs:
            if value is None or (value.is_const and len(value.shape or ()) <= rank):
                continue
            if value.shape is None or len(value.shape) > rank:
                return tr(
                    "{name} has more axes than the transposed input, or unknown ones",
                    name=value.name,
                )
            inner = behind(value)
            if inner is not None and inner[1] == perm:
                moving += _elements(value) or 1
            elif len(value.shape) < rank and not all(isinstance(d, int) for d in value.shape):
                return tr("{name} is not transposed and its size is not known", name=value.name)
            elif not _is_view(_padded(value, rank), inverse(perm)) and not _constant_behind(value):
                size = _elements(value)
                if size is None or len(value.shape) != rank:
                    return tr("{name} is not transposed and its size is not known", name=value.name)
                standing += size
        if standing and standing >= moving:
            return tr("another input of the same size is not transposed")
        attrs = dict(node.attrs)
        if node.op == "Concat" and "axis" not in attrs:
            return tr("a Concat has no axis")  # a damaged file's
        if node.op == "Concat":
            attrs["axis"] = perm[int(attrs["axis"]) % rank]
        inputs = [self._aligned(v, perm, node) for v in node.inputs]
        return Moved(inputs, attrs, [perm] * len(node.outputs))

    def _aligned(self, value: Value | None, perm: Perm, node: Node) -> Value | None:
        """An input of an element-wise operator in the axes of x."""
        if value is None:
            return None
        inner = behind(value)
        if inner is not None and inner[1] == perm:
            return inner[0]
        rank, back = len(perm), inverse(perm)
        if value.const is not None:
            if value.const.size == 1 and node.op != "Concat":
                return value
            return self._const(_full(value.const, rank).transpose(back), value)
        padded = _padded(value, rank)
        if all(d == 1 for d in padded):
            return value
        dims = [padded[a] for a in back]
        if _is_view(padded, back) and all(isinstance(d, int) for d in dims):
            shape = self.graph.constant(np.array(dims, np.int64), self.graph.unique("shape"))
            return self._insert("Reshape", [value, shape], {}, node)
        return self._transposed(value, back, node)

    def _transposed(self, value: Value, perm: Perm, before: Node) -> Value:
        """Tₚ(value), shared; goes into a dequantised constant."""
        key = (id(value), tuple(perm))
        if key not in self._made:
            producer = value.producer
            if producer is not None and _constant_behind(value):
                made = self._dequantised(producer, perm, before)
            else:
                made = self._insert("Transpose", [value], {"perm": list(perm)}, before)
            self._made[key] = made
        return self._made[key]

    def _dequantised(self, dequantize: Node, perm: Perm, before: Node) -> Value:
        """Tₚ of a dequantised constant, which may lack the first axes of p, of size 1."""
        stored, *given = dequantize.inputs
        assert stored is not None and stored.const is not None
        attrs, missing = dict(dequantize.attrs), len(perm) - stored.const.ndim
        params = [self._of_blocks(v, perm) for v in given]
        if params and params[0] is not None and params[0].shape:
            axis = int(attrs.get("axis", 1)) % stored.const.ndim
            attrs["axis"] = inverse(perm)[missing + axis]
        new = self._const(_full(stored.const, len(perm)).transpose(perm), stored)
        return self._insert("DequantizeLinear", [new, *params], attrs, before)

    def _shape_of(self, node: Node) -> None:
        """Shape(Tₚ(x)) = Gather(Shape(x), p)."""
        inner = behind(node.input(0))
        if inner is None:
            return
        shape = self._insert("Shape", [inner[0]], {}, node)
        order = self.graph.constant(np.array(inner[1], np.int64), self.graph.unique("order"))
        made = self.graph.replace([node], "Gather", [shape, order], {"axis": 0})
        self._rewrote((node.name,), (made.name,))

    def _replace(self, node: Node, moved: Moved) -> None:
        """The operator on untransposed inputs, followed by the Transposes of its outputs."""
        graph = self.graph
        at, outputs, after = graph.position(node), [], []
        for old, perm in zip(node.outputs, moved.perms):
            if perm == list(range(len(perm))):
                outputs.append(old)
                continue
            new = Value(graph.unique(old.name), old.dtype, quant=_requant(old.quant, perm))
            if old.shape is not None and len(old.shape) == len(perm):
                new.shape = tuple(old.shape[a] for a in inverse(perm))
            outputs.append(new)
            after.append((old, new, perm))
        node.inputs = ()  # type: ignore[assignment]
        made = Node(node.op, moved.inputs, outputs, moved.attrs, name=node.name,
                    sources=node.sources, domain=node.domain)  # fmt: skip
        graph.nodes[at] = made
        for old, new, perm in after:
            name = graph.unique(f"{node.name}/Transpose")
            step = Node("Transpose", [new], [old], {"perm": perm}, name=name, sources=node.sources)
            at += 1
            graph.nodes.insert(at, step)
        infer_new([made])
        self._rewrote((node.name,), (made.name,))

    # ---- what is left
    def to_view(self, node: Node) -> bool:
        """A Transpose that moves only axes of size 1 becomes a Reshape, or goes into the next."""
        x, out = node.inputs[0], node.output
        perm = perm_of(node)
        if x is None or x.shape is None or not perm or not _is_view(x.shape, perm):
            return False
        dims = [x.shape[a] for a in perm]
        open_axes = [i for i, d in enumerate(dims) if not isinstance(d, int)]
        if any(perm[i] != i for i in open_axes):
            return False
        for reader in list(dict.fromkeys(out.readers)):
            if _takes_any_view(reader, out, same_first=perm[0] == 0):
                reader.set_input(0, x)
        if out.readers or self.graph.is_output(out):
            sizes = np.array([d if isinstance(d, int) else 0 for d in dims], np.int64)
            shape = self.graph.constant(sizes, self.graph.unique("shape"))
            made = self.graph.replace([node], "Reshape", [x, shape], {})
            self._rewrote((node.name,), (made.name,))
        else:
            self._rewrote((node.name,), ())
        return True

    def lift_over_dequantize(self, node: Node) -> None:
        """Tₚ(DequantizeLinear(q)) = DequantizeLinear(Tₚ(q)); a constant q is permuted now."""
        inner = None if node.inputs[0] is None else node.inputs[0].producer
        if inner is None or inner.op != "DequantizeLinear" or inner.inputs[0] is None:
            return
        stored, *params = inner.inputs
        assert stored is not None
        perm, attrs = perm_of(node), dict(inner.attrs)
        if not perm and stored.shape is not None and not node.attrs.get("perm"):
            perm = list(range(len(stored.shape)))[::-1]
        if not perm or not _turns(params):
            return
        params = [self._of_blocks(v, perm) for v in params]
        if params and params[0] is not None and params[0].shape:
            attrs["axis"] = inverse(perm)[int(attrs.get("axis", 1)) % len(perm)]
        if stored.const is None:
            lifted = self._transposed(stored, perm, node)
        else:
            lifted = self._const(stored.const.transpose(perm), stored)
        lifted.quant = _requant(stored.quant, inverse(perm))
        made = self.graph.replace([inner, node], "DequantizeLinear", [lifted, *params], attrs,
                                  name=node.name)  # fmt: skip
        self._rewrote((inner.name, node.name), (made.name,))

    def _of_blocks(self, value: Value | None, perm: Sequence[int]) -> Value | None:
        """Scales or zero points of blocks have the rank of what they scale, and turn with it."""
        if value is None or value.const is None or value.const.ndim < 2:
            return value
        return self._const(_full(value.const, len(perm)).transpose(perm), value)

    # ---- small
    def _insert(
        self, op: str, inputs: Sequence[Value | None], attrs: dict[str, object], before: Node
    ) -> Value:
        name = self.graph.unique(f"{before.name}/{op}")
        node = self.graph.add(op, inputs, attrs, name=name, sources=before.sources, before=before)
        infer_new([node])
        return node.output

    def _const(self, array: np.ndarray, like: Value) -> Value:
        value = constant_like(self.graph, array, like, "const")
        value.dtype = like.dtype or value.dtype
        return value

    def _rewrote(self, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        self.count += 1
        self.journal.rewrote(_NAME, before, after)


def _elements(value: Value) -> int | None:
    """Number of elements, open sizes counted as 1 (they are the batch in practice)."""
    if value.shape is None:
        return None
    return math.prod(d if isinstance(d, int) else 1 for d in value.shape)


def _padded(value: Value, rank: int) -> tuple[object, ...]:
    shape = value.shape or ()
    return (1,) * (rank - len(shape)) + tuple(shape)


def _full(array: np.ndarray, rank: int) -> np.ndarray:
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def _is_view(shape: Sequence[object], perm: Sequence[int]) -> bool:
    """Does the permutation leave the order of all axes that are not of size 1, so that a Reshape
    can do the same? One to a size of 0 would keep another size."""
    kept = [a for a in perm if shape[a] != 1]
    return kept == sorted(kept) and 0 not in shape


def _constant_behind(value: Value) -> bool:
    """DequantizeLinear of a constant."""
    node = value.producer
    if node is None or node.op != "DequantizeLinear":
        return False
    return node.inputs[0] is not None and node.inputs[0].is_const and _turns(node.inputs[1:])


def _turns(params: Sequence[Value | None]) -> bool:
    """Scales and zero points of blocks can be turned where they are constants."""
    return all(v is None or v.const is not None or len(v.shape or ()) < 2 for v in params)


def _takes_any_view(reader: Node, value: Value, *, same_first: bool) -> bool:
    """Would a reader give the same for any view of `value`'s elements? (Reshape to given sizes.)"""
    if reader.input(0) is not value or list(reader.inputs).count(value) != 1:
        return False
    if reader.op == "Flatten":
        return same_first and reader.attrs.get("axis", 1) == 1
    shape = reader.input(1)
    if reader.op != "Reshape" or shape is None or shape.const is None:
        return False
    copied = np.flatnonzero(shape.const == 0).tolist()
    return not copied or (copied == [0] and same_first and not reader.attrs.get("allowzero", 0))


def _requant(quant: QuantParams | None, perm: Perm) -> QuantParams | None:
    """Parameters of x given those of Tₚ(x)."""
    if quant is None or quant.axis is None:
        return quant
    return QuantParams(quant.scale, quant.zero_point, perm[quant.axis])
