"""Graph, Node and Value: typed operators in topological order.

A Value has at most one producer; a constant has none and carries its array. Reader lists are
kept by Node, so `value.readers` is always right. Subgraphs (If, Loop, Scan) are attributes that
hold a Graph; their nodes may read values of the graph around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..mapped import FileState, states
from .dtype import DType
from .types import Integers, QuantParams, Shape, TypeInfo


class Value:
    """A tensor: graph input, constant, or a node's output."""

    __slots__ = ("_type", "const", "dtype", "integers", "name", "producer", "quant", "readers",
                 "shape")  # fmt: skip

    def __init__(
        self,
        name: str,
        dtype: DType | None = None,
        shape: Shape | None = None,
        *,
        const: np.ndarray | None = None,
        quant: QuantParams | None = None,
    ) -> None:
        if const is not None:
            dtype = dtype or DType.of(const)
            shape = const.shape
        self.name = name
        self.dtype = dtype
        self.shape: Shape | None = None if shape is None else tuple(shape)
        self.const = const
        self.quant = quant
        #: of a constant that was folded from a DequantizeLinear
        self.integers: Integers | None = None
        self.producer: Node | None = None
        #: nodes that read this value, once per reading input
        self.readers: list[Node] = []
        self._type: TypeInfo | None = None  # the last one given, which is asked for often

    @property
    def type(self) -> TypeInfo:
        """Raises ShapeError when the element type is not known yet."""
        known, dtype, shape = self._type, self.dtype, self.shape
        if known and known.dtype is dtype and known.shape is shape and known.const is self.const:
            return known
        if dtype is None:
            raise ShapeError(tr("element type is not known"), where=self.name)
        self._type = TypeInfo(dtype, shape, self.const)
        return self._type

    @property
    def is_const(self) -> bool:
        return self.const is not None

    def copy(self) -> Value:
        """Another value of this name, type and contents, which nothing makes or reads."""
        made = Value(self.name, self.dtype, self.shape, quant=self.quant)
        made.const, made._type = self.const, self._type
        return made

    def __repr__(self) -> str:
        kind = "const " if self.is_const else ""
        return f"<{kind}{self.name}: {self.type if self.dtype else '?'}>"


class Node:
    """One operator call. `sources` are the names of the original file's nodes it stands for."""

    __slots__ = ("_inputs", "attrs", "domain", "inferred", "name", "op", "outputs", "sources")

    def __init__(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        attrs: dict[str, Any] | None = None,
        *,
        name: str = "",
        sources: Sequence[str] = (),
        domain: str = "",
    ) -> None:
        self.op, self.domain, self.name = op, domain, name
        self.attrs = dict(attrs or {})
        self.sources = tuple(sources) or ((name,) if name else ())
        self.outputs = list(outputs)
        for value in self.outputs:
            value.producer = self
        self.inferred: Any = None  # what `ops.infer_node` found last, and from what
        self._inputs: tuple[Value | None, ...] = ()
        self.inputs = inputs  # type: ignore[assignment]

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """For pickle: what was inferred holds operators, whose functions may be local."""
        return None, {name: getattr(self, name) for name in self.__slots__} | {"inferred": None}

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        return self._inputs

    @inputs.setter
    def inputs(self, values: Iterable[Value | None]) -> None:
        for old in self._inputs:
            if old is not None:
                old.readers.remove(self)
        self._inputs = tuple(values)
        for new in self._inputs:
            if new is not None:
                new.readers.append(self)

    def set_input(self, index: int, value: Value | None) -> None:
        """Replaces one input; the tuple grows with absent inputs when index lies past its end."""
        inputs = list(self._inputs) + [None] * (index + 1 - len(self._inputs))
        inputs[index] = value
        self.inputs = inputs  # type: ignore[assignment]

    def input(self, index: int) -> Value | None:
        """Input `index`, None when absent."""
        return self._inputs[index] if index < len(self._inputs) else None

    @property
    def output(self) -> Value:
        return self.outputs[0]

    @property
    def has_subgraph(self) -> bool:
        return bool(self.attrs) and Graph in map(type, self.attrs.values())

    def subgraphs(self) -> Iterator[tuple[str, Graph]]:
        for key, value in self.attrs.items():
            if isinstance(value, Graph):
                yield key, value

    def __repr__(self) -> str:
        ins = ", ".join("-" if v is None else v.name for v in self._inputs)
        return f"<{self.op} {self.name!r} ({ins}) -> {', '.join(o.name for o in self.outputs)}>"


