"""What changed from one graph to another: layers, attributes, shapes, weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..ir import Graph, Node, Value, format_shape
from ..ops import find_op
from .node_match import matched_nodes

#: What a text shows of a value.
_SHOWN = 60

#: The candidate's value for each of the baseline's, by its id.
Counterparts = Mapping[int, Value]


@dataclass(frozen=True)
class Difference:
    """One thing that differs. `kind`: "op", "attribute", "type" (element type and shape of an
    output), "weight", "reads" or "name"; of a graph's ends "input", "output" (type, or what makes
    it) or "name". `distance` is the relative L2 distance of two weights of one shape."""

    kind: str
    name: str
    before: str
    after: str
    distance: float | None = None


@dataclass(frozen=True)
class NodeChange:
    """A layer that was "added", "deleted" or "changed"; `before` and `after` are its names."""

    kind: str
    op: str
    before: str
    after: str
    differences: list[Difference] = field(default_factory=list)


@dataclass
class GraphDiff:
    """The changes from `baseline` to `candidate` in the order of the layers; `same` layers have
    none, `renamed` of them another name only. `ends` are changes of the inputs and outputs."""

    baseline: str
    candidate: str
    same: int
    renamed: int
    changes: list[NodeChange]
    ends: list[Difference]

    @property
    def agrees(self) -> bool:
        return not self.changes and not self.ends

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def diff(
    a: Graph, b: Graph, names: tuple[str, str] = ("", ""), outer: Counterparts | None = None
) -> GraphDiff:
    """The changes from graph `a` to graph `b`, which stay as they are. Branches are compared with
    the `outer` counterparts of what they read from the graphs around them."""
    pairs = matched_nodes(a, b)
    of_a = {id(x): y for x, y in pairs}
    of_b = {id(y): x for x, y in pairs}
    same = {**(outer or {}), **{id(x): y for x, y in zip(a.inputs, b.inputs)}}
    same.update((id(x), y) for n, m in pairs for x, y in zip(n.outputs, m.outputs))
    out = GraphDiff(names[0] or a.name, names[1] or b.name, 0, 0, [], list(_ends(a, b, same)))
    waiting = [n for n in a.nodes if id(n) not in of_a]
    place = {id(n): i for i, n in enumerate(a.nodes)}
    for node in b.nodes:
        before = of_b.get(id(node))
        if before is None:
            out.changes.append(NodeChange("added", node.op, "", node.name))
            continue
        while waiting and place[id(waiting[0])] < place[id(before)]:
            gone = waiting.pop(0)
            out.changes.append(NodeChange("deleted", gone.op, gone.name, ""))
        found = list(_between(before, node, same))
        if found:
            out.changes.append(NodeChange("changed", node.op, before.name, node.name, found))
        else:
            out.same += 1
            out.renamed += before.name != node.name
    out.changes += [NodeChange("deleted", n.op, n.name, "") for n in waiting]
    return out


def _between(a: Node, b: Node, same: Counterparts) -> Iterator[Difference]:
    op = find_op(b.op)
    usual = op.attrs if op else {}
    for key in dict.fromkeys([*a.attrs, *b.attrs]):
        one, two = a.attrs.get(key, usual.get(key)), b.attrs.get(key, usual.get(key))
        if not _equal(one, two, same):
            yield Difference("attribute", key, _text(one), _text(two))
    for x, y in zip(a.outputs, b.outputs):
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            yield Difference("type", y.name, _type(x), _type(y))
    for i in range(max(len(a.inputs), len(b.inputs))):
        name = op.input_name(i) if op else str(i)
        yield from _origin("reads", name, a.input(i), b.input(i), same)


def _origin(
    kind: str, name: str, x: Value | None, y: Value | None, same: Counterparts
) -> Iterator[Difference]:
    """How the constants differ, or that `y` is not the counterpart of `x`."""
    if x is None or y is None:
        if x is not y:
            yield Difference(kind, name, _read(x), _read(y))
    elif x.const is not None and y.const is not None:
        if x.const is not y.const and not _equal(x.const, y.const, same):
            yield Difference("weight", name, _type(x), _type(y), _distance(x.const, y.const))
    elif same.get(id(x)) is not y:
        said = _read if x.name != y.name else _made
        yield Difference(kind, name, said(x), said(y))


def _ends(a: Graph, b: Graph, same: Counterparts) -> Iterator[Difference]:
    for kind, one, two in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        for i in range(max(len(one), len(two))):
            x, y = (vs[i] if i < len(vs) else None for vs in (one, two))
            differ = _type(x) != _type(y)
            if differ:
                yield Difference(kind, (y or x).name, _type(x), _type(y))  # type: ignore[union-attr]
            if x is None or y is None:
                continue
            others = list(_origin(kind, y.name, x, y, same))
            yield from others
            if x.name != y.name and not (differ or others):
                yield Difference("name", kind, x.name, y.name)


def _equal(x: Any, y: Any, same: Counterparts) -> bool:
    if isinstance(x, Graph) or isinstance(y, Graph):
        return isinstance(x, Graph) and isinstance(y, Graph) and diff(x, y, outer=same).agrees
    if isinstance(x, (np.ndarray, list, tuple)) and isinstance(y, (np.ndarray, list, tuple)):
        one, two = np.asarray(x), np.asarray(y)
        return one.dtype.kind == two.dtype.kind and np.array_equal(
            one, two, equal_nan=one.dtype.kind == "f"
        )
    return bool(x == y)


def _distance(x: np.ndarray, y: np.ndarray) -> float | None:
    """Relative L2, None for other shapes."""
    if x.shape != y.shape or "b" in x.dtype.kind + y.dtype.kind:
        return None
    one, two = x.astype(np.float64), y.astype(np.float64)
    return float(np.linalg.norm(one - two) / max(float(np.linalg.norm(one)), 1e-30))


def _type(value: Value | None) -> str:
    return "" if value is None else f"{value.dtype}[{format_shape(value.shape)}]"


def _read(value: Value | None) -> str:
    return "" if value is None else value.name


def _made(value: Value) -> str:
    """The layer, and which of its outputs: for values of one name that are made by others."""
    maker = value.producer
    return value.name if maker is None else f"{maker.name}:{maker.outputs.index(value)}"


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{format_shape(value.shape)}]"
    if isinstance(value, Graph):
        return value.name
    return "" if value is None else str(value)[:_SHOWN]
