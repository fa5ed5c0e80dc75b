"""The operators of random graphs that move numbers, and those with steps, which take only numbers
that are the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .graph_catalog import CATALOG, drawn

if TYPE_CHECKING:
    from .graphs import Builder

__all__ = ["CATALOG"]


# ---- operators that move numbers


@drawn(3)
def reshaped(b: Builder) -> None:
    x = b.value()
    shape = list(b.model.values[x].shape)
    if not shape:
        return
    way = b.pick(["merge", "split", "flat", "flatten", "squeeze", "unsqueeze"])
    at = int(b.rng.integers(len(shape)))
    if way == "merge" and len(shape) > 1:
        at = at or 1
        b.call("Reshape", x, b.ints(*shape[: at - 1], -1, *shape[at + 1 :]), sharp=True)
    elif way == "split" and len(shape) < 5:
        divisor = b.pick([d for d in (1, 2, 3, shape[at]) if shape[at] % d == 0])
        b.call("Reshape", x, b.ints(*shape[:at], divisor, -1, *shape[at + 1 :]), sharp=True)
    elif way == "flat":
        b.call("Reshape", x, b.ints(0, -1) if len(shape) > 1 else b.ints(-1), sharp=True)
    elif way == "flatten":
        b.call("Flatten", x, axis=at, sharp=True)
    elif way == "squeeze":
        b.call("Squeeze", x, sharp=True)
    elif len(shape) < 5:
        b.call("Unsqueeze", x, b.ints(at), sharp=True)


@drawn(3)
def transposed(b: Builder) -> None:
    x = b.value()
    b.call(
        "Transpose", x, perm=[int(i) for i in b.rng.permutation(b.model.values[x].ndim)], sharp=True
    )


def _goes_with(shape: Sequence[int], other: Sequence[int], axis: int) -> bool:
    """Are the sizes alike except along an axis?"""
    return len(shape) == len(other) and all(
        a == b for i, (a, b) in enumerate(zip(shape, other)) if i != axis
    )


@drawn(2)
def joined(b: Builder) -> None:
    x = b.value()
    shape = list(b.model.values[x].shape)
    if not shape:
        return
    axis, parts = int(b.rng.integers(len(shape))), [x]
    for _ in range(int(b.rng.integers(1, 3))):
        other = [*shape]
        other[axis] = int(b.rng.integers(1, 5))
        same = [n for n in b.usable if _goes_with(b.model.values[n].shape, shape, axis)]
        parts.append(b.pick(same) if b.one_in(2) else b.const(b.floats(other)))
    b.call("Concat", *parts, axis=axis - len(shape) if b.one_in(3) else axis, sharp=True)


@drawn(2)
def split(b: Builder) -> None:
    x = b.value()
    shape = b.model.values[x].shape
    axis = next((i for i in b.rng.permutation(len(shape)) if shape[i] > 1), None)
    if axis is None:
        return
    cut = int(b.rng.integers(1, shape[axis]))
    b.call("Split", x, b.ints(cut, shape[axis] - cut), count=2, axis=int(axis), sharp=True)


@drawn(2)
def sliced(b: Builder) -> None:
    x = b.value()
    shape = b.model.values[x].shape
    if not shape:
        return
    axis = int(b.rng.integers(len(shape)))
    size, step = shape[axis], b.pick([1, 1, 2, -1, -2])
    first, last = sorted(int(i) for i in b.rng.integers(0, size + 1, 2))
    ends = (first, last) if step > 0 else (last, first - size - 1 if first == 0 else first - 1)
    b.call("Slice", x, *map(b.ints, (*ends, axis, step)), sharp=True)


@drawn()
def padded(b: Builder) -> None:
    x = b.value()
    shape = b.model.values[x].shape
    mode = b.pick(["constant", "edge", "reflect", "wrap"])
    most = [3 if mode == "constant" else max(1, d) for d in shape]
    pads = [int(b.rng.integers(0, m)) for m in (*most, *most)]
    value = [b.const(np.float32(0.5))] if mode == "constant" and b.one_in(2) else []
    b.call("Pad", x, b.ints(*pads), *value, mode=mode, sharp=True)


@drawn()
def gathered(b: Builder) -> None:
    x = b.value()
    shape = b.model.values[x].shape
    if not shape:
        return
    axis = int(b.rng.integers(len(shape)))
    size = shape[axis]
    indices = b.rng.integers(-size, size, b.pick([(), (3,), (2, 2)]))
    b.call("Gather", x, b.const(np.asarray(indices, np.int64)), axis=axis, sharp=True)


@drawn()
def tiled(b: Builder) -> None:
    x = b.value()
    rank = b.model.values[x].ndim
    if b.one_in(2):
        b.call("Tile", x, b.ints(*(int(r) for r in b.rng.integers(1, 3, rank))), sharp=True)
    else:
        shape = [d if d > 1 else int(b.rng.integers(1, 4)) for d in b.model.values[x].shape]
        b.call("Expand", x, b.ints(*shape), sharp=True)


@drawn()
def shuffled(b: Builder) -> None:
    x = b.of_rank(4)
    if x is None:
        return
    _, c, h, w = b.model.values[x].shape
    if c % 4 == 0 and b.one_in(2):
        b.call("DepthToSpace", x, blocksize=2, mode=b.pick(["DCR", "CRD"]), sharp=True)
    elif h % 2 == 0 and w % 2 == 0:
        b.call("SpaceToDepth", x, blocksize=2, sharp=True)


@drawn()
def resized(b: Builder) -> None:
    x = b.of_rank(4)
    if x is None:
        return
    n, c = b.model.values[x].shape[:2]
    mode = b.pick(["nearest", "linear", "cubic"])
    attrs: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": b.pick(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}  # fmt: skip
    if mode == "nearest":
        attrs["nearest_mode"] = b.pick(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if b.one_in(2):
        b.call("Resize", x, "", b.const(np.array([1, 1, 2, 2], np.float32)), **attrs)
    else:
        sizes = b.ints(n, c, *(int(s) for s in b.rng.integers(1, 12, 2)))
        b.call("Resize", x, "", "", sizes, **attrs)


# ---- integers: of numbers that are the same everywhere


@drawn(2)
def whole_numbers(b: Builder) -> None:
    """float → int → arithmetic → float"""
    x = b.value()
    if x not in b.sharp or not b.call("Round", x, sharp=True):
        return
    kind = b.pick([np.int32, np.int64])
    to = {np.int32: 6, np.int64: 7}[kind]
    if not b.call("Cast", b.model.calls[-1].outputs[0], to=to, sharp=True):
        return
    q = b.model.calls[-1].outputs[0]
    numbers = b.rng.integers(1, 6, b.broadcast(b.model.values[q].shape)).astype(kind)
    op = b.pick(["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "ReduceSum"])
    if op == "ReduceSum":
        done = b.call(op, q, sharp=True)
    else:
        done = b.call(op, q, b.const(numbers), sharp=True)
    if done:
        b.call("Cast", b.model.calls[-1].outputs[0], to=1, sharp=True)


@drawn()
def quantized(b: Builder) -> None:
    """QuantizeLinear → DequantizeLinear"""
    x = b.value()
    if x not in b.sharp:
        return
    kind = b.pick([np.int8, np.uint8, np.int16])
    parameters = b.const(np.float32(0.037)), b.const(kind(3))
    if b.call("QuantizeLinear", x, *parameters, sharp=True):
        b.call("DequantizeLinear", b.model.calls[-1].outputs[0], *parameters, sharp=True)


# ---- operators with steps: only on numbers that are the same everywhere


@drawn()
def rounded(b: Builder) -> None:
    x = b.value()
    if x in b.sharp:
        b.call(b.pick(["Floor", "Ceil", "Round", "Sign"]), x, sharp=True)


@drawn()
def compared(b: Builder) -> None:
    x = b.value()
    if x not in b.sharp:
        return
    other = b.const(b.floats(b.broadcast(b.model.values[x].shape)))
    if b.call(b.pick(["Greater", "Less", "GreaterOrEqual", "LessOrEqual"]), x, other, sharp=True):
        b.call("Where", b.model.calls[-1].outputs[0], b.value(), x)


@drawn()
def ranked(b: Builder) -> None:
    x = b.value()
    shape = b.model.values[x].shape
    if x not in b.sharp or not shape:
        return
    axis = int(b.rng.integers(len(shape)))
    if b.one_in(2):
        b.call(b.pick(["ArgMax", "ArgMin"]), x, axis=axis, keepdims=int(b.rng.integers(2)))
    else:
        count = int(b.rng.integers(1, shape[axis] + 1))
        b.call("TopK", x, b.ints(count), count=2, axis=axis, largest=int(b.rng.integers(2)))


@drawn()
def summed_up(b: Builder) -> None:
    x = b.value()
    if b.model.values[x].ndim:
        axis = b.const(np.array(int(b.rng.integers(b.model.values[x].ndim)), np.int64))
        b.call("CumSum", x, axis, exclusive=int(b.rng.integers(2)), reverse=int(b.rng.integers(2)))
