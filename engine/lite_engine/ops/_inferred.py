"""Output types and costs of nodes, each found once.

A node remembers its own, and its copies do: a graph is read, optimised, specialised and planned,
and most of its types stay what they were. Nodes of one kind (operator, attributes, types of inputs)
share theirs: networks repeat their blocks. Contents of constants are no part of a kind unless they
are a few integers, as shapes and axes are: an operator that looked at others is asked for each node
again, and whether it did is watched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_, is_not
from typing import Any, TypeVar

import numpy as np

from ..errors import LiteError
from ..ir import DType, Node, TypeInfo
from ._core import OpDef, find_op, get_op
from ._records import Cost

#: Kinds that are remembered; a large model has some hundreds.
_MOST = 1 << 14
#: Integers of a constant that are part of a node's kind.
_FEW = 16

_Types = Sequence[TypeInfo | None]


class _Kind:
    """What nodes of one kind have in common."""

    __slots__ = ("cost", "found", "types")

    def __init__(self, types: list[TypeInfo]) -> None:
        self.types = types
        self.found: dict[Any, Any] = {}  # by others, with `of_kind`
        #: of outputs of these types, as this function states it
        self.cost: tuple[Any, list[TypeInfo], Cost] | None = None


#: None where an operator looks at contents of constants.
_KINDS: dict[tuple[Any, ...], _Kind | None] = {}


class _Watched(TypeInfo):
    """A constant's type that notes who asks for its contents."""

    __slots__ = ("_asked", "given")
    is_const = True

    def __init__(self, given: TypeInfo, asked: list[TypeInfo]) -> None:
        self.dtype, self.shape, self.is_static = given.dtype, given.shape, given.is_static
        self.given, self._asked = given, asked

    @property
    def const(self) -> np.ndarray | None:  # type: ignore[override]
        self._asked.append(self.given)
        return self.given.const


def _is_few(const: np.ndarray) -> bool:
    return const.size <= _FEW and const.dtype.kind in "iu"


def _watched(types: _Types, asked: list[TypeInfo]) -> list[TypeInfo | None]:
    """The types; those of constants that are no part of a kind note it in `asked`."""
    return [
        t if t is None or t.const is None or _is_few(t.const) else _Watched(t, asked) for t in types
    ]


class _Inferred:
    """A node's output types, and what they follow from; its cost, once that was asked for."""

    __slots__ = ("attrs", "cost", "infer", "inputs", "kind", "op", "outputs", "types")

    def __init__(
        self, op: OpDef, attrs: dict[str, Any], inputs: _Types, outputs: int,
        types: list[TypeInfo], kind: _Kind | None,
    ) -> None:  # fmt: skip
        self.op, self.attrs, self.inputs = op, attrs, inputs
        self.outputs, self.types, self.kind = outputs, types, kind
        self.infer = op._infer  # an operator of a notebook may get another one
        self.cost: tuple[Any, list[TypeInfo], Cost] | None = None

    def holds(self, op: OpDef, node: Node, inputs: _Types) -> bool:
        """Whether the node is what it was. Types are compared by identity, which is quick: a
        constant counts as the same while its array is, so change it by another array."""
        return (
            self.op is op
            and self.infer is op._infer
            and self.outputs == len(node.outputs)
            and _are(self.inputs, inputs)
            and (self.attrs == _held(node.attrs) if node.attrs else not self.attrs)
        )

    def cost_of(self, node: Node, outputs: list[TypeInfo]) -> Cost:
        """Work of the node while it is what it was and has outputs of these types."""
        known, stated = self.cost, self.op._cost
        if known is None or known[0] is not stated or not _are(known[1], outputs):
            self.cost = known = self._cost(node, outputs)
        return known[2]

    def _cost(self, node: Node, outputs: list[TypeInfo]) -> tuple[Any, list[TypeInfo], Cost]:
        kind, stated = self.kind, self.op._cost
        if kind is None:
            return stated, outputs, self.op.cost_of(node, self.inputs, outputs)
        known = kind.cost
        if known is None or known[0] is not stated or known[1] != outputs:
            asked: list[TypeInfo] = []
            cost = self.op.cost_of(node, _watched(self.inputs, asked), outputs)
            known = stated, outputs, cost
            if not asked:
                kind.cost = known
        return stated, outputs, known[2]


def _are(known: _Types, types: _Types) -> bool:
    """The same objects."""
    return len(known) == len(types) and all(map(is_, known, types))


