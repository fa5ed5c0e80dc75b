"""Constants that repeat a size which an input has no longer, as the new size needs them.

Exporters write the sizes of their example into a graph: a class token or a state of one sample.
Those of a Reshape are in `reshaped.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..ir import Graph, Node, Shape, Value
from ..ops import find_op
from .moving_size import MovingSize, Place, static


def adapt(moving: MovingSize, node: Node) -> bool:
    """Whether constants of a layer were replaced, before its types are inferred anew."""
    op, change = find_op(node.op), _CHANGES.get(node.op)
    if change is None and op is not None and op.layout == "elementwise":
        change = _of_each_part
    return change is not None and moving.reads(node) and change(moving, node)


def follow_resize(graph: Graph, node: Node, old: Mapping[int, Shape | None]) -> bool:
    """Whether a Resize got other sizes: an axis that kept its size keeps the new one, and one that
    became a whole number of times larger does so again. One that keeps a size without a number is
    no longer among the axes that are resized. All axes that changed follow, or none."""
    x, roi, target = node.input(0), node.input(1), node.input(3)
    before = old.get(id(x)) if x is not None else None
    stretched = node.attrs.get("keep_aspect_ratio_policy", "stretch") == "stretch"
    if x is None or not before or x.shape is None or roi is not None or not stretched:
        return False
    asked = resized_to(node, len(before))
    if target is None or asked is None or len(x.shape) != len(before):
        return False
    wanted = []
    for axis, size in asked:
        was, now = before[axis], x.shape[axis]
        if was == now:
            wanted.append((axis, size))
        elif not isinstance(was, int) or was < 1 or size % was:
            return False
        elif isinstance(now, int):
            wanted.append((axis, size // was * now))
        elif size != was:
            return False
    if wanted == asked:
        return False
    if len(wanted) < len(asked):
        node.attrs["axes"] = [axis for axis, _ in wanted]
    made = np.array([size for _, size in wanted], np.int64)
    node.set_input(3, Value(graph.unique(target.name), const=made))
    return True


def resized_to(node: Node, rank: int) -> list[tuple[int, int]] | None:
    """A Resize's axes with the sizes that it asks for, where it asks for constant sizes."""
    target = node.input(3)
    if target is None or target.const is None:
        return None
    axes = [int(a) % rank for a in node.attrs.get("axes") or range(rank)]
    sizes = target.const.ravel().tolist()
    return list(zip(axes, sizes)) if len(axes) == len(sizes) else None


def _expand(moving: MovingSize, node: Node) -> bool:
    """The size becomes 1, "as the input has it"."""
    x, target = node.input(0), node.input(1)
    place = moving.place(x)
    if x is None or place is None or target is None or target.const is None:
        return False
    sizes, before = target.const.ravel().tolist(), moving.old[id(x)] or ()
    axis = place.axis + len(sizes) - len(before)
    if axis < 0 or sizes[axis] == 1 or sizes[axis] != before[place.axis]:
        return False
    sizes[axis] = 1
    node.set_input(1, moving.sizes(target, sizes))
    return True


def _concat(moving: MovingSize, node: Node) -> bool:
    """What is one for all samples (a class token) is repeated."""
    have = [(v, p) for v in node.inputs if v is not None and (p := moving.place(v))]
    like, place = have[0]
    joined = int(node.attrs.get("axis", 0)) % len(like.shape or (0,))
    if place.inner != 1 or place.axis == joined or any(p != place for _, p in have):
        return False
    return _spread_inputs(moving, node, range(len(node.inputs)), place.axis, like, place)


def _recurrent(moving: MovingSize, node: Node) -> bool:
    """The first state and the length of one sample are those of all; states of zeros are left out.
    Neither has a number for each step, so they stay as they are where the sequence grows."""
    x, op = node.input(0), find_op(node.op)
    place, batch = moving.place(x), 0 if node.attrs.get("layout") else 1
    if x is None or op is None or place != Place(batch):
        return False
    named = {op.input_name(i): i for i in range(len(node.inputs))}
    states = [i for name, i in named.items() if name.startswith("initial")]
    lengths = [i for name, i in named.items() if name == "sequence_lens"]
    changed = False
    for i in states:
        state = node.input(i)
        if state is not None and state.const is not None and not state.const.any():
            node.set_input(i, None)
            changed = True
    changed |= _spread_inputs(moving, node, states, batch, x, place)
    return _spread_inputs(moving, node, lengths, 0, x, place) or changed


