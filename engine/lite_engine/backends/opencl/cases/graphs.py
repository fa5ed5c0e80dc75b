"""Small graphs of one layer, with seeded weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir import DType, Graph, Value

#: Of the node in question.
LAYER = "layer"
_RNG = np.random.default_rng(11)


def some(*shape: int) -> np.ndarray:
    """Numbers of a weight."""
    return (_RNG.standard_normal(shape) * 0.5).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


class Sketch:
    """A graph under construction, with one input `x`. Among a layer's inputs arrays become
    constants, None is an absent one."""

    def __init__(self, shape: Sequence[int], dtype: DType = DType.F32) -> None:
        self.graph = Graph("case")
        self.x = Value("x", dtype, tuple(shape))
        self.graph.inputs = [self.x]

    def layer(self, op: str, *inputs: Any, count: int = 1, **attrs: Any) -> list[Value]:
        """The outputs of the node in question."""
        return self._add(LAYER, op, inputs, count, attrs)

    def add(self, op: str, *inputs: Any, **attrs: Any) -> Value:
        """The output of a node around it."""
        return self._add(self.graph.unique(op), op, inputs, 1, attrs)[0]

    def computed(self, shape: Sequence[int]) -> Value:
        """Numbers that are not known when the plan is made."""
        return self.add("Relu", self.add("Expand", some(*shape), ints(*shape)))

    def done(self, outputs: Sequence[Value]) -> Graph:
        self.graph.outputs = list(outputs)
        return self.graph

    def _add(
        self, name: str, op: str, inputs: Sequence[Any], count: int, attrs: dict[str, Any]
    ) -> list[Value]:
        values = [
            x if x is None or isinstance(x, Value) else self.graph.constant(np.asarray(x))
            for x in inputs
        ]
        return list(self.graph.add(op, values, attrs, name=name, outputs=count).outputs)


def single(op: str, shape: Sequence[int], *inputs: Any, count: int = 1, **attrs: Any) -> Graph:
    """op(x, inputs…)."""
    b = Sketch(shape)
    return b.done(b.layer(op, b.x, *inputs, count=count, **attrs))


def typed(op: str, dtype: DType, shape: Sequence[int], *inputs: Any, **attrs: Any) -> Graph:
    """The same of another type."""
    b = Sketch(shape, dtype)
    return b.done(b.layer(op, b.x, *inputs, **attrs))


def pair(op: str, a: Sequence[int], other: Sequence[int], **attrs: Any) -> Graph:
    """op(x, computed second operand)."""
    b = Sketch(a)
    return b.done(b.layer(op, b.x, b.computed(other), **attrs))


def attended(
    q: Sequence[int], k: Sequence[int], v: Sequence[int], *mask: np.ndarray, **attrs: Any
) -> Graph:
    """Attention of x as queries and computed keys and values."""
    b = Sketch(q)
    return b.done(b.layer("Attention", b.x, b.computed(k), b.computed(v), *mask, **attrs))


def conv(shape: Sequence[int], outputs: int, kernel: int, group: int = 1, **attrs: Any) -> Graph:
    w = some(outputs, shape[1] // group, *[kernel] * (len(shape) - 2))
    pads = [kernel // 2] * 2 * (len(shape) - 2)
    return single("Conv", shape, w, some(outputs), group=group, **{"pads": pads, **attrs})


def residual(channels: int, kernel: int = 1, group: int = 1, side: int = 12, **attrs: Any) -> Graph:
    """A convolution that adds its own input."""
    b = Sketch((1, channels, side, side))
    y = b.add("Relu", b.x)
    w, bias = some(channels, channels // group, kernel, kernel), some(channels)
    pads = [kernel // 2] * 4
    return b.done(b.layer("Conv", y, w, bias, y, group=group, pads=pads, **attrs))


def in_bytes(
    op: str,
    shape: Sequence[int],
    weight: Sequence[int],
    *inputs: Any,
    axis: int = 0,
    again: bool = False,
    **attrs: Any,
) -> Graph:
    """op(x, weights of 8 bits with a scale for each place of `axis`, inputs…, x `again`)."""
    b = Sketch(shape)
    q = _RNG.integers(-127, 128, weight).astype(np.int8)
    scale = np.abs(some(weight[axis])) / np.float32(64) + np.float32(1e-3)
    w = b.add("DequantizeLinear", q, scale, axis=axis)
    return b.done(b.layer(op, b.x, w, *inputs, *([b.x] * again), **attrs))


def cast(to: DType) -> Graph:
    """Of numbers of both signs, most of them beyond 1."""
    b = Sketch((3, 7))
    return b.done(b.layer("Cast", b.add("Mul", b.x, np.float32(40)), to=to))


def concat(first: int) -> Graph:
    b = Sketch((1, first, 4, 5))
    return b.done(b.layer("Concat", b.x, b.add("Relu", b.x), b.x, axis=1))


def recurrent(op: str, gates: int, hidden: int, direction: str = "forward", **more: Any) -> Graph:
    """Four steps of two sequences, initial states given, all outputs taken."""
    sides = 2 if direction == "bidirectional" else 1
    states = [some(sides, 2, hidden)] * (2 if op == "LSTM" else 1)
    if more.get("layout"):
        states = [s.swapaxes(0, 1) for s in states]
    arrays = [
        some(sides, gates * hidden, 5), some(sides, gates * hidden, hidden),
        some(sides, 2 * gates * hidden), None, *states,
    ]  # fmt: skip
    attrs = {"hidden_size": hidden, "direction": direction, **more}
    shape = (2, 4, 5) if more.get("layout") else (4, 2, 5)
    return single(op, shape, *arrays, count=1 + len(states), **attrs)
