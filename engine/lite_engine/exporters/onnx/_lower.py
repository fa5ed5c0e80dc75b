"""A Graph's own operators and forms → those of ONNX at one opset.

    @lowers("Silu")
    def _(call): call.last("Mul", [x, call.emit("Sigmoid", [x])])

A lowering puts nodes in the place of one; what it puts there is lowered in turn. Operators that
ONNX cannot express keep their name, in the domain `lite_engine`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import LiteError
from ...importers.onnx.vendor import OWN_DOMAIN
from ...ir import DType, Graph, Node, Value
from ...ir.bfloat16 import f32_to_bf16
from ...ops import OpDef, find_op
from ._forms import NEWEST, elements_opset, needed_opset

Lowering = Callable[["Call"], bool | None]
_LOWERINGS: dict[str, list[tuple[int, Lowering]]] = {}


class NeedsOpset(LiteError):
    """A node that the opset cannot express; `opset` is the first that can."""

    def __init__(self, node: Node, opset: int, given: int) -> None:
        super().__init__(
            tr("{op} needs opset {opset}, not {given}", op=node.op, opset=opset, given=given),
            where=node.name,
            fix=tr("write opset {opset} or newer", opset=opset),
        )
        self.opset = opset


def lowers(*ops: str, below: int = 1000) -> Callable[[Lowering], Lowering]:
    """Registers a lowering of `ops` for opsets smaller than `below`; one that returns False leaves
    the node as it is."""

    def register(fn: Lowering) -> Lowering:
        for op in ops:
            _LOWERINGS.setdefault(op, []).append((below, fn))
        return fn

    return register


def lower(graph: Graph, opset: int) -> None:
    """Rewrites a graph (a copy of the caller's) in place. Raises NeedsOpset."""
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        for _, inner in node.subgraphs():
            lower(inner, opset)
        _place(graph, node, opset)


def why_not(node: Node) -> str:
    """Why a node cannot be written with operators of ONNX and onnxruntime; empty when it can."""
    graph = Graph("node")
    outputs = [Value(v.name, v.dtype, v.shape) for v in node.outputs]
    inputs = list(node.inputs)
    alone = Node(node.op, inputs, outputs, dict(node.attrs), name=node.name, domain=node.domain)
    try:
        _place(graph, alone, NEWEST)
    except LiteError as error:
        return error.what
    finally:
        for made in (alone, *graph.nodes):  # nobody else knows that these read the values
            made.inputs = ()  # type: ignore[assignment]
    lacks = next((n for n in graph.nodes if n.domain == OWN_DOMAIN or find_op(n.op) is None), None)
    return "" if lacks is None else tr("ONNX has no operator {op}", op=lacks.op)


def _place(graph: Graph, node: Node, opset: int) -> None:
    # LiteRT's rounding has no name in ONNX: results near a tie become another step.
    node.attrs = {k: v for k, v in node.attrs.items() if k != "rounding"}
    call = Call(graph, node, opset)
    for below, fn in (*_LOWERINGS.get("*", ()), *_LOWERINGS.get(node.op, ())):
        if opset < below and fn(call) is not False:
            node.inputs = ()  # type: ignore[assignment]
            return
    op = find_op(node.op)
    if op is not None:
        node.domain = domain_of(op)[0]
        given = tuple(op.input_name(i) for i, v in enumerate(node.inputs) if v is not None)
        kept = {k: v for k, v in node.attrs.items() if k not in op.attrs or v != op.attrs[k]}
        needed = needed_opset(node, kept, given) if not node.domain else 0
        if needed > opset:
            raise NeedsOpset(node, needed, opset)
    elif "::" in node.op:  # of a domain that the importer does not know
        node.domain, _, node.op = node.op.rpartition("::")
    graph.nodes.append(node)


def domain_of(op: OpDef) -> tuple[str, int]:
    """Domain and version of an operator, as its source names them."""
    named = re.match(r"(ONNX|com\.microsoft|ai\.onnx\.\w+) \w+-(\d+)", op.source)
    if named is None:
        return OWN_DOMAIN, 1
    return ("", 0) if named[1] == "ONNX" else (named[1], int(named[2]))


class Call:
    """The node that is lowered, and what takes its place."""

    def __init__(self, graph: Graph, node: Node, opset: int) -> None:
        self.graph, self.node, self.opset = graph, node, opset
        self.attrs = dict(node.attrs)
        op = find_op(node.op)
        #: attributes with defaults
        self.filled = {**op.attrs, **node.attrs} if op else self.attrs

    def __getitem__(self, index: int) -> Value:
        value = self.node.input(index)
        if value is None:
            raise LiteError(tr("input {index} is missing", index=index), where=self.node.name)
        return value

    def const(self, data: Any, like: Value | DType) -> Value:
        """A constant of the element type of another value."""
        dtype = (like.dtype if isinstance(like, Value) else like) or DType.F32
        array = np.asarray(data, np.float32 if dtype is DType.BF16 else dtype.np)
        array = f32_to_bf16(array) if dtype is DType.BF16 else array
        return self.graph.constant(array, self.graph.unique(f"{self.node.name}.const"), dtype)

    def emit(
        self, op: str, inputs: Sequence[Value | None], attrs: dict[str, Any] | None = None
    ) -> Value:
        """Puts a node before the others to come; its output has the type of the first input."""
        name = self.graph.unique(self.node.name)
        first = inputs[0] if inputs else None
        value = Value(f"{name}.out", first.dtype if first is not None else None)
        self._add(op, inputs, [value], attrs, name)
        return value

    def last(
        self, op: str, inputs: Sequence[Value | None], attrs: dict[str, Any] | None = None
    ) -> None:
        """Puts the node that gives the outputs."""
        self._add(op, inputs, self.node.outputs, attrs, self.node.name)

    def older(self, inputs: Sequence[Value | None], attrs: dict[str, Any]) -> None:
        """Puts the node in a form that only older opsets have: it is not lowered any further.
        Raises NeedsOpset for an element type that they do not have."""
        node = self.node
        needed = elements_opset(node)
        if needed > self.opset:
            raise NeedsOpset(node, needed, self.opset)
        self.graph.nodes.append(
            Node(node.op, inputs, node.outputs, attrs, name=node.name, sources=node.sources)
        )

    def _add(
        self, op: str, inputs: Sequence[Value | None], outputs: Sequence[Value],
        attrs: dict[str, Any] | None, name: str,
    ) -> None:  # fmt: skip
        node = Node(op, inputs, outputs, attrs, name=name, sources=self.node.sources)
        _place(self.graph, node, self.opset)
