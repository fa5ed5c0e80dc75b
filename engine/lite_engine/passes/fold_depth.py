"""Windows over depth become windows over frames, which kernels for images know.

    W ∗ x      =  [W₀ … W_k] ∗ [x₀ … x_k]   x_t: the frames that tap t reads, joined along channels
    W ∗ x      =  Σ W_t ∗ x_t               with groups, whose channels lie apart, or many taps
    W ∗ x      =  W' ∗ x'                   integers with groups: x' has row h of x₀, of x₁, … below
                                            each other, W' the rows of W₀, W₁, … in the same way
    W ∗ x      =  W″ ∗ x″                   over two axes alone: x″ has the third in one of them
    max of x   =  max of the pooled frames' taps; averages in the same way

The frames of all depths of a volume (N, C, D, H, W) are images to a kernel. Behind the fusions, so
that a residual and an activation come along.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Shape, Value
from ..ops._conv_window import conv_window
from ..ops.pool import Window
from ._core import Match, P, Skip, no_match, rule, skip
from ._rewrite import constant_like, rank_of
from ._volumes import (
    DEPTH,
    MOST,
    Taps,
    filled,
    known_size,
    new_before,
    of_frames,
    outside,
    read_frames,
    unknown_operand,
    weight_of,
)

#: Joined taps take so many times the memory of the input.
_MOST_JOINED = 7


@rule("fold-conv-depth")
class fold_conv_depth:
    """QLinearConv likewise, but without sums: those of integers have no type there."""

    patterns = [P(("Conv", "QLinearConv"), "x", name="conv", more=True)]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if rank_of(m.x) != 5:
            return no_match(m.conv)
        if reason := unknown_operand(m.conv):
            return skip(reason, m.conv)
        if not known_size(m.x):
            return skip(tr("the input's size is not known"), m.conv)
        taps = _conv_taps(m.conv)
        if taps.nothing:
            return no_match(m.conv)
        if taps.kernel > MOST:
            return skip(tr("more than {most} taps of depth", most=MOST), m.conv)
        rows = _grouped_integers(m.conv) and _rows_apart(m.conv) and not _idle_axis(_sizes(m.conv))
        if taps.kernel > 1 and rows:
            return skip(tr("grouped, and its rows are dilated"), m.conv)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        conv, taps = m.conv, _conv_taps(m.conv)
        weight = weight_of(conv)
        assert weight is not None and weight.const is not None
        window = _sizes(conv)
        empty = 0 in (*(m.x.shape or ()), *(conv.output.shape or ()))
        if taps.kernel > 1 and not empty and (axis := _idle_axis(window)):
            return _as_image(graph, conv, weight, {**conv.attrs, **window}, axis)
        attrs = of_frames({**conv.attrs, **window})
        attrs.pop("auto_pad", None)
        frames = read_frames(graph, m.x, taps, conv, outside(graph, conv))
        inputs = list(conv.inputs)
        at = inputs.index(weight)
        many = conv.op == "Conv" and len(frames) > _MOST_JOINED
        grouped = attrs.get("group", 1) != 1
        if conv.op == "Conv" and (many or grouped):
            return _sum(graph, conv, frames, attrs)
        if len(frames) == 1:
            inputs[0], array = frames[0], weight.const
        elif grouped:
            inputs[0], array = _rows_joined(graph, m.x, conv, frames), _rows_of_taps(weight.const)
            attrs = _among_rows(attrs, len(frames))
        else:
            inputs[0] = new_before(graph, conv, "Concat", frames, {"axis": 1})
            # (O, C, k, …) → (O, k·C, 1, …): the channels of tap 0 first
            array = np.moveaxis(weight.const, 2, 1)
            array = array.reshape(len(array), -1, 1, *array.shape[3:])
        inputs[at] = constant_like(graph, array, weight, "weight")
        return graph.replace([conv], conv.op, inputs, attrs)


def _sizes(conv: Node) -> dict[str, list[int]]:
    """The window's attributes, each with all of its numbers."""
    x, weight = conv.inputs[0], weight_of(conv)
    assert x is not None and weight is not None
    names = ("kernel_shape", "strides", "pads", "dilations")
    return dict(zip(names, conv_window(x.type, weight.type, filled(conv)), strict=True))


def _idle_axis(window: dict[str, list[int]]) -> int:
    """H or W (1 or 2 of D, H, W) along which the window does nothing while that before it moves by
    one, so that both are one axis of an image; 0 if there is none."""
    for axis in (2, 1):
        ends = window["pads"][axis], window["pads"][axis + 3]
        alone = (window["kernel_shape"][axis], window["strides"][axis], *ends) == (1, 1, 0, 0)
        if alone and window["strides"][axis - 1] == 1:
            return axis
    return 0


