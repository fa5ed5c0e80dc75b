"""Layers that move elements, and those that resample."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import Value
from .call import Call, Result, layer


@layer("Split")
def split(c: Call) -> Result:
    return [c.x] * len(c.layer.tops)


@layer("Dropout")
def dropout(c: Call) -> Value:
    return c.x


@layer("Slice")
def slice_(c: Call) -> Result:
    p = c.param("slice_param")
    axis, points = p.int("axis", p.int("slice_dim", 1)), p.ints("slice_point")
    count = len(c.layer.tops)
    if not points:
        return c.emit.outputs("Split", [c.x], count, axis=axis, num_outputs=count)
    size = c.emit.dims(c.x)[axis]
    if size is None or points != sorted(points) or len(points) != count - 1:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: slice points {points} do not split an axis of"
                " size {size} into its outputs",
                layer=c.layer.name,
                points=points,
                size=size,
            )
        )
    sizes = np.diff([0, *points, size]).astype(np.int64)
    return c.emit.outputs("Split", [c.x, c.emit.const(sizes)], count, axis=axis)


@layer("Flatten")
def flatten(c: Call) -> Value:
    p = c.param("flatten_param")
    axis, end = c.axis(p.int("axis", 1)), c.axis(p.int("end_axis", -1))
    if axis == 1 and end == c.rank() - 1:
        return c.emit("Flatten", c.x, axis=1)
    dims = c.emit.dims(c.x)
    return c.emit("Reshape", c.x, [0] * axis + [-1] + [d or 0 for d in dims[end + 1 :]])


@layer("Reshape")
def reshape(c: Call) -> Value:
    """0 copies a size, -1 takes the rest; `axis` and `num_axes` say which axes are replaced."""
    p = c.param("reshape_param")
    wanted = p.block("shape").ints("dim")
    axis, count = p.int("axis", 0), p.int("num_axes", -1)
    axis = axis if axis >= 0 else c.rank() + 1 + axis
    if not 0 <= axis <= c.rank():
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: axis {value} is outside its input",
                layer=c.layer.name,
                value=p.int("axis", 0),
            )
        )
    tail = [] if count < 0 else c.emit.dims(c.x)[axis + count :]
    if axis == 0 and not tail:
        return c.emit("Reshape", c.x, wanted)
    dims = c.emit.dims(c.x)
    if any(d == 0 and axis + i >= len(dims) for i, d in enumerate(wanted)):
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: shape {wanted} copies a dimension that the "
                "input {dims} does not have",
                layer=c.layer.name,
                wanted=wanted,
                dims=dims,
            )
        )
    middle = [(dims[axis + i] or 0) if d == 0 else d for i, d in enumerate(wanted)]
    return c.emit("Reshape", c.x, [0] * axis + middle + [d or 0 for d in tail])


@layer("Permute")
def permute(c: Call) -> Value:
    """The order of the first axes; the others follow as they are."""
    order = c.param("permute_param").ints("order")
    order += [i for i in range(c.rank()) if i not in order]
    if sorted(order) != list(range(c.rank())):
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: order {order} is not a permutation of the input's axes",
                layer=c.layer.name,
                order=order,
            )
        )
    return c.emit.transpose(c.x, order)


@layer("Tile")
def tile(c: Call) -> Value:
    p = c.param("tile_param")
    repeats = [1] * c.rank()
    repeats[c.axis(p.int("axis", 1))] = p.int("tiles", 1)
    return c.emit("Tile", c.x, repeats)


@layer("ShuffleChannel")
def shuffle_channel(c: Call) -> Value:
    """(N,g·C,H,W) → channels interleaved over g groups."""
    group, dims = c.param("shuffle_channel_param").int("group", 1), c.emit.dims(c.x)
    channels = dims[1]
    if channels is None or group < 1 or channels % group or len(dims) != 4:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: expected a rank of 4 and channels that split "
                "into {group} groups, found {channels} channels",
                layer=c.layer.name,
                group=group,
                channels=channels,
            )
        )
    parts = c.emit("Reshape", c.x, [0, group, channels // group, -1])
    mixed = c.emit.transpose(parts, [0, 2, 1, 3])
    return c.emit("Reshape", mixed, [0, channels, *[d or -1 for d in dims[2:]]])


@layer("Interp")
def interp(c: Call) -> Value:
    """Bilinear with aligned corners, to a size or by factors, of what negative pads leave."""
    p, x = c.param("interp_param"), c.x
    before, after = p.int("pad_beg", 0), p.int("pad_end", 0)
    left = [d + before + after for d in c.emit.dims(x)[2:4] if d is not None]
    if max(before, after) > 0 or min(left, default=1) < 1:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: pad_beg and pad_end must be at most 0 and leave a part "
                "of the input, found {before} and {after}",
                layer=c.layer.name,
                before=before,
                after=after,
            )
        )
    if before or after:
        x = c.emit("Slice", x, [-before] * 2, [after or np.iinfo(np.int64).max] * 2, [2, 3], [1, 1])
    height, width = c.emit.dims(x)[2:4]
    if p.has("height") and p.has("width"):
        size = [p.int("height", 0), p.int("width", 0)]
    elif height is None or width is None:
        raise ModelFormatError(
            tr("prototxt: layer {layer}: the input size is not known", layer=c.layer.name)
        )
    else:
        zoom, shrink = p.int("zoom_factor", 1), p.int("shrink_factor", 1)
        size = [((d - 1) // shrink + 1) for d in (height, width)]
        size = [d + (d - 1) * (zoom - 1) for d in size]
    return c.emit("Resize", x, None, None, [*[d or 1 for d in c.emit.dims(x)[:2]], *size],
                  mode="linear", coordinate_transformation_mode="align_corners")  # fmt: skip


@layer("Upsample")
def upsample(c: Call) -> Value:
    p = c.param("upsample_param")
    factor = np.array([1, 1, *[p.int("scale", 2)] * 2], np.float32)
    return c.emit("Resize", c.x, None, factor, mode="nearest", nearest_mode="floor",
                  coordinate_transformation_mode="asymmetric")  # fmt: skip
