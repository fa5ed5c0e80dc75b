"""The operators of random graphs: each function draws one call and adds it to a Builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .graphs import Builder

CATALOG: list[Callable[[Builder], object]] = []


def drawn(weight: int = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function, to be drawn that much more often."""

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        CATALOG.extend([fn] * weight)
        return fn

    return register


SMOOTH = (
    "Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Exp", "Softplus", "Softsign", "Erf", "Sin", "Cos",
    "HardSwish", "Mish", "Identity", "Atan", "Sinh",
)  # fmt: skip


@drawn(4)
def function(b: Builder) -> None:
    x = b.value()
    if (
        np.abs(b.model.values[x]).max() < 20
    ):  # a sine of a large number is as inexact as that number
        b.call(b.pick(SMOOTH), x)


@drawn()
def function_with_numbers(b: Builder) -> None:
    op, attrs = b.pick([
        ("LeakyRelu", {"alpha": 0.3}), ("Elu", {"alpha": 0.7}), ("Selu", {}),
        ("Celu", {"alpha": 0.5}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}), ("ThresholdedRelu", {"alpha": 0.0}),
        ("Gelu", {"approximate": "none"}), ("Gelu", {"approximate": "tanh"}),
    ])  # fmt: skip
    b.call(op, b.value(), **attrs)


@drawn()
def clip(b: Builder) -> None:
    low, high = sorted(b.rng.normal(0, 1, 2).astype(np.float32))
    bounds = [b.const(low) if not b.one_in(4) else "", b.const(high) if not b.one_in(4) else ""]
    b.call("Clip", b.value(), *bounds, sharp=True)


@drawn(6)
def arithmetic(b: Builder) -> None:
    a = b.value()
    shape = b.broadcast(b.model.values[a].shape)
    other = b.const(b.floats(shape)) if b.one_in(2) else b.value()
    pair = (a, other) if b.one_in(2) else (other, a)
    b.call(b.pick(["Add", "Sub", "Mul", "Mul", "Max", "Min"]), *pair)


@drawn()
def divided(b: Builder) -> None:
    a = b.value()
    numbers = b.floats(b.broadcast(b.model.values[a].shape))
    b.call("Div", a, b.const(np.sign(numbers) + numbers + np.float32(0.01)))


@drawn()
def many(b: Builder) -> None:
    b.call(b.pick(["Sum", "Mean", "Max", "Min"]), *(b.value() for _ in range(3)))


@drawn(2)
def product(b: Builder) -> None:
    a = b.of_rank(2, 3, 4)
    if a is None:
        return
    k = b.model.values[a].shape[-1]
    batch = () if b.one_in(2) else b.broadcast(b.model.values[a].shape[:-2])
    b.call("MatMul", a, b.const(b.floats((*batch, k, int(b.rng.integers(1, 20))), k**-0.5)))


@drawn()
def product_of_values(b: Builder) -> None:
    a = b.of_rank(2, 3, 4)
    if a is None:
        return
    axes = list(range(b.model.values[a].ndim))
    if b.call("Transpose", a, perm=[*axes[:-2], axes[-1], axes[-2]], sharp=True):
        b.call("MatMul", a, b.model.calls[-1].outputs[0])


@drawn()
def gemm(b: Builder) -> None:
    a = b.of_rank(2)
    if a is None:
        return
    trans_a, trans_b = int(b.rng.integers(2)), int(b.rng.integers(2))
    k = b.model.values[a].shape[0 if trans_a else 1]
    m = b.model.values[a].shape[1 if trans_a else 0]
    n = int(b.rng.integers(1, 24))
    c = b.pick([(n,), (1, n), (m, 1), (m, n), (1,), None])
    attrs = {"transA": trans_a, "transB": trans_b, "alpha": b.pick([1.0, 0.5]),
             "beta": b.pick([1.0, 2.0])}  # fmt: skip
    extra = [] if c is None else [b.const(b.floats(c))]
    b.call("Gemm", a, b.const(b.floats((n, k) if trans_b else (k, n), k**-0.5)), *extra, **attrs)


