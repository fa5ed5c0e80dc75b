"""Where one size of a graph's inputs lies in the values behind them.

When one size changes, as a batch does, it may be anywhere behind the inputs: an axis of a value, or
a part of a larger axis (T·B rows, B·heads matrices). `MovingSize` notes where, from layer to layer,
for those that have to change a layer's constants (`moved_constants.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import Dim, Graph, Node, Shape, Value
from ..ops import find_op, infer_outputs


@dataclass(frozen=True)
class Place:
    """Where the size lies in a value: in `axis`, of which `inner` elements are inside it (1 in T·B,
    the heads in B·heads)."""

    axis: int
    inner: int = 1


#: What is repeated for each sample stays a constant up to this size.
_REPEATED_BYTES = 1 << 20


class MovingSize:
    """One size of a graph's inputs, which was `before` and is `now`.

    `old` has the shapes with the size before, by the id of the value; `places` say where the inputs
    have it. Layers are noted in their order, each once its outputs have their new shapes.
    """

    def __init__(
        self, graph: Graph, old: dict[int, Shape | None], before: int, now: Dim,
        places: Mapping[int, Place],
    ) -> None:  # fmt: skip
        self.graph, self.old, self.before, self.now = graph, old, before, now
        self.places = dict(places)

    def reads(self, node: Node) -> bool:
        """Whether the size lies in one of a layer's inputs."""
        return any(self.place(v) for v in node.inputs)

    def note(self, node: Node) -> None:
        """Where the size lies in what a layer makes: in the one axis that has another size now."""
        for value in node.outputs:
            before, now = self.old.get(id(value)), value.shape
            if before is None or now is None or len(before) != len(now):
                continue
            changed = [i for i, (a, b) in enumerate(zip(before, now)) if a != b]
            if len(changed) == 1 and isinstance(before[changed[0]], int):
                inner = self._inner(node, before, changed[0])
                if inner:
                    self.places[id(value)] = Place(changed[0], inner)

    def place(self, value: Value | None) -> Place | None:
        return None if value is None else self.places.get(id(value))

    def _inner(self, node: Node, out: Shape, axis: int) -> int:
        """Elements of a layer's output axis inside the size, as in the input that has it in an axis
        of as many; 0 where that is not known."""
        size, x, op = out[axis], node.input(0), find_op(node.op)
        place = self.place(x)
        if x is not None and place and op and op.layout == "view" and node.op != "Transpose":
            step, behind = self.step(x, place), static(out[axis + 1 :])
            return 0 if step is None or behind is None else step // math.prod(behind)
        others = [(self.old[id(v)], self.places[id(v)]) for v in node.inputs if self.place(v)]
        for shape, place in others:
            if shape is not None and shape[place.axis] == size:
                return place.inner
        return 1 if size == self.before else 0

    def step(self, x: Value, place: Place) -> int | None:
        """Elements of a value inside the size."""
        behind = static((self.old[id(x)] or ())[place.axis + 1 :])
        return None if behind is None else place.inner * math.prod(behind)

    # ---- values for all samples

    def spread(self, node: Node, value: Value, axis: int, like: Value, place: Place) -> Value:
        """A value of size 1 along an axis as one of the new size, that of `like` in its place."""
        shape, graph = value.shape or (), self.graph
        now = self.now if isinstance(self.now, int) else 0
        if value.const is not None and 0 < now * value.const.nbytes <= _REPEATED_BYTES:
            made = graph.constant(np.repeat(value.const, now, axis), dtype=value.dtype)
            made.quant = value.quant
        else:
            sizes: list[int | Value] = [1] * len(shape)
            if isinstance(self.now, int):
                sizes[axis] = self.now
                target = graph.constant(np.array(sizes, np.int64))
            else:
                span = {"start": place.axis, "end": place.axis + 1}
                size = self.new(node, "Shape", [like], span)
                ones = [graph.constant(np.ones(n, np.int64)) for n in (axis, len(shape) - axis - 1)]
                parts = [v for v in (ones[0], size, ones[1]) if v.const is None or v.const.size]
                target = self.new(node, "Concat", parts, {"axis": 0})
            made = self.new(node, "Expand", [value, target], {})
            made.shape = (*shape[:axis], self.now, *shape[axis + 1 :])
        return self.placed(made, shape, axis)

    def view(self, node: Node, x: Value, shape: tuple[int, ...], axis: int) -> Value:
        """A value in another shape, in which the size has an axis of its own."""
        sizes = self.sizes(x, [-1 if i == axis else size for i, size in enumerate(shape)])
        return self.placed(self.new(node, "Reshape", [x, sizes], {}), shape, axis)

    def placed(self, value: Value, before: Shape, axis: int) -> Value:
        """A new value, which had the shape `before`, with the size in an axis of its own."""
        self.old[id(value)], self.places[id(value)] = before, Place(axis)
        return value

    def new(self, before: Node, op: str, inputs: list[Value], attrs: dict[str, Any]) -> Value:
        node = self.graph.add(op, inputs, attrs, before=before, sources=before.sources)
        infer_outputs(node, strict=True)
        return node.output

    def sizes(self, target: Value, sizes: list[int]) -> Value:
        return Value(self.graph.unique(target.name), const=np.array(sizes, np.int64))


def static(shape: Shape) -> tuple[int, ...] | None:
    return shape if all(isinstance(d, int) for d in shape) else None  # type: ignore[return-value]