def _gather(moving: MovingSize, node: Node) -> bool:
    """Rows by their numbers in one sample (an exporter's as_strided, a shift of windows) become
    those of each: B·n → B, n → B, k → B·k."""
    x, indices, out = node.input(0), node.input(1), moving.old.get(id(node.output))
    place, axis = moving.place(x), int(node.attrs.get("axis", 0))
    if x is None or place is None or indices is None or indices.const is None or out is None:
        return False
    before, after = static(moving.old[id(x)] or ()), static(out)
    if before is None or after is None or 0 in before + after or indices.const.ndim == 0:
        return False
    axis %= len(before)
    if place != Place(axis, before[axis]) or moving.before != 1:
        return False
    y = moving.view(node, x, (*before[:axis], 1, *before[axis:]), axis)
    size = (*before[:axis], 1, *indices.const.shape, *before[axis + 1 :])
    attrs = {**node.attrs, "axis": axis + 1}
    y = moving.placed(moving.new(node, "Gather", [y, indices], attrs), size, axis)
    node.op, node.attrs = "Reshape", {}
    node.inputs = [y, moving.sizes(indices, [*after[:axis], -1, *after[axis + 1 :]])]  # type: ignore[assignment]
    return True


def _gather_nd(moving: MovingSize, node: Node) -> bool:
    """Elements of the only sample become those of each."""
    x, indices = node.input(0), node.input(1)
    place, held = moving.place(x), None if indices is None else indices.const
    if x is None or place != Place(0) or moving.before != 1 or node.attrs.get("batch_dims", 0):
        return False
    if held is None or held.ndim < 2 or held.shape[0] != 1 or held.shape[-1] < 2:
        return False
    if held[..., 0].any():
        return False
    inner = moving.graph.constant(np.ascontiguousarray(held[..., 1:]))
    node.attrs["batch_dims"] = 1
    node.set_input(1, moving.spread(node, inner, 0, x, Place(0)))
    return True


def _of_each_part(moving: MovingSize, node: Node) -> bool:
    """Constants with a number for each part of a sample (a mask for each window, in B·n) are
    repeated for each sample."""
    x = next(v for v in node.inputs if moving.place(v))
    place, before = moving.place(x), static((x and moving.old[id(x)]) or ())
    if x is None or place is None or before is None or moving.before != 1:
        return False
    at, parts = place.axis, before[place.axis]
    if parts == 1 or place.inner != parts:
        return False
    changed = False
    for i, value in enumerate(node.inputs):
        shape = None if value is None or value.const is None else value.const.shape
        axis = at if node.op == "Attention" else at - len(before) + len(shape or ())
        if value is None or not shape or axis < 0 or axis >= len(shape) or shape[axis] != parts:
            continue
        held, graph = value.const, moving.graph
        assert held is not None
        if isinstance(moving.now, int):
            y = graph.constant(np.concatenate([held] * moving.now, axis), dtype=value.dtype)
        else:
            one = graph.constant(np.expand_dims(held, axis), dtype=value.dtype)
            like = moving.view(node, x, (*before[:at], 1, *before[at:]), at)
            y = moving.spread(node, one, axis, like, Place(at))
            sizes = moving.sizes(value, [*shape[:axis], -1, *shape[axis + 1 :]])
            y = moving.new(node, "Reshape", [y, sizes], {})
        node.set_input(i, y)
        changed = True
    return changed


def _spread_inputs(
    moving: MovingSize, node: Node, which: Iterable[int], axis: int, like: Value, place: Place
) -> bool:
    """Repeats the inputs of one sample along an axis."""
    changed = False
    for i in which:
        value = node.input(i)
        shape = None if value is None else value.shape
        if value is None or moving.place(value) or shape is None or len(shape) <= axis:
            continue
        if moving.before == 1 and shape[axis] == 1:
            node.set_input(i, moving.spread(node, value, axis, like, place))
            changed = True
    return changed


_CHANGES: dict[str, Callable[[MovingSize, Node], bool]] = {
    "Attention": _of_each_part,
    "Concat": _concat,
    "Expand": _expand,
    "GRU": _recurrent,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "LSTM": _recurrent,
    "RNN": _recurrent,
}
