"""Launches of convolutions, transposed convolutions and Gemm: weights packed here, once."""

from __future__ import annotations

import numpy as np

from ...ir import DType, TypeInfo
from ...ops.conv import conv_window
from ...ops.conv_transpose import transposed_window
from ...plan import Plan, PlanTensor, Step
from . import cpu_convolutions as cpu
from . import gpu_convolutions as gpu
from . import image_convolutions as image
from .constants import Constant
from .launch import Launch
from .options import Activation, activation_options, join, storage_option, vector, vectors
from .problem import POINTWISE, Convolution
from .registry import Target, builds

#: Neighbouring pixels that a depthwise work-item makes.
_DEPTHWISE_PIXELS = 4
#: Rows and pixels of an item that reads less twice, where a GPU's units still get so many items.
_DEPTHWISE_BLOCK = (2, 8)
_DEPTHWISE_ITEMS = 512
#: A CPU's groups for layers of few and of many channels: two, because PoCL compiles a kernel for
#: every size.
_CPU_GROUPS = (1, 32), (8, 16)
#: Where channels divide only into vectors below this, a CPU gets whole ones, the last overlapping.
_NARROW = 8


def _weight(plan: Plan, index: int) -> Constant:
    data = plan.tensors[index].data
    assert data is not None, "the registry's condition asks for constant weights"
    return Constant.floats(data)


def _bias(plan: Plan, step: Step, index: int, count: int) -> Constant:
    if index >= len(step.inputs) or step.inputs[index] < 0:
        return Constant.zeros(count)
    bias = _weight(plan, step.inputs[index])
    if bias.size != count:  # one number for all
        bias = Constant.of(np.full(count, bias.value.ravel()))
    return bias.reshape(count)


def _options(step: Step, y: PlanTensor, residual: PlanTensor | None) -> str:
    """Weights are kept in the activations' storage type."""
    half = y.dtype is DType.F16
    lines = [
        "#define W_T half" if half else "#define W_T float",
        "#define LDW(p, i) vload_half((i), (p))" if half else "#define LDW(p, i) (p)[i]",
    ]
    lines += ["#define RESIDUAL"] if residual is not None else []
    return join(storage_option(y.dtype), *lines, activation_options(step))


def _stored(weight: Constant, y: PlanTensor) -> Constant:
    return weight.cast(DType.F16 if y.dtype is DType.F16 else DType.F32)


def _by_tap(w: Constant) -> Constant:
    """(O, C, KH, KW) → (O, KH·KW, C)."""
    return w.reshape(*w.shape[:2], -1).transpose(0, 2, 1)


def _geometry(step: Step, plan: Plan) -> tuple[PlanTensor, PlanTensor, list[int], list[int]]:
    """x, y, [M, H, W, C, OH, OW, O] and [KH, KW, SH, SW, PT, PL, DH, DW]; rank 3 gets H = 1."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    w = _weight(plan, step.inputs[1])
    one = [1] * (4 - len(x.dims))
    xd = [x.dims[0], *one, *x.dims[1:]]
    yd = [y.dims[0], *one, *y.dims[1:]]
    logical = TypeInfo(x.dtype, (x.dims[0], x.dims[-1], *x.dims[1:-1]))
    filters = TypeInfo(w.dtype, w.shape)
    kernel, strides, pads, dilations = conv_window(logical, filters, step.attrs)
    begin = pads[: len(kernel)]
    window = [
        *one,
        *kernel,
        *one,
        *strides,
        *[0] * len(one),
        *begin,
        *one,
        *dilations,
    ]
    sizes = [yd[0] * yd[1] * yd[2], *xd[1:], *yd[1:]]
    return x, y, sizes, window


def _residual(step: Step, plan: Plan) -> PlanTensor | None:
    if len(step.inputs) > 3 and step.inputs[3] >= 0:
        return plan.tensors[step.inputs[3]]
    return None


@builds("conv2d", "Conv")
def conv(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y, sizes, window = _geometry(step, plan)
    w = _weight(plan, step.inputs[1])
    count = w.shape[0]
    taps = _by_tap(w).reshape(count, -1)
    bias, act = _bias(plan, step, 2, count), Activation.of(step)
    return _tiled(target, Convolution(x, y, sizes, window, taps, bias, _residual(step, plan), act))


def _tiled(target: Target, problem: Convolution) -> list[Launch]:
    return (gpu if target.profile.local_tiles else cpu).tiled(problem, target)


@builds("conv2d_depthwise", "Conv")
def depthwise(step: Step, plan: Plan, target: Target) -> list[Launch]:
    profile = target.profile
    x, y, sizes, window = _geometry(step, plan)
    w = _weight(plan, step.inputs[1])
    packed = w.reshape(w.shape[0], -1).T
    residual = _residual(step, plan)
    bias, act = _bias(plan, step, 2, w.shape[0]), Activation.of(step)
    problem = Convolution(x, y, sizes, window, packed.T, bias, residual, act)
    if _through_images(target, problem):
        return image.convolved(problem, depthwise=True)
    _, height, width, channels, out_h, out_w, _ = sizes
    kh, kw, sh, sw, top, left, dh, dw = window
    v, py, px = vector(profile, y.dtype, channels), 1, min(_DEPTHWISE_PIXELS, out_w)
    tail = not profile.local_tiles and v < _NARROW and channels > profile.lanes
    v = profile.lanes if tail else v
    images, lie = problem.images, problem.places
    tall, wide = _DEPTHWISE_BLOCK
    blocks = channels // v * images * -(-out_h // tall) * -(-out_w // wide)
    enough = blocks >= _DEPTHWISE_ITEMS * profile.compute_units
    if profile.local_tiles and enough and sh == sw == dh == dw == 1:
        py, px = tall, wide
    args = [
        x, _stored(packed, y), bias, residual or y, y,
        images, height, width, channels, out_h, out_w, sh, top, left, dh, *lie,
    ]  # fmt: skip
    aligned = all(n % v == 0 for n in (channels, *lie))
    options = join(
        _options(step, y, residual), "#define FAST_FMA" if profile.fast_fma else "",
        vectors(profile, v, aligned), "#define TAIL" if tail else "",
        f"#define PX {px}\n#define PY {py}\n#define KH {kh}\n#define KW {kw}",
        f"#define SW {sw}\n#define DW {dw}",
    )  # fmt: skip
    items = images * -(-out_h // py) * -(-out_w // px)
    blocks, group = -(-channels // v), None
    if not profile.local_tiles:
        wide, high = group = _CPU_GROUPS[blocks >= _CPU_GROUPS[1][0]]
        blocks, items = -(-blocks // wide) * wide, -(-items // high) * high
    return [Launch("depthwise", "depthwise", args, (blocks, items), options, group)]


def _through_images(target: Target, problem: Convolution) -> bool:
    """For depthwise convolutions of GPUs: the vendor's way before anything was measured."""
    if not (target.profile.local_tiles and image.suits(target.profile, problem, depthwise=True)):
        return False
    ways = ("image", "buffer") if target.profile.prefers_images else ("buffer", "image")
    name = "_".join(map(str, [*problem.sizes, *problem.window]))
    return target.pick(f"depthwise_{problem.y.dtype.value}_{name}", ways) == "image"


