"""Operators that move or rename elements: reshape, transpose, concat, split, slice, expand, pad."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ....ir import DType, Value
from ..._slices import python_slice
from ..program import MAX_RANK
from ..registry import Call, translates
from .conv import channels_first, channels_last, is_channels_last


@translates("reshape", "reshape2")
def _(op: Call) -> None:
    shape = op.list_input("Shape", "ShapeTensor", "shape")
    if op["Shape"] is not None and op.all("ShapeTensor"):
        shape = op.list_input("", "ShapeTensor", [])
    op.set("Out", op.node("Reshape", [op.need("X"), shape]))


@translates("transpose", "transpose2")
def _(op: Call) -> None:
    x = op.need("X")
    rank = op.rank(x)
    perm = [a % rank for a in op.ints("axis", range(rank)[::-1])] if rank else []
    op.set("Out", op.transpose(x, perm))


@translates("flatten", "flatten2")
def _(op: Call) -> None:
    op.set("Out", op.node("Flatten", [op.need("X")], axis=int(op.attr("axis", 1))))


@translates("flatten_contiguous_range")
def _(op: Call) -> None:
    x = op.need("X")
    rank = op.rank(x)
    if rank == 0:
        op.set("Out", op.to_shape(x, [1]))
        return
    first, last = int(op.attr("start_axis", 1)) % rank, int(op.attr("stop_axis", -1)) % rank
    tail = list(x.shape or ())[last + 1 :]
    if all(isinstance(d, int) for d in tail):
        op.set("Out", op.to_shape(x, [*[0] * first, -1, *tail]))  # type: ignore[list-item]
        return
    shape = [op.const([0] * first), op.const([-1])] if first else [op.const([-1])]
    shape.append(op.node("Shape", [x], start=last + 1, end=rank))
    op.set("Out", op.node("Reshape", [x, op.node("Concat", shape, axis=0)]))


@translates("squeeze", "squeeze2")
def _(op: Call) -> None:
    x = op.need("X")
    axes = op.ints("axes")
    if not axes:
        op.set("Out", op.node("Squeeze", [x]))
        return
    # Paddle leaves axes alone whose size is not 1.
    dims = x.shape
    if dims is not None and len(dims):
        axes = [
            a for a in axes if not isinstance(dims[a % len(dims)], int) or dims[a % len(dims)] == 1
        ]
    op.set("Out", op.node("Squeeze", [x, op.const(axes)]) if axes else x)


@translates("unsqueeze", "unsqueeze2")
def _(op: Call) -> None:
    x = op.need("X")
    axes = op.list_input("AxesTensor", "AxesTensorList", "axes")
    if axes is not None and axes.const is not None:
        # Paddle inserts one axis after the other, ONNX all at once.
        rank = op.rank(x)
        places: list[int] = []
        for axis in (int(a) for a in axes.const):
            rank += 1
            axis = axis % rank
            places = [p + (p >= axis) for p in places] + [axis]
        axes = op.const(sorted(places))
    op.set("Out", op.node("Unsqueeze", [x, axes]))


@translates("concat")
def _(op: Call) -> None:
    parts = op.all("X")
    axis = int(op.attr("axis", 0))
    if op["AxisTensor"] is not None:
        axis = op.fixed_int(op["AxisTensor"], tr("the axis"))
    dtypes = {p.dtype for p in parts if p.dtype is not None}
    if len(dtypes) > 1:
        wide = DType.of(np.result_type(*[d.np for d in dtypes]))
        wide = DType.F32 if DType.F32 in dtypes else wide
        parts = [op.cast(p, wide) for p in parts]
    op.set("Out", op.node("Concat", parts, axis=axis))


@translates("split")
def _(op: Call) -> None:
    x = op.need("X")
    axis = int(op.attr("axis", 0))
    if op["AxisTensor"] is not None:
        axis = op.fixed_int(op["AxisTensor"], tr("the axis"))
    count = len(op.op.outputs.get("Out", ()))
    sections = op.ints("sections")
    tensors = op.all("SectionsTensorList")
    if tensors:
        sections = op.fixed_ints(op.list_input("", "SectionsTensorList", []), tr("the sections"))
    if sections:
        if sections.count(-1) == 1:
            size = op.size(x, axis)
            if size is None:
                raise op.unsupported(tr("it splits an axis of unknown size; import with shapes=…"))
            sections[sections.index(-1)] = size - sum(s for s in sections if s >= 0)
        parts = op.nodes("Split", [x, op.const(sections)], count, axis=axis)
    else:
        parts = op.nodes("Split", [x], count, axis=axis, num_outputs=count)
    for i, part in enumerate(parts):
        op.set("Out", part, i)


@translates("stack")
def _(op: Call) -> None:
    parts, axis = op.all("X"), int(op.attr("axis", 0))
    lifted = [op.node("Unsqueeze", [p, op.const([axis])]) for p in parts]
    op.set("Y", op.node("Concat", lifted, axis=axis))


@translates("unstack", "unbind")
def _(op: Call) -> None:
    x = op.need("X")
    slot = "Y" if op.type == "unstack" else "Out"
    axis = int(op.attr("axis", 0))
    count = len(op.op.outputs.get(slot, ()))
    parts = op.nodes("Split", [x], count, axis=axis, num_outputs=count) if count > 1 else [x]
    for i, part in enumerate(parts):
        op.set(slot, op.node("Squeeze", [part, op.const([axis])]), i)


def sliced(op: Call, x: Value, steps: str) -> Value:
    """x[start:end:step] along the attribute `axes`; `steps` is the name of that list."""
    starts, ends, by = (
        op.list_input(f"{name}Tensor", f"{name}TensorList", name.lower())
        for name in ("Starts", "Ends", steps)
    )
    axes = op.ints("axes")
    if not axes:
        return x
    if starts is None or ends is None:
        raise op.unsupported(tr("it has no starts or no ends"))
    return python_slice(op.scope.emit, x, starts, ends, axes, by)


@translates("slice", "strided_slice")
def _(op: Call) -> None:
    y = sliced(op, op.need("Input"), "Strides")
    gone = op.ints("decrease_axis")
    if gone:
        y = op.node("Squeeze", [y, op.const(gone)])
    op.set("Out", y)


@translates("expand_v2", "broadcast_to")
def _(op: Call) -> None:
    x = op.need("X")
    shape = op.list_input("Shape", "expand_shapes_tensor", "shape")
    if shape is None:
        raise op.unsupported(tr("it has no shape"))
    if shape.const is not None:
        # -1 keeps a dimension, which ONNX writes as 1
        shape = op.const(np.where(shape.const == -1, 1, shape.const))
    else:
        shape = op.node("Max", [shape, op.const([1])])
    op.set("Out", op.node("Expand", [x, shape]))


@translates("expand", "tile")
def _(op: Call) -> None:
    x = op.need("X")
    if op.type == "expand":
        times = op.list_input("ExpandTimes", "expand_times_tensor", "expand_times")
    else:
        times = op.list_input("RepeatTimes", "repeat_times_tensor", "repeat_times")
    if times is None:
        raise op.unsupported(tr("it has no number of repetitions"))
    rank = op.rank(x)
    count = times.shape[0] if times.shape else None
    if not isinstance(count, int) or count > MAX_RANK:
        raise op.unsupported(tr("it repeats along an unknown number of axes, or too many"))
    if count < rank:
        times = op.node("Concat", [op.const([1] * (rank - count)), times], axis=0)
    elif count > rank:
        x = op.node("Unsqueeze", [x, op.const(list(range(count - rank)))])
    op.set("Out", op.node("Tile", [x, times]))


@translates("expand_as", "expand_as_v2")
def _(op: Call) -> None:
    target = op["Y"] if op["Y"] is not None else op["target_tensor"]
    if target is not None:
        shape = op.node("Shape", [target])
    else:
        shape = op.const(op.ints("target_shape"))
    x = op.need("X")
    if op.type == "expand_as_v2":
        op.set("Out", op.node("Expand", [x, shape]))
        return
    times = op.node("Div", [shape, op.node("Shape", [x])])
    op.set("Out", op.node("Tile", [x, times]))


@translates("pad", "pad2d", "pad3d", "pad_constant_like")
def _(op: Call) -> None:
    x = op.need("X")
    if op.type == "pad_constant_like":
        raise op.unsupported(tr("it pads to the shape of another tensor; use a fixed padding"))
    rank = op.rank(x)
    pads = op.list_input("Paddings", "", "paddings")
    if pads is None or pads.const is None:
        raise op.unsupported(tr("its padding is computed at run time"))
    amounts = [int(p) for p in pads.const]
    last = op.type != "pad" and is_channels_last(op)
    if op.type == "pad":  # begin, end of each axis
        begin, end = amounts[0::2], amounts[1::2]
    elif op.type == "pad2d":  # top, bottom, left, right
        begin, end = [0, 0, amounts[0], amounts[2]], [0, 0, amounts[1], amounts[3]]
    else:  # left, right, top, bottom, front, back
        begin = [0, 0, *amounts[0::2][::-1]]
        end = [0, 0, *amounts[1::2][::-1]]
        spatial = rank - 2
        begin, end = begin[:2] + begin[-spatial:], end[:2] + end[-spatial:]
    if last:
        x = channels_first(op, x)
    mode = str(op.attr("mode", "constant"))
    mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    value: Value | None = None
    if mode == "constant":
        value = op.const(float(op.attr("pad_value", op.attr("value", 0.0))), like=x)
    y = op.node("Pad", [x, op.const([*begin, *end]), value], mode=mode)
    op.set("Out", channels_last(op, y) if last else y)


@translates("crop", "crop_tensor")
def _(op: Call) -> None:
    x = op.need("X")
    rank = op.rank(x)
    offsets = op.list_input("Offsets", "OffsetsTensor", "offsets")
    offsets = offsets if offsets is not None else op.const([0] * rank)
    if op["Y"] is not None:
        shape: Value | None = op.node("Shape", [op.need("Y")])
    else:
        shape = op.list_input("Shape", "ShapeTensor", "shape")
    if shape is None:
        raise op.unsupported(tr("it has no shape to crop to"))
    if shape.const is not None and offsets.const is not None and (shape.const < 0).any():
        ends = np.where(shape.const < 0, np.iinfo(np.int64).max, offsets.const + shape.const)
        stop: Value = op.const(ends)
    else:
        stop = op.node("Add", [offsets, shape])
    op.set("Out", op.node("Slice", [x, offsets, stop, op.const(list(range(rank)))]))


@translates("flip", "reverse")
def _(op: Call) -> None:
    x, axes = op.need("X"), op.ints("axis")
    count = len(axes)
    ends = op.const([-(2**31)] * count)
    op.set("Out", op.node(
        "Slice", [x, op.const([-1] * count), ends, op.const(axes), op.const([-1] * count)]
    ))  # fmt: skip


@translates("roll")
def _(op: Call) -> None:
    x, axes = op.need("X"), op.ints("axis")
    shifts = op.fixed_ints(op.list_input("ShiftsTensor", "", "shifts"), tr("the shifts"))
    shape = x
    if not axes:
        x, axes = op.to_shape(x, [-1]), [0]
    y = x
    for axis, shift in zip(axes, shifts):
        size = op.size(y, axis)
        shift = shift % size if size else shift
        if not shift:
            continue
        at = op.const([axis])
        big = op.const([2**62])
        head = op.node("Slice", [y, op.const([-shift]), big, at])
        tail = op.node("Slice", [y, op.const([0]), op.const([-shift]), at])
        y = op.node("Concat", [head, tail], axis=axis)
    if not op.ints("axis"):
        y = op.node("Reshape", [y, op.node("Shape", [shape])])
    op.set("Out", y)


@translates("shape")
def _(op: Call) -> None:
    """Paddle's shape is int32"""
    x = op.need("Input")
    dtype = op.attr_dtype("out_dtype", 2) if op.attr("out_dtype") is not None else DType.I32
    op.set("Out", op.cast(op.node("Shape", [x]), dtype))


@translates("size")
def _(op: Call) -> None:
    op.set("Out", op.node("Size", [op.need("Input")]))