def _as_image(graph: Graph, conv: Node, weight: Value, attrs: dict[str, Any], axis: int) -> Node:
    """The convolution of an image in which `axis` has come into the one before it: what were
    neighbours there lie its size apart."""
    x, y = conv.inputs[0], conv.output
    assert x is not None and x.shape is not None and y.shape is not None
    assert weight.const is not None
    size = _whole(x.shape[DEPTH:])[axis]

    def merged(numbers: list[int]) -> list[int]:
        apart = [n * size if i == axis - 1 else n for i, n in enumerate(numbers)]
        return [n for i, n in enumerate(apart) if i != axis]

    image = {
        "kernel_shape": [n for i, n in enumerate(attrs["kernel_shape"]) if i != axis],
        "strides": [n for i, n in enumerate(attrs["strides"]) if i != axis],
        "pads": merged(attrs["pads"][:3]) + merged(attrs["pads"][3:]),
        "dilations": merged(attrs["dilations"]),
    }
    kept = {k: v for k, v in attrs.items() if k != "auto_pad"}
    inputs = list(conv.inputs)
    for at, value in enumerate(inputs):
        if value is weight:
            array = weight.const.squeeze(DEPTH + axis)
            inputs[at] = constant_like(graph, array, weight, "weight")
        elif value is not None and value.shape is not None and rank_of(value) == 5:
            dims = np.array([0, 0, *_together(value.shape[DEPTH:], axis)], np.int64)
            inputs[at] = new_before(graph, conv, "Reshape", [value, graph.constant(dims)])
    made = new_before(graph, conv, conv.op, inputs, {**kept, **image})
    volume = np.array([0, 0, *_whole(y.shape[DEPTH:])], np.int64)
    return graph.replace([conv], "Reshape", [made, graph.constant(volume)])


def _whole(dims: Shape) -> list[int]:
    return [d for d in dims if isinstance(d, int)]


def _together(dims: Shape, axis: int) -> list[int]:
    """Sizes of D, H, W with `axis` in the one before it."""
    sizes = _whole(dims)
    return [*sizes[: axis - 1], sizes[axis - 1] * sizes[axis], *sizes[axis + 1 :]]


def _grouped_integers(conv: Node) -> bool:
    return conv.op == "QLinearConv" and bool(conv.attrs.get("group", 1) != 1)


def _rows_apart(conv: Node) -> bool:
    """Whether other rows lie between those that a window reads."""
    window = _sizes(conv)
    return window["kernel_shape"][1] > 1 and window["dilations"][1] > 1


def _rows_joined(graph: Graph, x: Value, conv: Node, frames: list[Value]) -> Value:
    """k frames (N, C, D, H, W) of x as (N, C, D, H·k, W): their rows h below each other."""
    assert x.shape is not None
    height, width = (int(d) for d in x.shape[DEPTH + 1 :])  # type: ignore[arg-type]
    wide = new_before(graph, conv, "Concat", frames, {"axis": -1})
    dims = np.array([0, 0, 0, height * len(frames), width], np.int64)  # 0: as it is
    return new_before(graph, conv, "Reshape", [wide, graph.constant(dims)])


def _rows_of_taps(weight: np.ndarray) -> np.ndarray:
    """(O, C, k, KH, KW) → (O, C, 1, KH·k, KW)"""
    array = np.moveaxis(weight, 2, 3)
    return array.reshape(*array.shape[:2], 1, -1, array.shape[-1])


def _among_rows(attrs: dict[str, Any], taps: int) -> dict[str, Any]:
    """A window of frames as one of rows that are `taps` times as many."""
    (depth, height, width), (_, down, right) = attrs["kernel_shape"], attrs["strides"]
    front, top, left, back, bottom, other = attrs["pads"]
    window = {
        "kernel_shape": [depth, height * taps, width],
        "strides": [1, down * taps, right],
        "pads": [front, top * taps, left, back, bottom * taps, other],
        "dilations": [1, 1, attrs["dilations"][2]],
    }
    return {**attrs, **window}