def infer_node(node: Node) -> list[TypeInfo]:
    """Output types of a node from its inputs' types. Unknown input types give a ShapeError."""
    inputs = [None if v is None else v.type for v in node.inputs]
    op = get_op(node.op, node.name)
    known: _Inferred | None = node.inferred
    if known is not None and known.holds(op, node, inputs):
        return known.types
    attrs = _held(node.attrs)
    if attrs is None:
        node.inferred = None
        return op.infer_types(node, inputs)
    kind, types = _like_others(op, node, attrs, inputs)
    node.inferred = _Inferred(op, attrs, inputs, len(node.outputs), types, kind)
    return types


def _like_others(
    op: OpDef, node: Node, attrs: dict[str, Any], inputs: _Types
) -> tuple[_Kind | None, list[TypeInfo]]:
    """A node's kind, None where it has none, and its output types."""
    key = _key(op, node, attrs, inputs)
    if key is None:
        return None, op.infer_types(node, inputs)
    if key in _KINDS:
        kind = _KINDS[key]
        return kind, op.infer_types(node, inputs) if kind is None else kind.types
    asked: list[TypeInfo] = []
    found = op.infer_types(node, _watched(inputs, asked))
    types = [t.given if isinstance(t, _Watched) else t for t in found]
    if len(_KINDS) >= _MOST:
        _KINDS.clear()
    _KINDS[key] = kind = None if asked or any(map(is_not, types, found)) else _Kind(types)
    return kind, types


def _key(op: OpDef, node: Node, attrs: dict[str, Any], inputs: _Types) -> tuple[Any, ...] | None:
    """What a node's kind is known by; None where a size is open."""
    key: list[Any] = [op.name, op._infer, len(node.outputs)]
    for info in inputs:
        if info is None:
            key.append(None)
            continue
        if not info.is_static:
            return None
        key += (id(info.dtype), info.shape)
        if info.const is not None:
            key.append(info.const.tobytes() if _is_few(info.const) else True)
    for name, value in attrs.items():  # 1 and 1.0 are equal, but not of one type
        if type(value) is list:
            key += (name, *value, *map(type, value))
        else:
            key += (name, value, type(value))
    return tuple(key)


#: Types of attributes that nobody can change in place.
_FIXED = frozenset((int, float, str, bool, DType, type(None)))


def _held(attrs: dict[str, Any]) -> dict[str, Any] | None:
    """Attributes as they are now; None where one is an array or a graph."""
    held = {}
    for name, value in attrs.items():
        if type(value) is list:
            if not _FIXED.issuperset(map(type, value)):
                return None
            value = value.copy()
        elif type(value) not in _FIXED:
            return None
        held[name] = value
    return held


def node_cost(node: Node, *, inferred: bool = False) -> Cost | None:
    """Work of a node, whose types may have been `inferred` just now; None where its sizes or its
    operator are not known, or the cost cannot be stated."""
    op = find_op(node.op)
    known: _Inferred | None = node.inferred
    try:
        outputs = [v.type for v in node.outputs]
        if known is None or not inferred:
            inputs = [None if v is None else v.type for v in node.inputs]
            known = _known(op, node, inputs)
        else:
            inputs = known.inputs  # type: ignore[assignment]
        if op is None or not all(t is None or t.is_static for t in (*inputs, *outputs)):
            return None
        return op.cost_of(node, inputs, outputs) if known is None else known.cost_of(node, outputs)
    except LiteError:
        return None


def cost_of(node: Node, inputs: _Types, outputs: list[TypeInfo]) -> Cost:
    """Work of a node of these types. Raises as `OpDef.cost_of` does."""
    op = get_op(node.op, node.name)
    known = _known(op, node, inputs)
    return op.cost_of(node, inputs, outputs) if known is None else known.cost_of(node, outputs)


def _known(op: OpDef | None, node: Node, inputs: _Types) -> _Inferred | None:
    """What was inferred of the node, while it is what it was."""
    known: _Inferred | None = node.inferred
    return known if known is not None and op is not None and known.holds(op, node, inputs) else None


_Found = TypeVar("_Found")


def of_kind(
    node: Node, types: _Types, key: tuple[Any, ...], find: Callable[[list[TypeInfo | None]], _Found]
) -> _Found:
    """What `find` makes of the types of a node's inputs, found once for nodes of one kind whose
    outputs have the same types. Besides these it may only depend on `key`, the operator and the
    node's attributes."""
    known = _known(find_op(node.op), node, types)
    kind = None if known is None else known.kind
    if kind is None:
        return find(list(types))
    for value in node.outputs:
        key += (id(value.dtype), value.shape)
    if key in kind.found:
        found: _Found = kind.found[key]
        return found
    asked: list[TypeInfo] = []
    found = find(_watched(types, asked))
    if not asked:
        kind.found[key] = found
    return found
