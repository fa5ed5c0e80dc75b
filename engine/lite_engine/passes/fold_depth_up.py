"""Volumes that grow: transposed convolutions and Resize over depth become ones over frames.

o = d·s + t·f − p   One convolution makes every s-th frame o, of the taps t that reach it, joined
                    along channels as in fold_depth; their outputs take turns.
Resize              First the frames, then the depth of (N, C, D, H·W): it works axis by axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ..ops import get_op
from ..ops.conv_transpose import transposed_window
from ._core import C, Match, P, Skip, no_match, rule, skip
from ._rewrite import constant_like, rank_of, static_shape
from ._volumes import (
    DEPTH,
    MOST,
    filled,
    known_size,
    new_before,
    of_frames,
    outside,
    pad_depth,
    slice_depth,
    unknown_operand,
    weight_of,
)


@rule("fold-deconv-depth")
class fold_deconv_depth:
    patterns = [P(("ConvTranspose", "QLinearConvTranspose"), "x", name="conv", more=True)]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if rank_of(m.x) != 5:
            return no_match(m.conv)
        if reason := unknown_operand(m.conv):
            return skip(reason, m.conv)
        if not known_size(m.x):
            return skip(tr("the input's size is not known"), m.conv)
        if filled(m.conv)["group"] != 1:
            return skip(tr("grouped"), m.conv)
        window = _window(m.conv)
        if min(window["pads"]) < 0 or not _filled_by_taps(m.conv, window):
            return skip(tr("its output is larger than what its taps reach"), m.conv)
        kernel, stride, pads = _weight(m.conv).shape[2], window["strides"][0], window["pads"]
        if max(kernel, stride) > MOST:
            return skip(tr("more than {most} taps of depth", most=MOST), m.conv)
        window_of_one = (kernel, stride, window["dilations"][0], pads[0], pads[3])
        alone = window_of_one == (1, 1, 1, 0, 0)
        return no_match(m.conv) if alone and window["out"][0] == m.x.shape[DEPTH] else None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        window = _window(m.conv)
        stride, out = window["strides"][0], [int(d) for d in window["out"]]
        count = -(-out[0] // stride)
        phases = [_taps(m.conv, window, first) for first in range(stride)]
        starts = [start for phase in phases for _, start in phase]
        before = max(0, -min(starts))
        after = max(0, max(starts) + count - int(m.x.shape[DEPTH]))
        x = pad_depth(graph, m.x, before, after, m.conv, outside(graph, m.conv))
        attrs = _attributes(m.conv, window)
        made = [
            _phase(graph, m.conv, attrs, [(w, slice_depth(graph, x, start + before, count, m.conv))
                                          for w, start in phase])
            for phase in phases
        ]  # fmt: skip
        if stride == 1:
            node = made[0].producer
            assert node is not None
            last = graph.replace([m.conv], node.op, node.inputs, attrs)
            graph.remove(node)
            return last
        apart = graph.constant(np.array([0, 0, count, 1, *out[1:]], np.int64))
        frames = [new_before(graph, m.conv, "Reshape", [y, apart]) for y in made]
        joined = new_before(graph, m.conv, "Concat", frames, {"axis": DEPTH + 1})
        whole = graph.constant(np.array([0, 0, count * stride, *out[1:]], np.int64))
        if count * stride == out[0]:
            return graph.replace([m.conv], "Reshape", [joined, whole])
        y = new_before(graph, m.conv, "Reshape", [joined, whole])
        cut = slice_depth(graph, y, 0, out[0], m.conv).producer
        assert cut is not None
        last = graph.replace([m.conv], "Slice", cut.inputs)
        graph.remove(cut)
        return last


def _weight(conv: Node) -> np.ndarray:
    w = weight_of(conv)
    assert w is not None and w.const is not None
    return w.const


def _window(conv: Node, **given: Any) -> dict[str, list[Any]]:
    x = conv.inputs[0]
    assert x is not None and x.shape is not None
    return transposed_window(x.shape, list(_weight(conv).shape[2:]), {**filled(conv), **given})


def _filled_by_taps(conv: Node, window: dict[str, list[Any]]) -> bool:
    """Does the output end in rows and columns where the attributes say, and not behind?"""
    again = _window(conv, auto_pad="NOTSET", output_shape=[], pads=window["pads"])
    return bool(again["out"] == window["out"])


def _taps(conv: Node, window: dict[str, list[Any]], first: int) -> list[tuple[np.ndarray, int]]:
    """The taps behind the frames `first`, `first` + stride, …: the weight of each, and the frame of
    x that it reads for the first of them."""
    stride, dilation = window["strides"][0], window["dilations"][0]
    place, phase = divmod(window["pads"][0] + first, stride)
    w = _weight(conv)
    found = []
    for tap in range(w.shape[2]):
        ahead, rest = divmod(tap * dilation, stride)
        if rest == phase:
            found.append((w[:, :, tap : tap + 1], place - ahead))
    return found or [(_nothing(conv, w[:, :, :1]), 0)]


def _nothing(conv: Node, w: np.ndarray) -> np.ndarray:
    """Weights that stand for 0, (C, O, 1, kH, kW)."""
    zero = np.zeros((), w.dtype)
    if conv.op != "ConvTranspose":
        point = conv.inputs[get_op(conv.op).inputs.index("w_zero_point")]
        assert point is not None and point.const is not None
        zero = point.const.reshape(-1, 1, 1, 1)
    return np.broadcast_to(zero, w.shape).copy()


def _attributes(conv: Node, window: dict[str, list[Any]]) -> dict[str, Any]:
    kept = {k: v for k, v in conv.attrs.items() if k not in ("auto_pad", "output_shape")}
    attrs = of_frames({**kept, **{k: window[k] for k in ("strides", "dilations", "pads")}})
    if extra := attrs.get("output_padding"):
        attrs["output_padding"] = [0, *extra[1:]]
    return attrs


def _phase(
    graph: Graph, conv: Node, attrs: dict[str, Any], taps: list[tuple[np.ndarray, Value]]
) -> Value:
    frames = [frame for _, frame in taps]
    weight, inputs = weight_of(conv), list(conv.inputs)
    assert weight is not None
    joined = np.concatenate([w for w, _ in taps])
    inputs[inputs.index(weight)] = constant_like(graph, joined, weight, "weight")
    inputs[0] = frames[0]
    if len(frames) > 1:
        inputs[0] = new_before(graph, conv, "Concat", frames, {"axis": 1})
    return new_before(graph, conv, conv.op, inputs, attrs)


@rule("fold-resize-depth")
class fold_resize_depth:
    patterns = [P("Resize", "x", "roi?", C("scales?"), C("sizes?"), name="resize")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if rank_of(m.x) != 5:
            return no_match(m.resize)
        attrs, x, y = filled(m.resize), static_shape(m.x), static_shape(m.resize.output)
        if x is None or y is None:
            return skip(tr("the input's size is not known"), m.resize)
        if 0 in x or 0 in y:
            return no_match(m.resize)
        if attrs["axes"] or attrs["keep_aspect_ratio_policy"] != "stretch":
            return skip(tr("it keeps the aspect ratio"), m.resize)
        if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
            return skip(tr("a region of interest is cut out"), m.resize)
        if x[:2] != y[:2]:
            return skip(tr("batch or channels are resized"), m.resize)
        return no_match(m.resize) if x[2] == y[2] or _given(m) is None else None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        attrs, given, frames = m.resize.attrs, _given(m), static_shape(m.resize.output)
        assert given is not None and frames is not None
        port, numbers = given
        depth, x = numbers[DEPTH], m.x
        kept = 1 if port == 2 else int(m.x.shape[DEPTH])
        if tuple(m.x.shape[3:]) != frames[3:]:
            of_each = [*numbers[:DEPTH], kept, *numbers[DEPTH + 1 :]]
            x = _resized(graph, m.resize, x, port, of_each, attrs)
        flat = graph.constant(np.array([0, 0, 0, -1], np.int64))
        x = new_before(graph, m.resize, "Reshape", [x, flat])
        pixels = 1 if port == 2 else frames[3] * frames[4]
        x = _resized(graph, m.resize, x, port, [*numbers[:DEPTH], depth, pixels], attrs)
        whole = graph.constant(np.array([0, 0, *frames[DEPTH:]], np.int64))
        return graph.replace([m.resize], "Reshape", [x, whole])


def _given(m: Match) -> tuple[int, list[Any]] | None:
    """The scales and where they belong among the inputs, or the sizes."""
    for port, name in ((2, "scales"), (3, "sizes")):
        array = m.array(name)
        if array is not None and array.size:
            return port, array.tolist()
    return None


def _resized(
    graph: Graph, node: Node, x: Value, port: int, numbers: list[Any], attrs: dict[str, Any]
) -> Value:
    kind = np.float32 if port == 2 else np.int64
    given = graph.constant(np.array(numbers, kind))
    return new_before(graph, node, "Resize", [x, *[None] * (port - 1), given], attrs)
