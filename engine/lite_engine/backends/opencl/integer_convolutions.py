"""Launches of integer convolutions, transposed ones and matrix products."""

from __future__ import annotations

import numpy as np

from ...ir import DType, TypeInfo
from ...ops._conv_window import conv_window
from ...ops.conv_transpose import transposed_window
from ...plan import Plan, PlanTensor, Step
from . import integer_gpu_convolutions as gpu
from . import integer_image_convolutions as image
from .cpu_convolutions import block_of
from .deconvolutions import interleaved
from .gpu_convolutions import with_images
from .integer_depthwise import by_rows
from .integers import Ending, IntegerConvolution, Quantization, widened, zeros_of
from .launch import Launch, Scratch
from .options import join, vector
from .problem import POINTWISE, depthwise_block, depthwise_grid
from .profile import DeviceProfile
from .registry import Target, builds

#: Where channels divide only into vectors below this, a CPU gets whole ones, the last overlapping.
_NARROW = 8


def _array(plan: Plan, index: int) -> np.ndarray:
    data = plan.tensors[index].data
    assert data is not None, "the registry's condition asks for constant weights"
    return data


def _convolution(step: Step, plan: Plan) -> IntegerConvolution:
    """Of a QLinearConv; rank 3 gets H = 1."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    w = _array(plan, step.inputs[3])
    one = [1] * (4 - len(x.dims))
    xd, yd = [x.dims[0], *one, *x.dims[1:]], [y.dims[0], *one, *y.dims[1:]]
    logical = TypeInfo(x.dtype, (x.dims[0], x.dims[-1], *x.dims[1:-1]))
    kernel, strides, pads, dilations = conv_window(
        logical, TypeInfo(DType.of(w), w.shape), step.attrs
    )
    begin = [*[0] * len(one), *pads[: len(kernel)]]
    window = [*one, *kernel, *one, *strides, *begin, *one, *dilations]
    has = len(step.inputs) > 9 and step.inputs[9] >= 0
    residual = plan.tensors[step.inputs[9]] if has else None
    count = w.shape[0]
    return IntegerConvolution(
        x, y, Quantization.of(x, step.attrs["x_scale"], step.attrs["x_zero_point"]),
        [yd[0] * yd[1] * yd[2], *xd[1:], *yd[1:]], window,
        w.reshape(count, w.shape[1], -1), zeros_of(step.attrs["w_zero_point"], count),
        Ending.of(step, plan, count, 8, residual=residual),
    )  # fmt: skip


@builds("i8_conv2d", "QLinearConv")
def conv(step: Step, plan: Plan, target: Target) -> list[Launch]:
    return _tiled(_convolution(step, plan), target)


@builds("i8_gemm", "QLinearMatMul", "QGemm")
def gemm(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """a (…, K) with constant b as a 1x1 convolution of as many pixels."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    b = _array(plan, step.inputs[3])
    weight = b if step.attrs.get("transB") else b.T
    count, depth = weight.shape
    m = x.size // depth
    return _tiled(
        IntegerConvolution(
            x, y, Quantization.of(x, step.attrs["a_scale"], step.attrs["a_zero_point"]),
            [m, m, 1, depth, m, 1, count], POINTWISE, weight[:, :, None],
            zeros_of(step.attrs["b_zero_point"], count),
            Ending.of(step, plan, count, 6 if step.op == "QGemm" else 99, "ab"),
        ),
        target,
    )  # fmt: skip


def _tiled(problem: IntegerConvolution, target: Target) -> list[Launch]:
    profile = target.profile
    if not profile.local_tiles:
        return direct(problem, profile)
    ways = gpu.ways(problem, profile)
    if image.suits(profile, problem):
        ways = with_images(ways, profile.prefers_images)
    variant = target.pick(f"i8_conv_{problem}", ways)
    if variant.image:
        return image.convolved(problem, profile)
    return direct(problem, profile) if variant.direct else gpu.convolved(problem, profile, variant)