@dataclass(repr=False)
class Graph:
    """Inputs, outputs and nodes in topological order.

    `metadata` is plain JSON data: format, producer, opset, preprocess, labels, provenance.
    """

    name: str = "graph"
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    _serial: int = 0
    _taken: set[str] | None = None
    _last: int = 0  # where `position` found a node

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self.nodes)} nodes, {self.inputs} -> {self.outputs}>"

    def values(self) -> Iterator[Value]:
        """Every value once: inputs, then constants and outputs as the nodes meet them."""
        return iter(dict.fromkeys(self.all_values()))

    def all_values(self) -> Iterator[Value]:
        """Every value as often as it is met: inputs, then each node's, then outputs."""
        yield from self.inputs
        for node in self.nodes:
            yield from filter(None, node.inputs)
            yield from node.outputs
        yield from self.outputs

    def constants(self) -> Iterator[Value]:
        return (v for v in self.values() if v.is_const)

    def files(self) -> list[FileState]:
        """The mapped files that constants are views of."""
        return states(v.const for v in self.constants())

    def check_files(self) -> None:
        """Raises ModelFormatError when one of them was overwritten."""
        for file in self.files():
            file.check()

    def find(self, name: str) -> Value:
        """The value of that name. Raises KeyError."""
        for value in self.values():
            if value.name == name:
                return value
        raise KeyError(name)

    def node(self, name: str) -> Node:
        """The node of that name. Raises KeyError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def is_output(self, value: Value) -> bool:
        return any(v is value for v in self.outputs)

    def sole_reader(self, value: Value) -> Node | None:
        """The only node that reads `value`, None when there are more, none, or it is an output."""
        if len(value.readers) != 1 or self.is_output(value):
            return None
        return value.readers[0]

    # ---- building and rewriting

    def unique(self, stem: str) -> str:
        """A name that no value or node of the graph has."""
        if self._taken is None:
            self._taken = {v.name for v in self.values()} | {n.name for n in self.nodes}
        name = stem
        while name == stem or name in self._taken:
            self._serial += 1
            name = f"{stem}.{self._serial}"
        self._taken.add(name)
        return name

    def constant(self, array: Any, name: str = "", dtype: DType | None = None) -> Value:
        array = np.asarray(array)
        return Value(name or self.unique("const"), dtype, const=array)

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        attrs: dict[str, Any] | None = None,
        *,
        outputs: int | Sequence[Value | str] = 1,
        name: str = "",
        sources: Sequence[str] = (),
        before: Node | None = None,
    ) -> Node:
        """Makes a node and appends it (or puts it before another). Output types stay unknown
        until `ops.infer_types` runs, unless given Values carry them."""
        name = name or self.unique(op)
        if isinstance(outputs, int):
            outs = [Value(f"{name}:{i}" if i else name) for i in range(outputs)]
        else:
            outs = [Value(o) if isinstance(o, str) else o for o in outputs]
        node = Node(op, inputs, outs, attrs, name=name, sources=sources)
        if self._taken is not None:
            self._taken |= {name, *(v.name for v in outs)}
        if before is None:
            self.nodes.append(node)
        else:
            self.nodes.insert(self.position(before), node)
        return node

    def replace_uses(self, old: Value, new: Value) -> None:
        """Every reader of `old`, and the output list, gets `new` instead."""
        for node in list(dict.fromkeys(old.readers)):
            node.inputs = [new if v is old else v for v in node.inputs]  # type: ignore[assignment]
        if self.is_output(old):
            self.outputs = [new if v is old else v for v in self.outputs]

    def remove(self, node: Node) -> None:
        """Takes a node out. Its outputs must have no readers left."""
        for value in node.outputs:
            if value.readers or self.is_output(value):
                message = tr("removed while {name} is still read", name=value.name)
                raise ShapeError(message, where=node.name)
        self.detach(node)

    def detach(self, node: Node) -> None:
        """Takes a node out whose outputs another one makes from now on."""
        node.inputs = ()  # type: ignore[assignment]
        del self.nodes[self.position(node)]

    def position(self, node: Node) -> int:
        """Index of a node. It is looked for around the last one: rewrites go along the list, and
        a search from its start would take time with the square of its length. Raises ValueError."""
        nodes, first = self.nodes, max(0, min(self._last, len(self.nodes)) - 64)
        try:
            self._last = nodes.index(node, first, first + 128)
        except ValueError:
            self._last = nodes.index(node)
        return self._last

    def replace(
        self,
        old: Sequence[Node],
        op: str,
        inputs: Sequence[Value | None],
        attrs: dict[str, Any] | None = None,
        *,
        name: str = "",
    ) -> Node:
        """One node in place of several; `old[-1]`'s outputs (same Value objects, same names) become
        its outputs, its sources are theirs in order. The other old nodes go when unread."""
        last = old[-1]
        sources = tuple(dict.fromkeys(s for n in old for s in n.sources))
        at = self.position(last)
        outputs = list(last.outputs)
        last.inputs = ()  # type: ignore[assignment]
        node = Node(op, inputs, outputs, attrs, name=name or last.name, sources=sources)
        self.nodes[at] = node
        for gone in reversed(old[:-1]):
            if not any(v.readers or self.is_output(v) for v in gone.outputs):
                self.remove(gone)
        return node

    def sort(self) -> None:
        """Stable topological order. Raises ShapeError on a cycle."""
        order: list[Node] = []
        state: dict[int, int] = {}
        members = {id(n) for n in self.nodes}
        for root in self.nodes:
            stack: list[tuple[Node, Iterator[Node]]] = []
            if id(root) not in state:
                state[id(root)] = 1
                stack.append((root, self._producers(root, members)))
            while stack:
                node, producers = stack[-1]
                nxt = next(producers, None)
                if nxt is None:
                    stack.pop()
                    state[id(node)] = 2
                    order.append(node)
                elif state.get(id(nxt)) == 1:
                    raise ShapeError(tr("graph has a cycle through {nxt}", nxt=nxt.name))
                elif id(nxt) not in state:
                    state[id(nxt)] = 1
                    stack.append((nxt, self._producers(nxt, members)))
        self.nodes = order

    def _producers(self, node: Node, members: set[int]) -> Iterator[Node]:
        for value in node_reads(node):
            if value.producer is not None and id(value.producer) in members:
                yield value.producer

    def remove_unread(self) -> int:
        """Drops nodes whose outputs nobody reads; returns how many."""
        count, handed = 0, {id(v) for v in self.outputs}

        def unread(node: Node) -> bool:
            return not any(v.readers or id(v) in handed for v in node.outputs)

        rare = [node for node in self.nodes if not (node.outputs and node.outputs[0].readers)]
        if not any(map(unread, rare)):
            return 0  # mostly so, and quickly told
        for node in reversed(list(self.nodes)):
            if unread(node):
                self.remove(node)
                count += 1
            elif node.attrs and node.has_subgraph:
                handed |= handed_out(node)
        return count

    def copy(self, outer: Mapping[int, Value] | None = None) -> Graph:
        """A structural copy that shares constant arrays. `outer`: outer value by id → its copy."""
        mapped = dict(outer or {})

        def value_of(value: Value) -> Value:
            if id(value) not in mapped:
                mapped[id(value)] = value.copy()
            return mapped[id(value)]

        out = Graph(self.name, metadata=dict(self.metadata), _serial=self._serial)
        out.inputs = [value_of(v) for v in self.inputs]
        for node in self.nodes:
            inputs = [None if v is None else value_of(v) for v in node.inputs]
            attrs = {k: a.copy(mapped) if type(a) is Graph else a for k, a in node.attrs.items()}
            made = Node(node.op, inputs, [value_of(v) for v in node.outputs], attrs,
                        name=node.name, sources=node.sources, domain=node.domain)  # fmt: skip
            made.inferred = node.inferred
            out.nodes.append(made)
        out.outputs = [value_of(v) for v in self.outputs]
        return out


def node_reads(node: Node) -> Iterator[Value]:
    """Values a node reads, those captured by its subgraphs included."""
    yield from (v for v in node.inputs if v is not None)
    if node.has_subgraph:
        for _, sub in node.subgraphs():
            for inner in sub.nodes:
                yield from node_reads(inner)
            yield from sub.outputs


def handed_out(node: Node) -> set[int]:
    """Ids of the values that the node's subgraphs have as outputs: no reader list names those."""
    found: set[int] = set()
    if node.has_subgraph:
        for _, sub in node.subgraphs():
            found.update(id(v) for v in sub.outputs)
            found.update(*map(handed_out, sub.nodes))
    return found
