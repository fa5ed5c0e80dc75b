"""Launches of convolutions and Gemm: weights packed here, once."""

from __future__ import annotations

import numpy as np

from ...ir import TypeInfo
from ...ops._conv_window import conv_window
from ...plan import Plan, PlanTensor, Step
from . import cpu_convolutions as cpu
from . import gpu_convolutions as gpu
from . import image_convolutions as image
from . import simple_convolutions as simple
from .constants import Constant
from .launch import Launch
from .options import Activation, join, storage_option, vector, vectors
from .problem import POINTWISE, ByteWeights, Convolution, depthwise_block, depthwise_grid
from .profile import DeviceProfile
from .registry import Target, builds

#: Where channels divide only into vectors below this, a CPU gets whole ones, the last overlapping.
_NARROW = 8


def weight_of(plan: Plan, index: int) -> Constant:
    data = plan.tensors[index].data
    assert data is not None, "the registry's condition asks for constant weights"
    return Constant.floats(data)


def bias_of(plan: Plan, step: Step, index: int, count: int) -> Constant:
    if index >= len(step.inputs) or step.inputs[index] < 0:
        return Constant.zeros(count)
    bias = weight_of(plan, step.inputs[index])
    if bias.size != count:  # one number for all
        bias = Constant.of(np.full(count, bias.value.ravel()))
    return bias.reshape(count)


def _by_tap(w: Constant) -> Constant:
    """(O, C, KH, KW) → (O, KH·KW, C)."""
    return w.reshape(*w.shape[:2], -1).transpose(0, 2, 1)


def _geometry(step: Step, plan: Plan) -> tuple[PlanTensor, PlanTensor, list[int], list[int]]:
    """x, y, [M, H, W, C, OH, OW, O] and [KH, KW, SH, SW, PT, PL, DH, DW]; rank 3 gets H = 1."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    w = weight_of(plan, step.inputs[1])
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


def _problem(step: Step, plan: Plan, by_channel: bool = False) -> Convolution:
    """A Conv; its taps are (O, KH·KW·C/groups), of a depthwise one (C, KH·KW)."""
    x, y, sizes, window = _geometry(step, plan)
    w = weight_of(plan, step.inputs[1])
    taps = (w if by_channel else _by_tap(w)).reshape(w.shape[0], -1)
    bias, act = bias_of(plan, step, 2, w.shape[0]), Activation.of(step)
    groups = int(step.attrs.get("group", 1))
    weights = ByteWeights.of(plan.tensors[step.inputs[1]]) if window == POINTWISE else None
    residual = _residual(step, plan)
    return Convolution(x, y, sizes, window, taps, bias, residual, act, groups, weights)


@builds("conv2d", "Conv")
def conv(step: Step, plan: Plan, target: Target) -> list[Launch]:
    return tiled(target, _problem(step, plan))


def tiled(target: Target, problem: Convolution) -> list[Launch]:
    return (gpu if target.profile.local_tiles else cpu).tiled(problem, target)


@builds("conv2d_depthwise", "Conv")
def depthwise(step: Step, plan: Plan, target: Target) -> list[Launch]:
    problem = _problem(step, plan, by_channel=True)
    ways = ["buffer", "simple"]
    if target.profile.local_tiles and image.suits(target.profile, problem, depthwise=True):
        # The vendor's way before anything was measured.
        ways.insert(0 if target.profile.prefers_images else 1, "image")
    way = target.pick(f"depthwise_{problem.y.dtype.value}_{problem.key}", ways)
    if way == "image":
        return image.convolved(problem, depthwise=True)
    if way == "simple":
        return simple.convolved(problem, target.profile)
    return [_by_vectors(problem, target.profile)]


def _by_vectors(problem: Convolution, profile: DeviceProfile) -> Launch:
    """A depthwise convolution: an item has a vector of channels at a few neighbouring pixels."""
    y = problem.y
    _, height, width, channels, out_h, out_w, _ = problem.sizes
    kh, kw, sh, sw, top, left, dh, dw = problem.window
    v = vector(profile, y.dtype, channels)
    tail = not profile.local_tiles and v < _NARROW and channels > profile.lanes
    v = profile.lanes if tail else v
    images, lie = problem.images, problem.places
    py, px = depthwise_block(problem.sizes, problem.window, v, profile)
    args = [
        problem.x, problem.taps.T.cast(y.dtype), problem.bias, problem.residual or y, y,
        images, height, width, channels, out_h, out_w, sh, top, left, dh, *lie,
    ]  # fmt: skip
    aligned = all(n % v == 0 for n in (channels, *lie))
    options = join(
        storage_option(y.dtype), "#define RESIDUAL" if problem.residual is not None else "",
        problem.act.options, "#define FAST_FMA" if profile.fast_fma else "",
        vectors(profile, v, aligned), "#define TAIL" if tail else "",
        f"#define PX {px}\n#define PY {py}\n#define KH {kh}\n#define KW {kw}",
        f"#define SW {sw}\n#define DW {dw}",
    )  # fmt: skip
    items = images * -(-out_h // py) * -(-out_w // px)
    grid, group = depthwise_grid(profile, -(-channels // v), items)
    return Launch("depthwise", "depthwise", args, grid, options, group)


@builds("conv2d_grouped", "Conv")
def grouped(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """Groups are planes of one product."""
    problem = _problem(step, plan)
    return (gpu if target.profile.local_tiles else cpu).grouped(problem, target)


@builds("gemm", "Gemm")
def gemm(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """A (M,K) with constant B as a 1x1 convolution of M pixels."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    b = weight_of(plan, step.inputs[1])
    alpha, columns = step.attrs.get("alpha", 1.0), not step.attrs.get("transB")
    taps = (b.T if columns else b).scaled(alpha)
    weights = ByteWeights.of(plan.tensors[step.inputs[1]], columns, alpha)
    m, k = x.dims
    sizes = [m, m, 1, k, m, 1, taps.shape[0]]
    bias, act = bias_of(plan, step, 2, taps.shape[0]), Activation.of(step)
    residual = _residual(step, plan)
    return tiled(target, Convolution(x, y, sizes, POINTWISE, taps, bias, residual, act, 1, weights))


def matmul_problem(step: Step, plan: Plan) -> Convolution:
    """a (…, K) times a constant B (K, N) as a 1x1 convolution of as many pixels."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    b = plan.tensors[step.inputs[1]]
    taps, (k, n) = weight_of(plan, b.index).T, b.dims
    m, act = x.size // k, Activation.of(step)
    bias, weights = Constant.zeros(n), ByteWeights.of(b, columns=True)
    sizes = [m, m, 1, k, m, 1, n]
    return Convolution(x, y, sizes, POINTWISE, taps, bias, act=act, weights=weights)
