"""What the passes for volumes (N, C, D, H, W) share: the frames that a window over depth reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ..ops import get_op

DEPTH = 2
#: Taps and strides of the depth, each of which becomes a few nodes.
MOST = 64


@dataclass(frozen=True)
class Taps:
    """What one axis of a window reads: positions `tap * dilation + i * stride` for every i of
    `count`, counted from `before` cells ahead of the axis, which has `size`."""

    size: int
    kernel: int
    stride: int
    dilation: int
    before: int
    count: int

    @property
    def after(self) -> int:
        """Cells that are read behind the axis."""
        last = (self.count - 1) * self.stride + (self.kernel - 1) * self.dilation
        return max(0, last + 1 - self.size - self.before)

    @property
    def alone(self) -> bool:
        """Each cell is read once, in its place."""
        return (self.kernel, self.stride, self.before, self.after) == (1, 1, 0, 0)

    @property
    def nothing(self) -> bool:
        """Kernels find nothing over depth in the attributes, either."""
        return self.alone and self.dilation == 1


def of_frames(attrs: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a window whose depth does nothing."""
    one = {"kernel_shape": 1, "strides": 1, "dilations": 1}
    out = {k: [one[k], *v[1:]] if k in one and v else v for k, v in attrs.items()}
    if pads := list(attrs.get("pads") or ()):
        pads[0] = pads[len(pads) // 2] = 0
        out["pads"] = pads
    return out


def weight_of(conv: Node) -> Value | None:
    return conv.input(get_op(conv.op).inputs.index("w"))


def unknown_operand(conv: Node) -> str | None:
    """Why a convolution of floats or integers keeps its window: an operand is not constant."""
    weight, names = weight_of(conv), get_op(conv.op).inputs
    if weight is None or weight.const is None:
        return tr("the weight is not constant")
    points = [i for i, name in enumerate(names) if name in ("x_zero_point", "w_zero_point")]
    known = all(v is not None and v.const is not None for v in map(conv.input, points))
    return None if known else tr("the zero point is not constant")


def outside(graph: Graph, conv: Node) -> Value | None:
    """What stands for 0 around the volume that a convolution reads; None is a 0."""
    names = get_op(conv.op).inputs
    if "x_zero_point" not in names:
        return None
    zero = conv.inputs[names.index("x_zero_point")]
    assert zero is not None and zero.const is not None
    return graph.constant(zero.const.reshape(()))


def read_frames(
    graph: Graph, x: Value, taps: Taps, node: Node, around: Value | None
) -> list[Value]:
    """The frames that each tap reads; `around` is what lies around the volume, 0 unless given."""
    if taps.alone:
        return [x]
    firsts = [tap * taps.dilation for tap in range(taps.kernel)]
    if taps.stride == 1 and taps.before <= taps.count and firsts[-1] - taps.before <= taps.size:
        return [_moved(graph, x, first - taps.before, taps, node, around) for first in firsts]
    x = pad_depth(graph, x, taps.before, taps.after, node, around)
    return [slice_depth(graph, x, first, taps.count, node, taps.stride) for first in firsts]


def _moved(
    graph: Graph, x: Value, first: int, taps: Taps, node: Node, around: Value | None
) -> Value:
    """The frames of x from `first` on, which may lie outside."""
    before, after = -first, first + taps.count - taps.size
    if max(before, after) <= 0 and (before or after):
        return slice_depth(graph, x, first, taps.count, node)
    return pad_depth(graph, x, before, after, node, around)


def pad_depth(
    graph: Graph, x: Value, before: int, after: int, node: Node, around: Value | None = None
) -> Value:
    """x with more frames, where any are asked for; with fewer where numbers are negative."""
    if not before and not after:
        return x
    assert x.shape is not None
    pads = np.zeros((2, len(x.shape)), np.int64)
    pads[:, DEPTH] = before, after
    inputs = [x, graph.constant(pads.ravel()), *([around] if around is not None else [])]
    return new_before(graph, node, "Pad", inputs)


def slice_depth(
    graph: Graph, x: Value, first: int, count: int, node: Node, stride: int = 1
) -> Value:
    """`count` frames of x from `first` on."""
    numbers = (first, first + (count - 1) * stride + 1, DEPTH, stride)
    ends = [graph.constant(np.array([number], np.int64)) for number in numbers]
    return new_before(graph, node, "Slice", [x, *ends])


def new_before(
    graph: Graph,
    node: Node,
    op: str,
    inputs: Sequence[Value | None],
    attrs: dict[str, Any] | None = None,
) -> Value:
    """The output of a new node ahead of one that it stems from."""
    return graph.add(op, inputs, attrs, before=node, sources=node.sources).output


def known_size(x: Value) -> bool:
    return x.shape is not None and all(isinstance(d, int) for d in x.shape[DEPTH:])


def filled(node: Node) -> dict[str, Any]:
    return get_op(node.op).filled_attrs(node)
