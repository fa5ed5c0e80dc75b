"""Convolutions, pooling, resizing and what else looks at an image: rank 4, channels-last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lite_engine.ir import DType
from lite_engine.ops import get_op

from .call import LAST, Call, options, static, writes

SAME, VALID = 0, 1


def _image(c: Call) -> None:
    if c.rank() != 4 or c.value(0).dtype is not DType.F32:
        raise c.refused(f"{c.node.op} is written for float32 images only")


def _pads(c: Call, kernel: Sequence[int]) -> list[int]:
    """Top, left, bottom, right."""
    if c.attrs.get("auto_pad", "NOTSET") in ("NOTSET", ""):
        return [int(p) for p in c.attrs["pads"] or [0] * 4]
    if c.attrs["auto_pad"] == "VALID":
        return [0] * 4
    begin, end = [], []
    for size, k, s in zip(c.shape()[2:], kernel, _strides(c)):
        whole = max(0, (-(-size // s) - 1) * s + k - size)
        few, many = whole // 2, whole - whole // 2
        upper = c.attrs["auto_pad"] == "SAME_UPPER"
        begin.append(few if upper else many)
        end.append(many if upper else few)
    return [*begin, *end]


def _strides(c: Call) -> list[int]:
    return [int(s) for s in c.attrs["strides"] or (1, 1)]


def _dilations(c: Call) -> list[int]:
    return [int(d) for d in c.attrs["dilations"] or (1, 1)]


def _is_same(c: Call, kernel: Sequence[int], pads: Sequence[int]) -> bool:
    """Whether TFLite's SAME pads just so."""
    for i, (size, k, s) in enumerate(zip(c.shape()[2:], kernel, _strides(c))):
        whole = max(0, (-(-size // s) - 1) * s + k - size)
        if (pads[i], pads[i + 2]) != (whole // 2, whole - whole // 2):
            return False
    return True


def _padded(
    c: Call, x: int, kernel: Sequence[int], pads: Sequence[int], fill: float = 0.0,
    explicit: bool = False,
) -> tuple[int, int]:  # fmt: skip
    """The input and the padding of an operator; a PADV2 where TFLite has no name for it."""
    if not any(pads):
        return x, VALID
    if not explicit and _is_same(c, kernel, pads):
        return x, SAME
    top, left, bottom, right = pads
    amounts = c.array([(0, 0), (top, bottom), (left, right), (0, 0)], np.int32)
    n, channels, h, w = c.shape()
    shape = [n, h + top + bottom, w + left + right, channels]
    return c.emit("PADV2", [x, amounts, c.array(fill)], shape, options("PadV2")), VALID


@writes("Conv")
def _(c: Call) -> None:
    _image(c)
    w, group = c.const(1), c.attrs["group"]
    (stride_h, stride_w), (dilation_h, dilation_w) = _strides(c), _dilations(c)
    kernel = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], _dilations(c))]
    x, padding = _padded(c, c.x(0, last=True), kernel, _pads(c, kernel))
    bias = c.array(np.zeros(len(w))) if c.node.input(2) is None else c.array(c.const(2))
    given = {
        "padding": padding, "strideH": stride_h, "strideW": stride_w,
        "dilationHFactor": dilation_h, "dilationWFactor": dilation_w,
    }  # fmt: skip
    if group > 1 and group == c.shape()[1] and w.shape[1] == 1:
        kind = options("DepthwiseConv2D", depthMultiplier=len(w) // group, **given)
        weights = c.array(w.transpose(1, 2, 3, 0))
        c.last("DEPTHWISE_CONV_2D", [x, weights, bias], kind, last=True)
    else:
        weights = c.array(w.transpose(0, 2, 3, 1))
        c.last("CONV_2D", [x, weights, bias], options("Conv2D", **given), last=True)


@writes("ConvTranspose")
def _(c: Call) -> None:
    """The whole result, of which the pads are cut off."""
    _image(c)
    w, (stride_h, stride_w) = c.const(1), _strides(c)
    auto = c.attrs.get("auto_pad", "NOTSET")
    if c.attrs["group"] != 1 or any(d != 1 for d in _dilations(c)):
        raise c.refused("groups and dilations of a ConvTranspose are not written")
    if auto not in ("NOTSET", "", "VALID") or c.attrs["output_shape"]:
        raise c.refused("a ConvTranspose of a given output size is not written")
    n, channels, h, width = static(c.node.output)
    pads = [0] * 4 if auto == "VALID" else list(c.attrs["pads"] or [0] * 4)
    whole = [
        (size - 1) * s + k for size, s, k in zip(c.shape()[2:], (stride_h, stride_w), w.shape[2:])
    ]
    if pads[0] + h > whole[0] or pads[1] + width > whole[1]:
        raise c.refused("output padding beyond the kernel is not written")
    shape = [n, *whole, channels]
    bias = c.array(np.zeros(channels)) if c.node.input(2) is None else c.array(c.const(2))
    inputs = [c.array(shape, np.int32), c.array(w.transpose(1, 2, 3, 0)), c.x(0, last=True), bias]
    kind = options("TransposeConv", padding=VALID, strideH=stride_h, strideW=stride_w)
    if [h, width] == whole:
        c.last("TRANSPOSE_CONV", inputs, kind, last=True)
        return
    y = c.emit("TRANSPOSE_CONV", inputs, shape, kind)
    begin, size = [0, pads[0], pads[1], 0], [n, h, width, channels]
    given = [y, c.array(begin, np.int32), c.array(size, np.int32)]
    c.last("SLICE", given, options("Slice"), last=True)


@writes("MaxPool", "AveragePool")
def _(c: Call) -> None:
    _image(c)
    if len(c.node.outputs) > 1 or any(d != 1 for d in _dilations(c)):
        raise c.refused("indices and dilations of a pool are not written")
    kernel, (stride_h, stride_w) = [int(k) for k in c.attrs["kernel_shape"]], _strides(c)
    pads, average = _pads(c, kernel), c.node.op == "AveragePool"
    for i, size in enumerate(static(c.node.output)[2:]):  # rounded up: more padding at the end
        short = (size - 1) * _strides(c)[i] + kernel[i] - c.shape()[2 + i] - pads[i] - pads[2 + i]
        if short > 0:
            if average:
                raise c.refused("an average pool whose size is rounded up is not written")
            pads[2 + i] += short
    counts = average and bool(c.attrs["count_include_pad"])
    if average and any(pads) and not counts and not _is_same(c, kernel, pads):
        raise c.refused("padding that does not count in an average is written as SAME only")
    fill = 0.0 if average else float(np.finfo(np.float32).min)
    x, padding = _padded(c, c.x(0, last=True), kernel, pads, fill, explicit=counts)
    kind = options(
        "Pool2D", padding=padding, strideH=stride_h, strideW=stride_w,
        filterHeight=kernel[0], filterWidth=kernel[1],
    )  # fmt: skip
    c.last("AVERAGE_POOL_2D" if average else "MAX_POOL_2D", [x], kind, last=True)


@writes("GlobalAveragePool", "GlobalMaxPool")
def _(c: Call) -> None:
    _image(c)
    code = "MEAN" if c.node.op == "GlobalAveragePool" else "REDUCE_MAX"
    axes = c.array([1, 2], np.int32)
    c.last(code, [c.x(0, last=True), axes], options("Reducer", keepDims=True), last=True)


@writes("BatchNormalization")
def _(c: Call) -> None:
    """x · a + b, with a and b of each channel"""
    _image(c)
    if c.attrs["training_mode"] or len(c.node.outputs) > 1:
        raise c.refused("training is not written")
    scale, bias, mean, variance = (c.const(i).astype(np.float64) for i in range(1, 5))
    a = scale / np.sqrt(variance + c.attrs["epsilon"])
    shape = [static(c.node.output)[i] for i in LAST]
    y = c.emit("MUL", [c.x(0, last=True), c.array(a)], shape, options("Mul"))
    c.last("ADD", [y, c.array(bias - mean * a)], options("Add"), last=True)


@writes("LRN")
def _(c: Call) -> None:
    _image(c)
    size = int(c.attrs["size"])
    if size % 2 == 0:
        raise c.refused("an even size of LRN is not written")
    kind = options(
        "LocalResponseNormalization", radius=size // 2, bias=c.attrs["bias"],
        alpha=c.attrs["alpha"] / size, beta=c.attrs["beta"],
    )  # fmt: skip
    c.last("LOCAL_RESPONSE_NORMALIZATION", [c.x(0, last=True)], kind, last=True)


@writes("DepthToSpace", "SpaceToDepth")
def _(c: Call) -> None:
    _image(c)
    if c.attrs.get("mode", "DCR") != "DCR":
        raise c.refused("TFLite has mode DCR only")
    code = "DEPTH_TO_SPACE" if c.node.op == "DepthToSpace" else "SPACE_TO_DEPTH"
    kind = options(c.node.op, blockSize=c.attrs["blocksize"])
    c.last(code, [c.x(0, last=True)], kind, last=True)


@writes("Resize")
def _(c: Call) -> None:
    """Where TFLite reads the same pixels: an image of another size with one of three grids."""
    _image(c)
    sizes, mode = list(static(c.node.output)), c.attrs["mode"]
    grid = c.attrs["coordinate_transformation_mode"]
    if sizes[:2] != list(c.shape()[:2]) or mode not in ("nearest", "linear"):
        raise c.refused(f"resizing of mode {mode} is not written")
    half, corners = grid in ("half_pixel", "pytorch_half_pixel"), grid == "align_corners"
    if not (half or corners or grid == "asymmetric") or c.attrs["antialias"]:
        raise c.refused(f"resizing with {grid} is not written")
    if grid == "pytorch_half_pixel" and 1 in sizes[2:]:
        raise c.refused("pytorch_half_pixel to size 1 is not written")
    if mode == "nearest" and not _same_pixels(c, half, corners):
        raise c.refused("TFLite chooses other nearest pixels")
    if mode == "linear" and not _whole_scales(c):
        raise c.refused("scales that are not the ratio of the sizes are not written")
    code, kind = (
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor")
        if mode == "nearest"
        else ("RESIZE_BILINEAR", "ResizeBilinear")
    )
    made = options(kind, alignCorners=corners, halfPixelCenters=half)
    c.last(code, [c.x(0, last=True), c.array(sizes[2:], np.int32)], made, last=True)


def _whole_scales(c: Call) -> bool:
    """Whether positions follow from the sizes."""
    if c.node.input(2) is None or not c.const(2).size:
        return True
    ratio = np.divide(static(c.node.output), c.shape())
    return c.attrs["coordinate_transformation_mode"] == "align_corners" or bool(
        np.allclose(c.const(2), ratio, rtol=1e-6)
    )


def _same_pixels(c: Call, half: bool, corners: bool) -> bool:
    """Reads off positions with the reference, and computes TFLite's formula beside it."""
    rest = [None if v is None else v.const for v in c.node.inputs[1:]]
    for axis in (2, 3):
        size, target = c.shape()[axis], static(c.node.output)[axis]
        line = np.zeros(c.shape(), np.float32)
        line += np.arange(size, dtype=np.float32).reshape(
            [-1 if i == axis else 1 for i in range(4)]
        )
        (wanted,) = get_op("Resize").run(c.node, [line, *rest])
        at = np.moveaxis(wanted, axis, 0)[:, 0, 0, 0]
        step = np.float32((size - 1) / (target - 1) if corners and target > 1 else size / target)
        position = (np.arange(target, dtype=np.float32) + np.float32(0.5 * half)) * step
        theirs = np.floor(position + 0.5) if corners else np.floor(position)
        if not np.array_equal(at, np.clip(theirs, 0, size - 1)):
            return False
    return True