def _sum(graph: Graph, conv: Node, frames: list[Value], attrs: dict[str, Any]) -> Node:
    """One convolution for each tap; each adds what those before it made."""
    weight = conv.inputs[1]
    plain = {k: v for k, v in attrs.items() if not k.startswith("activation")}
    assert weight is not None and weight.const is not None
    bias, total = conv.input(2), conv.input(3)
    for tap, frame in enumerate(frames):
        part = constant_like(graph, weight.const[:, :, tap : tap + 1], weight, "weight")
        inputs: list[Value | None] = [frame, part, bias, total]
        while inputs[-1] is None:
            inputs.pop()
        if tap + 1 == len(frames):
            return graph.replace([conv], "Conv", inputs, attrs)
        bias, total = None, new_before(graph, conv, "Conv", inputs, plain)
    raise AssertionError("a window has taps")


def _conv_taps(conv: Node) -> Taps:
    x = conv.inputs[0]
    assert x is not None and x.shape is not None
    kernel, strides, pads, dilations = _sizes(conv).values()
    size, reach = int(x.shape[DEPTH] or 0), (kernel[0] - 1) * dilations[0] + 1  # type: ignore[call-overload]
    count = (size + pads[0] + pads[3] - reach) // strides[0] + 1
    return Taps(size, kernel[0], strides[0], dilations[0], pads[0], count)


@rule("fold-pool-depth")
class fold_pool_depth:
    patterns = [P(("MaxPool", "AveragePool"), "x", name="pool")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if rank_of(m.x) != 5:
            return no_match(m.pool)
        if len(m.pool.outputs) > 1:
            return skip(tr("its indices are an output"), m.pool)
        if not known_size(m.x):
            return skip(tr("the input's size is not known"), m.pool)
        taps = _pool_taps(m.pool)
        if taps.kernel > MOST:
            return skip(tr("more than {most} taps of depth", most=MOST), m.pool)
        return no_match(m.pool) if taps.nothing else None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        pool, taps = m.pool, _pool_taps(m.pool)
        x, largest = m.x, pool.op == "MaxPool"
        attrs = of_frames(pool.attrs)
        if taps.alone:
            return graph.replace([pool], pool.op, [x], attrs)
        if _moves(attrs):
            x = new_before(graph, pool, pool.op, [x], attrs)
            x.dtype, x.shape = m.x.dtype, (*m.x.shape[:3], *pool.output.shape[3:])
        around = graph.constant(np.array(_lowest(m.x), m.x.dtype.np)) if largest else None
        frames = read_frames(graph, x, taps, pool, around)
        if largest:
            if len(frames) == 1:
                made = frames[0].producer
                assert made is not None
                cut = graph.replace([pool], "Slice", made.inputs)
                graph.remove(made)
                return cut
            first = reduce(lambda a, b: new_before(graph, pool, "Max", [a, b]), frames[:-1])
            return graph.replace([pool], "Max", [first, frames[-1]])
        total = reduce(lambda a, b: new_before(graph, pool, "Add", [a, b]), frames)
        share = _shares(pool, taps)
        factor = constant_like(graph, share.astype(m.x.dtype.np), None, "share")
        return graph.replace([pool], "Mul", [total, factor])


def _moves(attrs: dict[str, Any]) -> bool:
    """Does the window of frames do anything?"""
    beyond = [*(attrs.get("strides") or ()), *attrs["kernel_shape"]]
    return set(beyond) != {1} or any(attrs.get("pads") or ())


def _lowest(x: Value) -> float | int:
    kind = x.type.dtype.np
    return -np.inf if np.dtype(kind).kind == "f" else int(np.iinfo(kind).min)


def _window(pool: Node) -> Window:
    x = pool.inputs[0]
    assert x is not None and x.shape is not None
    return Window(x.shape, filled(pool))


def _pool_taps(pool: Node) -> Taps:
    x, window = pool.inputs[0], _window(pool)
    assert x is not None and x.shape is not None
    size, count = int(x.shape[DEPTH] or 0), int(window.out[0] or 0)  # type: ignore[call-overload]
    first = (window.kernel[0], window.strides[0], window.dilations[0], window.pads[0])
    return Taps(size, *first, count)


def _shares(pool: Node, taps: Taps) -> np.ndarray:
    """1 / the cells of depth that count, (1, 1, D', 1, 1), or one number if it is the same for all.
    Cells behind the declared padding, which only ceil_mode reaches, never count."""
    cells = np.arange(taps.count)[:, None] * taps.stride + np.arange(taps.kernel) * taps.dilation
    low, high = taps.before, taps.before + taps.size
    if filled(pool)["count_include_pad"]:
        low, high = 0, high + _window(pool).pads[3]
    counts = np.maximum(((cells >= low) & (cells < high)).sum(axis=1), 1)
    if len(set(counts.tolist())) == 1:
        return np.array(1 / counts[0])
    return np.asarray(1 / counts).reshape(1, 1, -1, 1, 1)