@builds("conv2d_grouped", "Conv")
def grouped(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y, sizes, window = _geometry(step, plan)
    w = _weight(plan, step.inputs[1])
    packed = _by_tap(w).transpose(1, 2, 0)
    residual = _residual(step, plan)
    bias = _bias(plan, step, 2, w.shape[0])
    group = int(step.attrs.get("group", 1))
    args = [x, _stored(packed, y), bias, residual or y, y, *sizes, *window, group]
    return [
        Launch(
            "conv_grouped", "conv_grouped", args, (sizes[6], sizes[0]), _options(step, y, residual)
        )
    ]


@builds("deconv2d", "ConvTranspose")
def deconv(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    w = _weight(plan, step.inputs[1])  # (C, O/g, KH, KW)
    group = int(step.attrs.get("group", 1))
    logical = (x.dims[0], x.dims[-1], *x.dims[1:-1])
    found = transposed_window(logical, list(w.shape[2:]), step.attrs)
    fits = list(w.shape[2:]) == list(found["strides"]) and not any(found["pads"])
    even = fits and y.dims[1:3] == (x.dims[1] * w.shape[2], x.dims[2] * w.shape[3])
    if even and group == 1 and (x.dims[3] % 4 == 0 or not target.profile.local_tiles):
        kind = gpu if target.profile.local_tiles else cpu
        made = kind.scattered(step, target, x, y, w, _bias(plan, step, 2, w.shape[1]))
        if made:
            return made
    cin, per = w.shape[0] // group, w.shape[1]
    packed = w.reshape(group, cin, per, -1).transpose(3, 1, 0, 2).reshape(-1, group * per)
    bias = _bias(plan, step, 2, group * per)
    m = y.dims[0] * y.dims[1] * y.dims[2]
    sizes = [m, *x.dims[1:], y.dims[1], y.dims[2], y.dims[3]]
    window = [*w.shape[2:], *found["strides"], *found["pads"][:2], *found["dilations"]]
    args = [x, _stored(packed, y), bias, y, *sizes, *window, group]
    return [Launch("deconv", "deconv", args, (sizes[6], m), _options(step, y, None))]


@builds("gemm", "Gemm")
def gemm(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """A (M,K) with constant B as a 1x1 convolution of M pixels."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    b = _weight(plan, step.inputs[1])
    taps = b if step.attrs.get("transB") else b.T
    taps = taps.scaled(step.attrs.get("alpha", 1.0))
    m, k = x.dims
    sizes = [m, m, 1, k, m, 1, taps.shape[0]]
    bias, act = _bias(plan, step, 2, taps.shape[0]), Activation.of(step)
    return _tiled(target, Convolution(x, y, sizes, POINTWISE, taps, bias, act=act))
