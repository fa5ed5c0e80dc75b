"""Graph → Paddle program: the table of lowerings, and what they write with.

Every operator that Paddle-Lite has a kernel for is written as Paddle's own, with all attributes
that Paddle-Lite reads (it has no defaults for most). What cannot be written raises
UnsupportedOperatorError naming the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...importers.paddle.program import (
    FEED_LIST,
    FETCH_LIST,
    Block,
    Op,
    Program,
    Var,
)
from ...ir import DType, Graph, Node, Value
from ...ops import get_op

Lowering = Callable[["Writer", Node, dict[str, Any]], None]
_TABLE: dict[str, Lowering] = {}
#: PrecisionType numbers of paddle_place.h; 4 is any.
_PRECISIONS = {
    DType.F32: 1, DType.I8: 2, DType.I32: 3, DType.F16: 5, DType.BOOL: 6, DType.I64: 7,
    DType.I16: 8, DType.U8: 9, DType.F64: 10,
}  # fmt: skip


def lowers(*ops: str) -> Callable[[Lowering], Lowering]:
    """Registers the lowering of operators."""

    def register(fn: Lowering) -> Lowering:
        for name in ops:
            _TABLE[name] = fn
        return fn

    return register


def lowered_ops() -> list[str]:
    return sorted(_TABLE)


class Writer:
    """Appends Paddle operators, variables and weights to a program."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.program = Program([Block()])
        self.names: dict[int, str] = {}
        self.taken: set[str] = {"feed", "fetch"}
        self.node: Node | None = None

    @property
    def block(self) -> Block:
        return self.program.blocks[0]

    # ---- variables
    def unique(self, stem: str) -> str:
        name, count = stem, 0
        while name in self.taken:
            count += 1
            name = f"{stem}.{count}"
        self.taken.add(name)
        return name

    def name(self, value: Value) -> str:
        """The variable of a value; constants become weights on first use."""
        if id(value) not in self.names:
            if value.const is not None:
                self.names[id(value)] = self.weight(value.const, value.name)
            else:
                self.names[id(value)] = self.variable(value.name, value.dtype, value.shape)
        return self.names[id(value)]

    def variable(self, stem: str, dtype: DType | None, shape: Sequence[Any] | None) -> str:
        name = self.unique(stem)
        dims = tuple(d if isinstance(d, int) else -1 for d in shape or ())
        self.block.vars[name] = Var(name, dtype=dtype or DType.F32, shape=dims)
        return name

    def weight(self, array: Any, stem: str) -> str:
        """A stored tensor. Scalars get rank 1: Paddle-Lite 2.13 has no rank 0."""
        array = np.asarray(array)
        array = np.ascontiguousarray(array.reshape(1) if array.ndim == 0 else array)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = self.unique(stem)
        self.block.vars[name] = Var(
            name, dtype=DType.of(array), shape=array.shape, persistable=True
        )
        self.program.params[name] = array
        return name

    def like(self, value: Value, suffix: str) -> str:
        """A new variable with the type of a value."""
        return self.variable(f"{value.name}/{suffix}", value.dtype, value.shape)

    # ---- operators
    def add(self, kind: str, inputs: dict[str, Any], outputs: dict[str, Any], **attrs: Any) -> None:
        """Appends an operator; slots take a name, a Value, or a list of either."""

        def names(given: Any) -> list[str]:
            many = given if isinstance(given, list) else [given]
            return [self.name(v) if isinstance(v, Value) else v for v in many if v is not None]

        slots_in = {k: names(v) for k, v in inputs.items() if v is not None}
        slots_out = {k: names(v) for k, v in outputs.items() if v is not None}
        self.block.ops.append(Op(kind, slots_in, slots_out, attrs))

    # ---- reading the graph
    def refuse(self, why: str) -> UnsupportedOperatorError:
        node = self.node
        assert node is not None
        return UnsupportedOperatorError(
            f"{node.name} ({node.op}): {why}",
            (node.name,),
            fix=tr("write a .lite file, or leave this part out"),
        )

    def dims(self, value: Value | None) -> list[int]:
        """Sizes of a value. Raises UnsupportedOperatorError when they are not fixed."""
        if value is None or value.shape is None or not value.type.is_static:
            name = value.name if value is not None else tr("an input")
            raise self.refuse(tr("the shape of {name} is not fixed; give input shapes", name=name))
        return [int(d) for d in value.shape]  # type: ignore[arg-type]

    def rank(self, value: Value | None) -> int:
        if value is None or value.shape is None:
            raise self.refuse(tr("the rank of its input is not known; give input shapes"))
        return len(value.shape)

    def array(self, value: Value | None, what: str) -> np.ndarray:
        """A constant input. Raises UnsupportedOperatorError when it is computed."""
        if value is None or value.const is None:
            raise self.refuse(tr("its {what} is computed at run time", what=what))
        return value.const

    def ints(self, value: Value | None, what: str) -> list[int]:
        return [int(v) for v in self.array(value, what).reshape(-1)]


def lower(graph: Graph) -> Program:
    """Raises UnsupportedOperatorError that names every operator without a lowering."""
    missing = sorted({n.op for n in graph.nodes if n.op not in _TABLE})
    if missing:
        nodes = tuple(n.name for n in graph.nodes if n.op in missing)
        raise UnsupportedOperatorError(
            tr(
                "Paddle-Lite has no operator for {missing} ({nodes})",
                missing=", ".join(missing),
                nodes=nodes[0],
            ),
            nodes,
            fix=tr("write a .lite file (--optimize_out_type lite)"),
        )
    writer = Writer(graph)
    _feeds(writer)
    for node in graph.nodes:
        writer.node = node
        attrs = get_op(node.op, node.name).filled_attrs(node)
        _TABLE[node.op](writer, node, attrs)
    _fetches(writer)
    return writer.program


def _feeds(w: Writer) -> None:
    w.block.vars["feed"] = Var("feed", FEED_LIST, persistable=True)
    for column, value in enumerate(w.graph.inputs):
        w.add("feed", {"X": "feed"}, {"Out": value}, col=column)


def _fetches(w: Writer) -> None:
    w.block.vars["fetch"] = Var("fetch", FETCH_LIST, persistable=True)
    for column, value in enumerate(w.graph.outputs):
        number = _PRECISIONS.get(value.dtype or DType.F32, 4)
        w.add("fetch", {"X": value}, {"Out": "fetch"}, col=column, data_type=number)