def _window(b: Builder, size: tuple[int, int]) -> dict[str, Any]:
    kernel = [int(b.rng.integers(1, min(4, s) + 1)) for s in size]
    attrs: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [b.pick([1, 1, 2, 3]) for _ in size],
    }
    if b.one_in(4):
        attrs["auto_pad"] = b.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        # Where a stride passes the window, SAME asks for fewer pixels than there are: onnxruntime
        # refuses that in some pools, crops in others, and starts at the first pixel in Conv.
        attrs["strides"] = [min(s, k) for s, k in zip(attrs["strides"], kernel)]
    else:
        attrs["pads"] = [int(b.rng.integers(0, k)) for k in (*kernel, *kernel)]
    return attrs


@drawn(4)
def conv(b: Builder) -> None:
    x = b.of_rank(4)
    if x is None:
        return
    _, c, h, w = b.model.values[x].shape
    attrs = _window(b, (h, w))
    if b.one_in(4) and "auto_pad" not in attrs:
        attrs["dilations"] = [2, b.pick([1, 2])]
    group = b.pick([1, 1, c, *(g for g in (2, 3) if c % g == 0)])
    out = group * int(b.rng.integers(1, 6)) if group > 1 else int(b.rng.integers(1, 36))
    weight = b.floats((out, c // group, *attrs["kernel_shape"]), 0.5)
    bias = [b.const(b.floats((out,)))] if b.one_in(2) else []
    b.call("Conv", x, b.const(weight), *bias, group=group, **attrs)


@drawn()
def conv_of_a_line(b: Builder) -> None:
    x = b.of_rank(3)
    if x is None:
        return
    _, c, w = b.model.values[x].shape
    k = int(b.rng.integers(1, min(w, 4) + 1))
    weight = b.floats((int(b.rng.integers(1, 20)), c, k), 0.5)
    b.call("Conv", x, b.const(weight), pads=[k - 1, 0], strides=[b.pick([1, 2])])


@drawn()
def conv_transpose(b: Builder) -> None:
    x = b.of_rank(4)
    if x is None:
        return
    c = b.model.values[x].shape[1]
    kernel = [int(k) for k in b.rng.integers(1, 4, 2)]
    strides = [int(s) for s in b.rng.integers(1, 4, 2)]
    group = b.pick([1, 1, c])
    weight = b.floats((c, int(b.rng.integers(1, 9)), *kernel), 0.5)
    pads = [int(b.rng.integers(0, k)) for k in (*kernel, *kernel)]
    more = [int(b.rng.integers(0, s)) for s in strides]
    b.call("ConvTranspose", x, b.const(weight), strides=strides, group=group, pads=pads,
           output_padding=more)  # fmt: skip


@drawn(2)
def pool(b: Builder) -> None:
    x = b.of_rank(4)
    if x is None:
        return
    attrs = _window(b, b.model.values[x].shape[2:])
    op = b.pick(["MaxPool", "AveragePool", "LpPool"])
    if op == "AveragePool":
        attrs["count_include_pad"] = int(b.rng.integers(2))
    if op != "LpPool" and "auto_pad" not in attrs:
        attrs["ceil_mode"] = int(b.rng.integers(2))
    b.call(op, x, **attrs)


@drawn()
def pool_of_all(b: Builder) -> None:
    x = b.of_rank(3, 4)
    if x is not None:
        b.call(b.pick(["GlobalAveragePool", "GlobalMaxPool"]), x)


@drawn(2)
def reduced(b: Builder) -> None:
    x = b.value()
    rank = b.model.values[x].ndim
    count = int(b.rng.integers(1, rank + 1)) if rank else 0
    axes = b.rng.permutation(rank)[:count] - (rank if b.one_in(2) else 0)
    op = b.pick(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                 "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd"])  # fmt: skip
    b.call(op, x, b.ints(*map(int, axes)), keepdims=int(b.rng.integers(2)))


@drawn(2)
def normalized(b: Builder) -> None:
    x = b.value()
    shape = b.model.values[x].shape
    if not shape:
        return
    axis = int(b.rng.integers(len(shape)))
    op = b.pick(["Softmax", "LogSoftmax", "LayerNormalization", "LpNormalization"])
    if op == "LayerNormalization":
        scale, shift = (b.const(b.floats(shape[axis:])) for _ in range(2))
        b.call(op, x, scale, shift, axis=axis - len(shape) if b.one_in(2) else axis, epsilon=1e-2)
    else:
        b.call(op, x, axis=axis)


def _may_be_centred(x: np.ndarray) -> bool:
    """Whether rounding of the mean stays small against what is left of (N,C,*S), or its epsilon:
    of one pixel of 6424 onnxruntime leaves 0.0007, which is nothing but rounding."""
    spread = x.std(axis=tuple(range(2, x.ndim)))
    return bool(np.abs(x).max() < 30 * max(float(spread.min()), 0.1))


@drawn()
def normalized_channels(b: Builder) -> None:
    x = b.of_rank(3, 4)
    if x is None:
        return
    c = b.model.values[x].shape[1]
    numbers = [b.const(b.floats((c,))) for _ in range(3)]
    op = b.pick(["BatchNormalization", "InstanceNormalization", "LRN", "GroupNormalization"])
    if op == "BatchNormalization":
        b.call(op, x, *numbers, b.const(np.abs(b.floats((c,))) + np.float32(0.5)))
    elif op == "LRN":
        b.call(op, x, size=b.pick([1, 3, 5]), alpha=0.1)
    elif not _may_be_centred(b.model.values[x]):
        return
    elif op == "InstanceNormalization":
        b.call(op, x, *numbers[:2], epsilon=1e-2)
    else:
        groups = b.pick([g for g in (1, 2, 3, c) if c % g == 0])
        b.call(op, x, *numbers[:2], num_groups=groups, epsilon=1e-2)


@drawn()
def recurrent(b: Builder) -> None:
    x = b.of_rank(3)
    if x is None:
        return
    inputs, hidden = b.model.values[x].shape[2], int(b.rng.integers(1, 7))
    op, gates, count = b.pick([("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 2)])
    direction = b.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    w = b.const(b.floats((ways, gates * hidden, inputs), 0.4))
    r = b.const(b.floats((ways, gates * hidden, hidden), 0.4))
    bias = b.const(b.floats((ways, 2 * gates * hidden))) if b.one_in(2) else ""
    more = {"linear_before_reset": int(b.rng.integers(2))} if op == "GRU" else {}
    b.call(op, x, w, r, bias, count=count, hidden_size=hidden, direction=direction, **more)


@drawn()
def einsum(b: Builder) -> None:
    x = b.of_rank(3)
    if x is None:
        return
    i, j, k = b.model.values[x].shape
    equation, shape = b.pick([
        ("ijk,kl->ijl", (k, 3)), ("ijk,ijl->ikl", (i, j, 4)), ("ijk,jk->i", (j, k)),
        ("ijk,k->kij", (k,)),
    ])  # fmt: skip
    b.call("Einsum", x, b.const(b.floats(shape, 0.5)), equation=equation)


@drawn()
def scattered(b: Builder) -> None:
    x = b.value()
    shape = b.model.values[x].shape
    if not shape:
        return
    rows = b.rng.permutation(shape[0])[: int(b.rng.integers(1, shape[0] + 1))]
    updates = b.const(b.floats((len(rows), *shape[1:])))
    b.call("ScatterND", x, b.const(rows.reshape(-1, 1).astype(np.int64)), updates,
           reduction=b.pick(["none", "add", "mul", "max"]))  # fmt: skip


@drawn()
def sampled(b: Builder) -> None:
    x = b.of_rank(4)
    if x is None:
        return
    grid = b.rng.uniform(-1.3, 1.3, (b.model.values[x].shape[0], 3, 5, 2)).astype(np.float32)
    b.call("GridSample", x, b.const(grid), mode="linear", align_corners=int(b.rng.integers(2)),
           padding_mode=b.pick(["zeros", "border", "reflection"]))  # fmt: skip
