"""Physical layouts as permutations: physical axis i holds logical axis layout[i]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Node, Value
from ..ops import OpDef, get_op
from .model import Layout, channels_last, row_major


def physical_dims(shape: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Logical shape → dims in memory order."""
    return tuple(shape[axis] for axis in layout)


def same_bytes(shape: Sequence[int], a: Layout, b: Layout) -> bool:
    """Whether two layouts of one shape put every element at the same place.

    Axes of size 1 do not matter: (N,C,1,1) is the same in row-major and channels-last.
    """
    return [x for x in a if shape[x] != 1] == [x for x in b if shape[x] != 1]


def transposed(layout: Layout, perm: Sequence[int]) -> Layout:
    """Layout of Transpose's output over the same bytes: output axis j is input axis perm[j]."""
    return tuple(list(perm).index(axis) for axis in layout)


def without_axes(layout: Layout, axes: Sequence[int]) -> Layout:
    """Layout after logical `axes` are removed (a reduction without keepdims)."""
    kept = [axis for axis in sorted(layout) if axis not in axes]
    return tuple(kept.index(axis) for axis in layout if axis not in axes)


def unsqueezed(layout: Layout, axes: Sequence[int]) -> Layout:
    """Layout after logical `axes` of size 1 are inserted: the old order, new axes outermost."""
    rank = len(layout) + len(axes)
    new_index = [axis for axis in range(rank) if axis not in axes]
    return (*sorted(axes), *(new_index[axis] for axis in layout))


def reshaped(
    shape: Sequence[int], out_shape: Sequence[int], layout: Layout
) -> tuple[Layout, Layout]:
    """Layouts that make a Reshape a view: the one its input needs, the one its output then has.

    The shapes are cut into groups of axes with equal products ((N),(C),(H·W) for NCHW → N,C,HW).
    A group's input axes must lie side by side in logical order; the groups keep the order that the
    innermost axes of the input's memory have. So splitting an axis never copies, and
    channels-last survives.
    """
    groups = _equal_groups(shape, out_shape)
    order = sorted(groups, key=lambda g: max((layout.index(a) for a in g[0]), default=-1))
    return tuple(a for g in order for a in g[0]), tuple(a for g in order for a in g[1])


def _equal_groups(
    shape: Sequence[int], out_shape: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """Pairs of axis lists (input, output) with equal products, as many as there are."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(shape) or j < len(out_shape):
        left: list[int] = []
        right: list[int] = []
        a = b = 1
        if i < len(shape) and j < len(out_shape) and shape[i] == out_shape[j]:
            groups.append(([i], [j]))
            i, j = i + 1, j + 1
            continue
        while True:
            if a == b and (left or right):
                break
            if i < len(shape) and (a <= b or j >= len(out_shape)):
                a *= shape[i]
                left.append(i)
                i += 1
            elif j < len(out_shape):
                b *= out_shape[j]
                right.append(j)
                j += 1
            else:
                break
        groups.append((left, right))
    return groups


def remap_attrs(op: OpDef, attrs: dict[str, Any], layout: Layout) -> dict[str, Any]:
    """Axis numbers and per-axis lists of the operator, from logical to physical axes. Lists that
    belong to a list of axes keep its order."""
    rank = len(layout)
    if layout == row_major(rank):
        return attrs
    out, listed = dict(attrs), False
    for key in op.axis_attrs:
        value = out.get(key)
        listed |= not isinstance(value, int | None)
        if isinstance(value, int):
            out[key] = layout.index(value % rank)
        elif value is not None:
            out[key] = [layout.index(int(axis) % rank) for axis in value]
    for key in () if listed else op.per_axis_attrs:
        value = out.get(key)
        if value is None or len(value) == 0:
            continue
        if len(value) not in (rank, 2 * rank):
            raise ShapeError(
                tr(
                    "{key} has {entries} entries, which does not fit rank {rank}",
                    key=key,
                    entries=len(value),
                    rank=rank,
                ),
                where=op.name,
            )
        half = [value[i : i + rank] for i in range(0, len(value), rank)]
        out[key] = [part[axis] for part in half for axis in layout]
    return out


def shared(layouts: Sequence[Layout], output: Value) -> Layout:
    """The one of the operands' layouts that turns the fewest of them and of those that the output's
    readers ask for; the first of equals."""
    if len(set(layouts)) == 1:
        return layouts[0]
    rank = len(layouts[0])
    asked = {"channels_last": channels_last(rank), "rowmajor": row_major(rank)}
    read = {asked.get(get_op(r.op, r.name).layout) for r in output.readers}
    return max(layouts, key=lambda one: layouts.count(one) + (one in read))


def largest(values: Sequence[Value | None]) -> Value:
    """The one that costs most to turn; a constant is turned when it is packed."""
    return max(filter(None, values), key=lambda v: (v.const is None, v.type.size))


def inserted_axes(out: tuple[int, ...], node: Node) -> list[int] | None:
    """Axes that an Unsqueeze to the shape `out` inserts, None when they are not constant."""
    axes = node.input(1)
    if axes is None or axes.const is None:
        return None
    return [int(a) % len(out) for a in axes.const.ravel()]


def of_step(op: OpDef, node: Node, natural: Callable[[Value], Layout]) -> Layout:
    """The layout in which a step works: that of its main input. `natural` is the layout that a
    value has."""
    main = node.inputs[0]
    assert main is not None
    rank = len(main.shape or ())
    if op.layout == "channels_last":
        return channels_last(rank)
    if op.layout == "axis" and len(node.outputs[0].shape or ()) in (rank, rank - 1):
        return natural(largest(node.inputs) if op.name == "Concat" else main)
    if op.layout == "elementwise":
        out_rank = len(node.output.shape or ())
        full = [v for v in node.inputs if v is not None and len(v.shape or ()) == out_rank]
        sizes = [(v.type.size, v.const is None) for v in full]
        most = [natural(v) for v, n in zip(full, sizes) if n == max(sizes)]
        return shared(most, node.output) if full else row_major(out_rank)
    return row_major(rank)


def of_output(op: OpDef, value: Value, layout: Layout, attrs: dict[str, Any]) -> Layout:
    """The layout of an output of a step that works in `layout`, with `attrs` in physical axes."""
    rank = len(value.shape or ())
    if op.layout == "channels_last":
        return channels_last(rank)
    if op.layout == "rowmajor" or rank == 0:
        return row_major(rank)
    if rank == len(layout):
        return layout
    if rank < len(layout):
        axes = [a for key in op.axis_attrs for a in np.atleast_1d(attrs.get(key, []))]
        return without_axes(layout, [int(a) % len(layout) for a in axes])
    return row_major(rank)
