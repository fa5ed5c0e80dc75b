"""Operators of TensorFlow and TFLite that cut, pad, gather and rearrange elements, as nodes with
ONNX's semantics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError, UnsupportedOperatorError
from ..ir import DType, Value
from ._dilation import Blocked, undo_blocks
from ._emit import Emitter
from ._slices import python_slice
from ._tf_ops import scalar, squeeze

_END = np.iinfo(np.int64).max


def broadcast_to(emit: Emitter, x: Value, shape: Value) -> Value:
    return emit("Expand", x, emit.cast(shape, DType.I64))


def broadcast_args(emit: Emitter, a: Value, b: Value) -> Value:
    """The shape to which two shapes broadcast."""
    ranks = [_length(emit, side) for side in (a, b)]
    first, second = (
        emit("Concat", emit.const(np.ones(max(ranks) - n, side.type.dtype.np)), side, axis=0)
        if n < max(ranks)
        else side
        for side, n in zip((a, b), ranks)
    )
    return emit("Where", emit("Equal", first, scalar(emit, first, 1)), second, first)


def _length(emit: Emitter, shape: Value) -> int:
    """Numbers of a shape. Raises ModelFormatError where that is not known."""
    (count,) = shape.shape if shape.shape is not None and len(shape.shape) == 1 else (None,)
    if not isinstance(count, int):
        raise ModelFormatError(
            tr("the rank of {x} is not known", x=shape.name),
            where=emit.source,
            fix=tr("give the sizes with --shape, or export the model with fixed ones"),
        )
    return count


def matrix_band_part(emit: Emitter, x: Value, lower: Value, upper: Value) -> Value:
    """The diagonals of a matrix from `lower` below the main one to `upper` above it; all of a side
    where its number is negative."""
    below = emit.integer(lower, tr("the number of diagonals"))
    above = emit.integer(upper, tr("the number of diagonals"))
    if above >= 0:
        x = emit("Trilu", x, np.array(above, np.int64), upper=0)
    return emit("Trilu", x, np.array(-below, np.int64), upper=1) if below >= 0 else x


def gather_nd(emit: Emitter, x: Value, indices: Value) -> Value:
    return emit("GatherND", x, emit.cast(indices, DType.I64), batch_dims=0)


def reverse_sequence(emit: Emitter, x: Value, lengths: Value, batch: int, time: int) -> Value:
    lengths = emit.cast(lengths, DType.I64)
    return emit("ReverseSequence", x, lengths, batch_axis=batch, time_axis=time)


def pack(emit: Emitter, xs: Sequence[Value], axis: int) -> Value:
    """Stacks along a new axis."""
    parts = [emit("Unsqueeze", x, [axis]) for x in xs]
    return parts[0] if len(parts) == 1 else emit("Concat", *parts, axis=axis)


def unpack(emit: Emitter, x: Value, count: int, axis: int) -> list[Value]:
    """Takes `count` slices of one along `axis`, which disappears."""
    if count == 1:
        return [squeeze(emit, x, [axis])]
    parts = emit.outputs("Split", [x], count, axis=axis, num_outputs=count)
    return [squeeze(emit, p, [axis]) for p in parts]


def split(emit: Emitter, x: Value, axis: Value, count: int) -> list[Value]:
    at = emit.integer(axis, tr("the axis"))
    if count == 1:
        return [x]
    return emit.outputs("Split", [x], count, axis=at, num_outputs=count)


def split_sizes(emit: Emitter, x: Value, sizes: Value, axis: Value, count: int) -> list[Value]:
    """Split into given sizes; one of them may be -1, the rest."""
    at = emit.integer(axis, tr("the axis"))
    wanted = emit.ints(sizes, tr("the list of sizes"))
    if -1 in wanted:
        known = emit.dims(x)
        if not -len(known) <= at < len(known):
            raise ModelFormatError(
                tr("axis {axis} is outside a rank-{rank} tensor", axis=at, rank=len(known)),
                where=emit.source,
            )
        total = known[at]
        if total is None:
            raise ModelFormatError(
                tr("axis {at} of {x} is not fixed", at=at, x=x.name), where=emit.source
            )
        wanted[wanted.index(-1)] = total - sum(wanted) - 1
    return emit.outputs("Split", [x, emit.const(wanted)], count, axis=at)


def pad(emit: Emitter, x: Value, paddings: Value, fill: Value | None = None) -> Value:
    """paddings (rank, 2) → Pad with begins, then ends."""
    if paddings.const is None:
        flat = emit.reshape(emit.transpose(emit.cast(paddings, DType.I64), [1, 0]), [-1])
        return emit("Pad", x, flat, fill, mode="constant")
    pairs = np.asarray(paddings.const).astype(np.int64).reshape(-1, 2)
    return emit("Pad", x, pairs.T.ravel(), fill, mode="constant")


def mirror_pad(emit: Emitter, x: Value, paddings: Value, symmetric: bool) -> Value:
    """REFLECT leaves the border out (ONNX has it); SYMMETRIC repeats it (a Gather per axis)."""
    flat = emit.ints(paddings, tr("the padding"))
    pairs = np.array(flat, np.int64).reshape(-1, 2)
    if not symmetric:
        return emit("Pad", x, pairs.T.ravel(), None, mode="reflect")
    for axis, (begin, end) in enumerate(pairs.tolist()):
        size = emit.dims(x)[axis]
        if begin or end:
            if size is None or not 0 <= begin <= size or not 0 <= end <= size:
                raise ModelFormatError(
                    tr(
                        "symmetric padding {begin},{end} is larger than the axis, which has "
                        "size {size}",
                        begin=begin,
                        end=end,
                        size=size,
                    ),
                    where=emit.source,
                )
            at = np.concatenate(
                [np.arange(begin)[::-1], np.arange(size), np.arange(size - end, size)[::-1]]
            )
            x = emit("Gather", x, at.astype(np.int64), axis=axis)
    return x


def slice_(emit: Emitter, x: Value, begin: Value, size: Value) -> Value:
    """Slice with begin and size; a size of -1 goes to the end."""
    rank = emit.rank(x)
    axes = list(range(rank))
    if begin.const is not None and size.const is not None:
        starts, sizes = emit.ints(begin, "begin"), emit.ints(size, "size")
        ends = [_END if n < 0 else b + n for b, n in zip(starts, sizes)]
        return emit("Slice", x, starts, ends, axes, [1] * rank)
    first, count = emit.cast(begin, DType.I64), emit.cast(size, DType.I64)
    stop = emit("Where", emit("Less", count, [0]), emit.const([_END]), emit("Add", first, count))
    return emit("Slice", x, first, stop, axes, [1] * rank)


def strided_slice(
    emit: Emitter,
    x: Value,
    begin: Value,
    end: Value,
    strides: Value,
    *,
    begin_mask: int,
    end_mask: int,
    ellipsis_mask: int,
    new_axis_mask: int,
    shrink_axis_mask: int,
) -> Value:
    """Python-like slicing: each bit of a mask belongs to one entry of begin/end/strides."""
    steps = emit.ints(strides, tr("the list of strides"))
    rank, count = emit.rank(x), len(steps)
    added = sum(new_axis_mask >> i & 1 and not ellipsis_mask >> i & 1 for i in range(count))
    axis, out_axis = 0, 0
    cut: list[tuple[int, int]] = []  # entry and the axis that it cuts
    drop: list[int] = []
    new: list[int] = []
    for i in range(count):
        if ellipsis_mask >> i & 1:
            skipped = max(0, rank - (count - 1 - added))
            axis, out_axis = axis + skipped, out_axis + skipped
        elif new_axis_mask >> i & 1:
            new.append(out_axis)
            out_axis += 1
        else:
            cut.append((i, axis))
            if shrink_axis_mask >> i & 1:
                drop.append(axis)
            else:
                out_axis += 1
            axis += 1
    if axis > rank or 0 in steps:
        raise ModelFormatError(
            tr(
                "cannot slice {type}: {slices} slices with strides {steps}",
                slices=count,
                type=x.type,
                steps=steps,
            ),
            where=emit.source,
        )
    x = _cut(emit, x, begin, end, steps, cut, drop, begin_mask, end_mask)
    if drop:
        x = squeeze(emit, x, drop)
    return emit("Unsqueeze", x, new) if new else x


def _cut(
    emit: Emitter,
    x: Value,
    begin: Value,
    end: Value,
    steps: list[int],
    cut: list[tuple[int, int]],
    drop: list[int],
    begin_mask: int,
    end_mask: int,
) -> Value:
    """The Slice of a strided slice; begin and end may be computed."""
    entries = [i for i, _ in cut]
    axes = [a for _, a in cut]
    by = [1 if a in drop else steps[i] for i, a in cut]
    low = [0 if steps[i] > 0 else _END for i in entries]
    high = [_END if steps[i] > 0 else -_END for i in entries]
    free_low = np.array([begin_mask >> i & 1 and a not in drop for i, a in cut], np.bool_)
    free_high = np.array([end_mask >> i & 1 and a not in drop for i, a in cut], np.bool_)
    starts = emit("Gather", emit.cast(begin, DType.I64), entries, axis=0)
    stops = emit("Gather", emit.cast(end, DType.I64), entries, axis=0)
    single = np.array([a in drop for a in axes])
    if single.any():  # the element after the start; the last one has none after it
        last = emit("Equal", starts, emit.const([-1]))
        after = emit("Where", last, emit.const([_END]), emit("Add", starts, emit.const([1])))
        stops = emit("Where", single, after, stops)
    if free_low.any():
        starts = emit("Where", free_low, low, starts)
    if free_high.any():
        stops = emit("Where", free_high, high, stops)
    whole = (
        starts.const is not None
        and stops.const is not None
        and set(by) <= {1}
        and not starts.const.any()
        and bool((stops.const == _END).all())
    )
    if whole or not axes:
        return x
    return python_slice(emit, x, starts, stops, axes, emit.const(by))


def gather(emit: Emitter, x: Value, indices: Value, axis: int, batch_dims: int = 0) -> Value:
    rank = emit.rank(x)
    axis %= max(rank, 1)
    batch_dims += emit.rank(indices) if batch_dims < 0 else 0
    if not batch_dims:
        return emit("Gather", x, indices, axis=axis)
    if axis != batch_dims:
        raise UnsupportedOperatorError(
            tr(
                "Gather with batch_dims {batch_dims} along axis {axis} is not supported",
                batch_dims=batch_dims,
                axis=axis,
            ),
            (emit.source,),
            where=emit.source,
            fix=tr("export it as a Gather without batch_dims"),
        )
    return emit(
        "GatherND", x, emit("Unsqueeze", emit.cast(indices, DType.I64), [-1]), batch_dims=batch_dims
    )


def space_to_batch(
    emit: Emitter, x: Value, block: Sequence[int], pads: Value, fill: Value | None = None
) -> Value:
    """(N,*S,…) → (N·∏block, *S/block, …), after padding with zeros (or `fill`)."""
    n = len(block)
    _check_blocks(emit, x, block)
    pairs = np.array(emit.ints(pads, tr("the padding")), np.int64).reshape(n, 2)
    rank, source = emit.rank(x), x
    if pairs.any():
        full = np.zeros((rank, 2), np.int64)
        full[1 : n + 1] = pairs
        x = emit("Pad", x, full.T.ravel(), fill, mode="constant")
    dims = emit.dims(x)
    inner: list[int | None] = [dims[0]]
    outer: list[int | None] = [None if dims[0] is None else dims[0] * int(np.prod(block))]
    for size, b in zip(dims[1 : n + 1], block):
        part = None if size is None else size // b
        if size is not None and size % b:
            raise ModelFormatError(
                tr("an axis of size {size} does not split into blocks of {b}", size=size, b=b),
                where=emit.source,
            )
        inner += [part, b]
        outer.append(part)
    x = emit.reshape(x, _one_open(emit, inner + dims[n + 1 :]))
    perm = [2 + 2 * i for i in range(n)] + [0] + [1 + 2 * i for i in range(n)]
    x = emit.transpose(x, perm + list(range(2 * n + 1, rank + n)))
    x = emit.reshape(x, _one_open(emit, outer + dims[n + 1 :]))
    emit.blocked[id(x)] = Blocked(source, tuple(block), pairs)
    return x


def batch_to_space(emit: Emitter, x: Value, block: Sequence[int], crops: Value) -> Value:
    """(N·∏block, *S, …) → (N, *S·block, …), then the crops are cut off."""
    n = len(block)
    _check_blocks(emit, x, block)
    pairs = np.array(emit.ints(crops, tr("the crops")), np.int64).reshape(n, 2)
    dilated = undo_blocks(emit, x, block, pairs)
    if dilated is not None:
        return dilated
    rank, dims = emit.rank(x), emit.dims(x)
    batch = None if dims[0] is None else dims[0] // int(np.prod(block))
    x = emit.reshape(x, _one_open(emit, [*block, batch, *dims[1:]]))
    perm = [n]
    for i in range(n):
        perm += [n + 1 + i, i]
    x = emit.transpose(x, perm + list(range(2 * n + 1, rank + n)))
    spatial = [None if d is None else d * b for d, b in zip(dims[1 : n + 1], block)]
    x = emit.reshape(x, _one_open(emit, [batch, *spatial, *dims[n + 1 :]]))
    if not pairs.any():
        return x
    ends = [-int(e) if e else _END for _, e in pairs]
    return emit("Slice", x, [int(b) for b, _ in pairs], ends, list(range(1, n + 1)), [1] * n)


def _check_blocks(emit: Emitter, x: Value, block: Sequence[int]) -> None:
    if not block or min(block) < 1 or len(block) >= emit.rank(x):
        raise ModelFormatError(
            tr("block sizes {block} do not fit the input {type}", block=list(block), type=x.type),
            where=emit.source,
        )


def _one_open(emit: Emitter, dims: Sequence[int | None]) -> list[int]:
    """Sizes for Reshape: one may be unknown."""
    if sum(d is None for d in dims) > 1:
        raise ModelFormatError(
            tr("more than one dimension of the result is not known"),
            where=emit.source,
            fix=tr("give the sizes with --shape, or export the model with fixed ones"),
        )
    return [-1 if d is None else d for d in dims]


def reverse(emit: Emitter, x: Value, axes: Value) -> Value:
    at = emit.ints(axes, tr("the list of axes"))
    n = len(at)
    return emit("Slice", x, [-1] * n, [-_END] * n, at, [-1] * n) if n else x


def fill(emit: Emitter, dims: Value, value: Value) -> Value:
    return emit("Expand", value, emit.cast(dims, DType.I64))


def tile(emit: Emitter, x: Value, repeats: Value) -> Value:
    return emit("Tile", x, emit.cast(repeats, DType.I64))


def scatter_nd(emit: Emitter, indices: Value, updates: Value, shape: Value) -> Value:
    """Zeros with updates added at the indices."""
    zeros = emit("Expand", scalar(emit, updates, 0), emit.cast(shape, DType.I64))
    return emit("ScatterND", zeros, emit.cast(indices, DType.I64), updates, reduction="add")
