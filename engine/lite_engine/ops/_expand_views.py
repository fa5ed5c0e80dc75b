"""Operators written out as operators on images, between views, for backends whose kernels take only
images. Channels-last tensors stay where they are.

volumes      (N, C, D, H, W) whose window leaves depth alone → (N·D, C, H, W)
lines        ConvTranspose of (N, C, L) → (N, C, 1, L)
blocks       DepthToSpace and SpaceToDepth → Reshape, Transpose, Reshape
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import Graph, Node, Value
from ._conditions import within_frames
from ._core import get_op
from ._writer import Condition, Rewrite, Types, Writer

#: Of a window: what has one number for each axis, and what has two.
_PER_AXIS = ("kernel_shape", "strides", "dilations", "output_padding")
_SWAP = [0, 2, 1, 3, 4]


def is_fixed(node: Node, types: Types) -> bool:
    return all(t is None or t.is_static for t in types)


def _is_volume(node: Node, types: Types) -> bool:
    x, y = types[0], node.output.shape
    if not is_fixed(node, types) or x is None or y is None or len(node.outputs) != 1:
        return False
    return x.rank == 5 and 0 not in (*x.dims, *y)


def _has_frames(node: Node, types: Types) -> bool:
    return _is_volume(node, types) and within_frames(node, types) is True


def _conv_has_frames(node: Node, types: Types) -> bool:
    ends = not node.attrs.get("output_shape") and not any(node.attrs.get("output_padding", [])[:1])
    return ends and _has_frames(node, types) and types[1] is not None and types[1].const is not None


def _resizes_frames(node: Node, types: Types) -> bool:
    y, x = node.output.shape, types[0]
    given = any(t is not None and t.const is not None and t.const.size for t in types[2:4])
    kept = x is not None and y is not None and x.shape is not None and x.shape[:3] == y[:3]
    return _is_volume(node, types) and kept and given and not node.attrs.get("axes")


def sizes_of(value: Value) -> list[int]:
    """Of a specialised graph, where they are known."""
    return [d for d in value.shape or () if isinstance(d, int)]


def _to_frames(write: Writer, value: Value) -> Value:
    n, c, d, *image = sizes_of(value)
    return write.shaped(write("Transpose", value, perm=_SWAP), n * d, c, *image)


def _last(graph: Graph, write: Writer, node: Node, frames: Value) -> None:
    """From frames back to the volume that the node makes."""
    n, c, d, *image = sizes_of(node.output)
    graph.replace([node], "Transpose", [write.shaped(frames, n, d, c, *image)], {"perm": _SWAP})


def _window(node: Node) -> dict[str, Any]:
    attrs = {k: list(v)[1:] if k in _PER_AXIS else v for k, v in node.attrs.items()}
    if pads := list(node.attrs.get("pads") or ()):
        attrs["pads"] = [*pads[1:3], *pads[4:6]]
    return attrs


def _frames_of_window(graph: Graph, node: Node, types: Types) -> None:
    write, inputs = Writer(graph, node), list(node.inputs)
    names = get_op(node.op).inputs
    for i, value in enumerate(inputs):
        name = names[i].rstrip("?")
        if value is None or name == "b":
            continue
        if name == "w":
            assert value.const is not None
            inputs[i] = graph.constant(value.const[:, :, 0])
        else:
            inputs[i] = _to_frames(write, value)
    _last(graph, write, node, write(node.op, *inputs, **_window(node)))


def _frames_of_resize(graph: Graph, node: Node, types: Types) -> None:
    write, x = Writer(graph, node), node.inputs[0]
    assert x is not None
    frames = _to_frames(write, x)
    given: list[np.ndarray | None] = [None, None, None]
    for port in (2, 3):
        info = types[port] if port < len(types) else None
        if info is not None and info.const is not None and info.const.size:
            numbers = info.const[[0, 1, 3, 4]]
            if port == 3:
                numbers[0] = int(frames.shape[0])  # type: ignore[index, arg-type]
            given[port - 1] = numbers
    while given[-1] is None:
        given.pop()
    _last(graph, write, node, write("Resize", frames, *given, **node.attrs))


def _is_line(node: Node, types: Types) -> bool:
    x, w = types[0], types[1]
    known = is_fixed(node, types) and x is not None and x.rank == 3
    return known and w is not None and w.const is not None


def _deconv(graph: Graph, node: Node, types: Types) -> None:
    """Of volumes, or of lines as images of one row."""
    if not _is_line(node, types):
        return _frames_of_window(graph, node, types)
    write, (x, w, *more) = Writer(graph, node), node.inputs
    assert x is not None and w is not None and w.const is not None
    one = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_padding": 0, "output_shape": 1}
    attrs = {k: [one[k], *v] if k in one and v else v for k, v in node.attrs.items()}
    if pads := list(node.attrs.get("pads") or ()):
        attrs["pads"] = [0, pads[0], 0, pads[1]]
    if sizes := list(node.attrs.get("output_shape") or ()):
        attrs["output_shape"] = [1, sizes[-1]]
    n, c, length = sizes_of(x)
    image = write.shaped(x, n, c, 1, length)
    y = write("ConvTranspose", image, w.const[:, :, None], *more, **attrs)
    shape = graph.constant(np.array(node.output.shape, np.int64))
    graph.replace([node], "Reshape", [y, shape])
    return None


def _blocks(graph: Graph, node: Node, types: Types) -> None:
    write, x, b = Writer(graph, node), node.inputs[0], int(node.attrs["blocksize"])
    assert x is not None
    n, c, h, w = sizes_of(x)
    block_first = node.attrs.get("mode", "DCR") == "DCR"
    if node.op == "SpaceToDepth":
        sizes = [n, c, h // b, b, w // b, b]
        perm = [0, 3, 5, 1, 2, 4] if block_first else [0, 1, 3, 5, 2, 4]
    elif block_first:
        sizes, perm = [n, b, b, c // b**2, h, w], [0, 3, 4, 1, 5, 2]
    else:
        sizes, perm = [n, c // b**2, b, b, h, w], [0, 1, 4, 2, 5, 3]
    moved = write("Transpose", write.shaped(x, *sizes), perm=perm)
    graph.replace([node], "Reshape", [moved, graph.constant(np.array(node.output.shape, np.int64))])


#: Operator → whether a node can be written out, and how.
VIEWS: dict[str, tuple[Condition, Rewrite]] = {
    "Conv": (_conv_has_frames, _frames_of_window),
    "ConvTranspose": (lambda n, t: _is_line(n, t) or _conv_has_frames(n, t), _deconv),
    "MaxPool": (_has_frames, _frames_of_window),
    "AveragePool": (_has_frames, _frames_of_window),
    "Resize": (_resizes_frames, _frames_of_resize),
    "DepthToSpace": (is_fixed, _blocks),
    "SpaceToDepth": (is_fixed, _blocks),
}
