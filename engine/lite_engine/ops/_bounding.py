"""One walk over a graph that gives open sizes their bounds; `bounds.py` says how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from lite_messages import tr

from ..errors import LiteError
from ..ir import Graph, Node, TypeInfo, Value, node_reads
from ._infer import fold_node
from ._inferred import infer_node
from ._writer import Writer


class Unbounded(LiteError):
    """A node for which there is no bound, or no rule."""


@dataclass(frozen=True)
class Count:
    """`factor` times what `base` (i64, one element) holds, which is at most `most`."""

    base: Value
    most: int
    factor: int = 1

    @property
    def bound(self) -> int:
        return self.most * self.factor


@dataclass(frozen=True)
class Rows:
    """The first `count` entries along `axis` are there; what the others hold is open."""

    axis: int
    count: Count


#: One integer of a shape.
Size = int | Count
#: A node → the rows of its outputs; None when it wrote something else in the node's place.
SizeRule = Callable[["Bounding", Node], np.ndarray | None]
Rule = Callable[["Bounding", Node], Sequence[Rows | None] | None]


def is_open(value: Value) -> bool:
    """Whether its size is not known before it runs."""
    return value.const is None and (value.dtype is None or not value.type.is_static)


class Bounding:
    """One walk over a graph, in place.

    `rows` has what is known of values with open rows, `sizes` the integers of values that hold
    shapes; both by the value's id.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.rows: dict[int, Rows] = {}
        self.sizes: dict[int, np.ndarray] = {}
        self._kept: list[Value] = []  # so that no id is given twice
        self._masks: dict[tuple[Count, int], Value] = {}
        self._branches: dict[int, tuple[list[Value], list[Value]]] = {}
        self._waiting: list[Node] = []
        self._lost: set[int] = set()  # open values that no rule bounded
        self._written: Writer | None = None

    def run(
        self, sizes: Mapping[str, SizeRule], rule_of: Callable[[Node], Rule]
    ) -> dict[str, Unbounded]:
        """Why layers have no bound, by name; what reads their open results keeps its sizes."""
        refused: dict[str, Unbounded] = {}
        names = [v.name for v in self.graph.outputs]
        self._waiting = list(reversed(self.graph.nodes))
        while self._waiting:
            node = self._waiting.pop()
            self._written = Writer(self.graph, node)
            lost = any(id(v) in self._lost for v in node_reads(node))
            if not lost:
                try:
                    self._step(node, sizes, rule_of)
                except LiteError as error:
                    refused[node.name], lost = Unbounded(error, where=node.name), True
            if lost:
                self._lost |= {id(v) for v in node.outputs if is_open(v)}
        self._written = Writer(self.graph, None)
        for i, name in enumerate(names):
            self._end(i, name)
        return refused

    def _step(
        self, node: Node, sizes: Mapping[str, SizeRule], rule_of: Callable[[Node], Rule]
    ) -> None:
        if node.op == "If" and id(node) not in self._branches:
            self._inline(node)
            return
        if node.op in sizes and (known := sizes[node.op](self, node)) is not None:
            self.replace(node, self.known(known))
            return
        rows = rule_of(node)(self, node)
        if rows is None:
            return
        self.typed(node)
        for value, found in zip(node.outputs, rows, strict=False):
            if found is not None:
                self.mark(value, found)
        if not any(rows):  # a folded result would be whole
            fold_node(self.graph, node, ())

    def typed(self, node: Node) -> None:
        """Infers a node's types. Raises Unbounded where a size stays open."""
        for value, info in zip(node.outputs, infer_node(node), strict=False):
            self._keeps(value, info)
            value.dtype, value.shape = info.dtype, info.shape
            if is_open(value) and (value.readers or self.graph.is_output(value)):
                raise Unbounded(tr("the shape of {name} depends on data", name=value.name))

    # ---- for the rules

    @property
    def write(self) -> Writer:
        """Adds nodes before the present one."""
        assert self._written is not None
        return self._written

    def of(self, value: Value | None) -> Rows | None:
        return None if value is None else self.rows.get(id(value))

    def mark(self, value: Value, rows: Rows) -> Value:
        assert value.shape is not None
        if value.shape[rows.axis] != rows.count.bound:
            raise Unbounded(tr("the sizes of {name} do not fit each other", name=value.name))
        self._kept.append(value)
        self.rows[id(value)] = rows
        return value

    def integers(self, value: Value | None) -> np.ndarray | None:
        """The integers of a constant, or of a value that holds a shape; None for any other."""
        if value is None:
            return None
        if value.const is not None:
            whole = value.const.dtype.kind in "iub" and value.const.size <= 64
            return value.const.astype(object) if whole else None
        return self.sizes.get(id(value))

    def known(self, sizes: np.ndarray) -> Value:
        """A value that holds these integers when it runs."""
        flat: list[Size] = list(sizes.ravel())
        if not any(isinstance(s, Count) for s in flat):
            truths = bool(flat) and all(isinstance(s, bool) for s in flat)
            return self.graph.constant(sizes.astype(bool if truths else np.int64))
        parts = [self.number(s) if isinstance(s, Count) else np.array([s], np.int64) for s in flat]
        joined = self.write("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
        assert isinstance(joined, Value)
        if sizes.ndim != 1:
            joined = self.write.shaped(joined, *sizes.shape)
        self._kept.append(joined)
        self.sizes[id(joined)] = sizes
        return joined

    def number(self, count: Count) -> Value:
        """i64, one element."""
        if count.factor == 1:
            return count.base
        return self.write("Mul", count.base, np.array([count.factor], np.int64))

    def least(self, count: Count, limit: Size) -> Count:
        """The smaller of a count and a size."""
        if limit == count or (isinstance(limit, int) and limit >= count.bound):
            return count
        other = self.number(limit) if isinstance(limit, Count) else np.array([limit], np.int64)
        bound = limit.bound if isinstance(limit, Count) else limit
        return Count(self.write("Min", self.number(count), other), min(count.bound, bound))

    def static(self, sizes: Sequence[Size]) -> Value:
        """A constant with the bounds of sizes."""
        whole = [s.bound if isinstance(s, Count) else int(s) for s in sizes]
        return self.graph.constant(np.array(whole, np.int64))

    def dims(self, value: Value) -> list[Size]:
        """A value's shape, its open rows as a Count. Raises Unbounded."""
        out: list[Size] = [d for d in value.shape or () if isinstance(d, int)]
        if value.shape is None or len(out) < len(value.shape):
            raise Unbounded(tr("the shape of {name} depends on data", name=value.name))
        if rows := self.of(value):
            out[rows.axis] = rows.count
        return out

    def masked(self, value: Value, fill: float) -> Value:
        """The value with `fill` in its open rows."""
        rows = self.of(value)
        if rows is None:
            return value
        assert value.dtype is not None
        behind = len(value.shape or ()) - 1 - rows.axis
        key = rows.count, behind
        if key not in self._masks:
            places = np.arange(rows.count.bound).reshape(-1, *[1] * behind)
            self._masks[key] = self.write("Less", places, self.number(rows.count))
        return self.write("Where", self._masks[key], value, np.array(fill, value.dtype.np))

    def replace(self, node: Node, *values: Value) -> None:
        """`values` in the places of a node's outputs."""
        for before, value in zip(node.outputs, values, strict=False):
            self._keeps(before, value.type)
            self.graph.replace_uses(before, value)
        self.graph.remove(node)

    def _keeps(self, before: Value, after: TypeInfo) -> None:
        """Raises Unbounded where a rule gave a value another type, rank or fixed size."""
        old, new = before.shape, after.shape
        if before.dtype is None or old is None or new is None:
            return
        fits = len(old) == len(new) and all(a == b for a, b in zip(old, new) if isinstance(a, int))
        if before.dtype is not after.dtype or not fits:
            raise Unbounded(tr("the sizes of {name} do not fit each other", name=before.name))

    # ---- branches

    def _inline(self, node: Node) -> None:
        """Both branches before the If, which then chooses between what they give."""
        names = {v.name for v in self.graph.values()}
        inner: list[Node] = []
        results: list[list[Value]] = []
        for key in ("then_branch", "else_branch"):
            branch = node.attrs.pop(key)
            inner += branch.nodes
            results.append(list(branch.outputs))
        for value in (v for n in inner for v in n.outputs):
            if value.name in names:
                value.name = self.graph.unique(value.name)
            names.add(value.name)
        at = self.graph.position(node)
        self.graph.nodes[at:at] = inner
        node.inputs = (node.inputs[0], *results[0], *results[1])  # so that replacing reaches them
        self._branches[id(node)] = results[0], results[1]
        self._waiting += [node, *reversed(inner)]

    def branches(self, node: Node) -> list[tuple[Value, Value]]:
        """What the branches of an inlined If give, by output."""
        half = len(self._branches[id(node)][0])
        values = [v for v in node.inputs[1:] if v is not None]
        return list(zip(values[:half], values[half:]))

    # ---- results

    def _end(self, index: int, name: str) -> None:
        """An output under its own name, −1 in its open rows."""
        value = self.graph.outputs[index]
        if id(value) in self.rows:
            out = self.masked(value, 0 if value.type.dtype.np.kind in "bu" else -1)
        elif value.name != name:
            out = self.write("Identity", value)
        else:
            return
        self.graph.outputs[index] = out
        if value.name == name:
            value.name = self.graph.unique(f"{name}:rows")
        out.name = name