def direct(problem: IntegerConvolution, profile: DeviceProfile) -> list[Launch]:
    """Needs neither local memory nor barriers: any device can run it."""
    m, height, width, channels, out_h, out_w, outputs = problem.sizes
    kh, kw, sh, sw, top, left, dh, dw = problem.window
    x_step, x_at, y_step, y_at = problem.places
    images, even = problem.images, -(-channels // 2) * 2
    # What the window of the last output needs; more of the input is not looked at.
    tall = max((out_h - 1) * sh + (kh - 1) * dh + 1, top + height)
    wide = max((out_w - 1) * sw + (kw - 1) * dw + 1, left + width)
    source = Scratch(images * tall * wide * even * 2, DType.I16)
    rows_made = images * tall
    args = [
        problem.x, source, rows_made, height, width, channels, even, top, left, tall, wide,
        x_step, x_at, problem.of_x.flip, problem.of_x.zero,
    ]  # fmt: skip
    rows = images * out_h
    if (kh, kw, sh, sw) == (1, 1, 1, 1) and (tall, wide) == (height, width):
        rows, out_w, wide = 1, m, m  # every pixel lies a constant step after the one before
        out_h = tall = 1
    block = block_of(profile, out_w, outputs)
    blocks = -(-outputs // block.channels)
    padded = blocks * block.channels
    # (O, C, taps) → (blocks, taps·C/2, channels, 2)
    taps = widened(problem.weight, problem.zeros).transpose(0, 2, 1)
    pairs = taps.padded(padded, kh * kw, even).reshape(blocks, block.channels, -1, 2)
    weights = pairs.transpose(0, 2, 1, 3)
    ending = problem.ending
    sums = [
        source, weights, ending.biases(padded), ending.scales(padded), problem.residual, problem.y,
        tall, wide, even // 2, out_h, out_w, outputs, kh, kw, sh, sw, dh, dw, y_step, y_at,
        *problem.finish,
    ]  # fmt: skip
    text = block.defines()
    items = (rows * -(-out_w // block.tm), blocks)
    return [
        Launch("i8_conv", "widen", args, (rows_made,), text, (1,)),
        Launch("i8_conv", "conv", sums, items, text, (1, 1)),
    ]


@builds("i8_conv2d_depthwise", "QLinearConv")
def depthwise(step: Step, plan: Plan, target: Target) -> list[Launch]:
    problem, profile = _convolution(step, plan), target.profile
    if image.suits(profile, problem, depthwise=True):
        ways = ("image", "buffer") if profile.prefers_images else ("buffer", "image")
        if target.pick(f"i8_depthwise_{problem}", ways) == "image":
            return image.convolved(problem, profile, depthwise=True)
    if profile.local_tiles and (launches := by_rows(problem, profile)):
        return launches
    _, height, width, channels, out_h, out_w, _ = problem.sizes
    kh, kw, sh, sw, top, left, dh, dw = problem.window
    lie, images = problem.places, problem.images
    v = vector(profile, DType.F32, channels)
    tail = not profile.local_tiles and v < _NARROW and channels > profile.lanes
    v = profile.lanes if tail else v
    py, px = depthwise_block(problem.sizes, problem.window, v, profile)
    weights = widened(problem.weight, problem.zeros).reshape(channels, -1).T
    ending = problem.ending
    args = [
        problem.x, weights, ending.biases(channels), ending.scales(channels), problem.residual,
        problem.y, images, height, width, channels, out_h, out_w, sh, top, left, dh, *lie,
        problem.of_x.flip, problem.of_x.zero, *problem.finish,
    ]  # fmt: skip
    aligned = v > 1 and all(n % v == 0 for n in (channels, *lie))
    options = join(
        f"#define V {v}", "#define ALIGNED" if aligned else "",
        "#define FAST_FMA" if profile.fast_fma else "", "#define TAIL" if tail else "",
        f"#define PX {px}\n#define PY {py}\n#define KH {kh}\n#define KW {kw}",
        f"#define SW {sw}\n#define DW {dw}",
    )  # fmt: skip
    items = images * -(-out_h // py) * -(-out_w // px)
    grid, group = depthwise_grid(profile, -(-channels // v), items)
    return [Launch("i8_depthwise", "depthwise", args, grid, options, group)]


@builds("i8_conv2d_grouped", "QLinearConv")
def grouped(step: Step, plan: Plan, target: Target) -> list[Launch]:
    problem = _convolution(step, plan)
    count = problem.sizes[6]
    weights = widened(problem.weight, problem.zeros).transpose(2, 1, 0)
    ending = problem.ending
    args = [
        problem.x, weights, ending.biases(count), ending.scales(count), problem.residual,
        problem.y, *problem.sizes, *problem.window, int(step.attrs.get("group", 1)),
        problem.of_x.flip, problem.of_x.zero, *problem.finish,
    ]  # fmt: skip
    return [Launch("i8_direct", "grouped", args, (count, problem.sizes[0]))]


@builds("i8_deconv2d", "QLinearConvTranspose")
def deconv(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    w = _array(plan, step.inputs[3])  # (C, O/g, KH, KW)
    group = int(step.attrs.get("group", 1))
    one = [1] * (4 - len(x.dims))
    xd, yd = [x.dims[0], *one, *x.dims[1:]], [y.dims[0], *one, *y.dims[1:]]
    logical = (x.dims[0], x.dims[-1], *x.dims[1:-1])
    found = transposed_window(logical, list(w.shape[2:]), step.attrs)
    begin = [*[0] * len(one), *found["pads"][: w.ndim - 2]]
    window = [*one, *w.shape[2:], *one, *found["strides"], *begin, *one, *found["dilations"]]
    count = group * w.shape[1]
    zeros = zeros_of(step.attrs["w_zero_point"], count)
    of_x = Quantization.of(x, step.attrs["x_scale"], step.attrs["x_zero_point"])
    ending = Ending.of(step, plan, count, 8)
    if group == 1:
        filters = w.reshape(*w.shape[:2], *window[:2])
        problem = (x, y, of_x, filters, zeros, ending)
        return _between_strides(problem, xd, yd, window, target)
    packed = widened(w.reshape(group, -1, w.shape[1], window[0] * window[1]), zeros, group)
    weights = packed.transpose(3, 1, 0, 2).reshape(-1, count)
    m = yd[0] * yd[1] * yd[2]
    args = [
        x, weights, ending.biases(count), ending.scales(count), y, m, *xd[1:], *yd[1:], *window,
        group, of_x.flip, of_x.zero, *ending.arguments,
    ]  # fmt: skip
    return [Launch("i8_direct", "transposed", args, (count, m))]


def _between_strides(
    given: tuple[PlanTensor, PlanTensor, Quantization, np.ndarray, np.ndarray, Ending],
    xd: list[int],
    yd: list[int],
    window: list[int],
    target: Target,
) -> list[Launch]:
    """As the convolution that it is between remainders of the stride (deconvolutions.py): they are
    output channels, of which each pixel then takes its own. Taps that are not there hold the zero
    point of their channel."""
    x, y, of_x, w, zeros, ending = given
    kh, kw, sh, sw, top, left, dh, dw = window
    (n, height, width, channels), (_, out_h, out_w, outputs) = xd, yd
    th, tw = -(-kh * dh // sh), -(-kw * dw // sw)  # taps of a remainder
    tall, wide = -(-(out_h + top) // sh), -(-(out_w + left) // sw)
    taps = np.empty((channels, outputs, th * sh, tw * sw), w.dtype)
    taps[:] = zeros.reshape(1, -1, 1, 1).astype(w.dtype)
    taps[:, :, : kh * dh : dh, : kw * dw : dw] = w
    split = taps.reshape(channels, outputs, th, sh, tw, sw)[:, :, ::-1, :, ::-1]
    filters = split.transpose(3, 5, 1, 0, 2, 4).reshape(sh * sw * outputs, channels, th * tw)
    made = Scratch(n * tall * wide * sh * sw * outputs, y.dtype)
    every = Ending(np.tile(ending.scale, sh * sw), np.tile(ending.bias, sh * sw), ending.arguments)
    problem = IntegerConvolution(
        x, made, of_x, [n * tall * wide, height, width, channels, tall, wide, len(filters)],
        [th, tw, 1, 1, th - 1, tw - 1, 1, 1], filters, np.tile(zeros, sh * sw), every,
    )  # fmt: skip
    # (n·q, rh, q, rw, o) of the whole, and in what was made
    shape, pixel = (n * tall, sh, wide, sw, outputs), sh * sw * outputs
    steps = [wide * pixel, sw * outputs, pixel, outputs, 1]
    return [
        *_tiled(problem, target),
        *interleaved(target.profile, made, y, yd, shape, steps, (top, left)),
    ]
