"""Launches of transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...ops.conv_transpose import transposed_window
from ...plan import Plan, PlanTensor, Step
from . import cpu_convolutions as cpu
from . import gpu_convolutions as gpu
from .constants import Constant
from .convolutions import bias_of, weight_of
from .launch import Launch, Scratch
from .movement import strided_copy
from .options import Activation, join, storage_option
from .problem import Convolution
from .profile import DeviceProfile
from .registry import Target, builds
from .strides import strides_of


@builds("deconv2d", "ConvTranspose")
def deconv(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    w = weight_of(plan, step.inputs[1])  # (C, O/g, KH, KW)
    group = int(step.attrs.get("group", 1))
    bias = bias_of(plan, step, 2, group * w.shape[1])
    found = transposed_window((x.dims[0], x.dims[-1], *x.dims[1:-1]), list(w.shape[2:]), step.attrs)
    fits = list(w.shape[2:]) == list(found["strides"]) and not any(found["pads"])
    even = fits and y.dims[1:3] == (x.dims[1] * w.shape[2], x.dims[2] * w.shape[3])
    window = [*w.shape[2:], *found["strides"], *found["pads"][:2], *found["dilations"]]
    tiles = target.profile.local_tiles
    if even and group == 1 and (x.dims[3] % 4 == 0 or not tiles):
        made = (gpu if tiles else cpu).scattered(step, target, x, y, w, bias)
        return made or _gathered(step, target.profile, x, y, w, bias, window, group)
    size = f"deconv_{y.dtype.value}_{'_'.join(map(str, (*x.dims, *y.dims, *window, group)))}"
    ways = {"phases": _phases, "direct": _gathered}
    way = target.pick(size, list(reversed(ways)) if tiles else list(ways))
    return ways[way](step, target.profile, x, y, w, bias, window, group)


def _gathered(
    step: Step, profile: DeviceProfile, x: PlanTensor, y: PlanTensor, w: Constant, bias: Constant,
    window: list[int], group: int,
) -> list[Launch]:  # fmt: skip
    """Each output looks for the inputs that reach it."""
    per = w.shape[1]
    packed = w.reshape(group, -1, per, math.prod(w.shape[2:])).transpose(3, 1, 0, 2)
    packed = packed.reshape(-1, group * per).cast(y.dtype)
    m = math.prod(y.dims[:3])
    sizes = [m, *x.dims[1:], *y.dims[1:]]
    options = join(storage_option(y.dtype), Activation.of(step).options)
    args = [x, packed, bias, y, *sizes, *window, group]
    return [Launch("deconv", "deconv", args, (sizes[6], m), options)]


def _phases(
    step: Step, profile: DeviceProfile, x: PlanTensor, y: PlanTensor, w: Constant, bias: Constant,
    window: list[int], group: int,
) -> list[Launch]:  # fmt: skip
    """As the convolution that it is between remainders of the stride (Shi 2016, "Is the
    deconvolution layer the same as a convolutional layer?"): y[s·q + r] sums w[r + s·t]·x[q − t]
    over t, so that the s·s remainders are output channels, of which each pixel then takes its own.
    """
    kh, kw, sh, sw, top, left, dh, dw = window
    n, height, width, channels = x.dims
    _, out_h, out_w, outputs = y.dims
    own = outputs // group
    th, tw = -(-kh * dh // sh), -(-kw * dw // sw)  # taps of a remainder
    tall, wide = -(-(out_h + top) // sh), -(-(out_w + left) // sw)
    taps = w.reshape(channels, own, kh, 1, kw, 1).padded(channels, own, kh, dh, kw, dw)
    taps = taps.reshape(channels, own, kh * dh, kw * dw).padded(channels, own, th * sh, tw * sw)
    taps = taps.reshape(group, channels // group, own, th, sh, tw, sw).reversed(3).reversed(5)
    taps = taps.transpose(0, 4, 6, 2, 3, 5, 1).reshape(sh * sw * outputs, -1)
    made = Scratch(n * tall * wide * taps.shape[0] * y.dtype.itemsize, y.dtype)
    sizes = [n * tall * wide, height, width, channels, tall, wide, taps.shape[0]]
    every = np.tile(bias.value.reshape(group, 1, own), (1, sh * sw, 1)).ravel()
    problem = Convolution(
        x, made, sizes, [th, tw, 1, 1, th - 1, tw - 1, 1, 1], taps, Constant.of(every),
        act=Activation.of(step), groups=group,
    )  # fmt: skip
    # (n·q, rh, q, rw, group, own) of the whole, and in what was made
    shape = (n * tall, sh, wide, sw, group, own)
    channel, pixel = own * sh * sw, own * sh * sw * group
    steps = [wide * pixel, sw * own, pixel, own, channel, 1]
    given = cpu.direct(problem, profile)
    return [*given, *interleaved(profile, made, y, y.dims, shape, steps, (top, left))]


def interleaved(
    profile: DeviceProfile,
    made: Scratch,
    y: PlanTensor,
    dims: Sequence[int],
    shape: tuple[int, ...],
    steps: list[int],
    first: tuple[int, int],
) -> list[Launch]:
    """Launches that put the remainders of `made` beside each other. y, of `dims` (n, h, w, c),
    begins in row and column `first` of what they make: `shape` (n·rows, sh, columns, sw, …)."""
    n, out_h, out_w, outputs = dims
    rows, row = shape[0] // n * shape[1], shape[2] * shape[3] * outputs
    fits = (*first, rows, row) == (0, 0, out_h, out_w * outputs)
    whole = y if fits else Scratch(n * rows * row * y.dtype.itemsize, y.dtype)
    launches = [strided_copy(profile, made, whole, shape, steps, strides_of(shape))]
    if not fits:
        cut, at = (n, out_h, out_w * outputs), first[0] * row + first[1] * outputs
        launches.append(
            strided_copy(profile, whole, y, cut, [rows * row, row, 1], strides_of(cut), at)
        )
    return launches
