"""Convolutions and products with an output per work-item (`conv_grouped.cl`).

They share nothing with the faster kernels: what is left when those fail.
"""

from __future__ import annotations

from ...plan import PlanTensor, Step
from .constants import Constant
from .launch import Launch, Scratch
from .movement import strided_copy
from .options import Activation, join, storage_option
from .problem import POINTWISE, Convolution
from .profile import DeviceProfile
from .strides import strides_of


def convolved(problem: Convolution, profile: DeviceProfile) -> list[Launch]:
    """Parts of a Concat or Split are copied out of the whole and back into it."""
    m, height, width, channels, *_, outputs = problem.sizes
    x_step, x_at, y_step, y_at = problem.places
    x, y, before, after = problem.x, problem.y, [], []
    if (x_step, x_at) != (channels, 0):
        pixels = problem.images * height * width
        x = Scratch(pixels * channels * x.dtype.itemsize, x.dtype)
        shape, steps = (pixels, channels), [x_step, 1]
        before = [strided_copy(profile, problem.x, x, shape, steps, [channels, 1], x_at)]
    if (y_step, y_at) != (outputs, 0):
        y = Scratch(m * outputs * y.dtype.itemsize, y.dtype)
        shape, steps = (m, outputs), [y_step, 1]
        after = [strided_copy(profile, y, problem.y, shape, [outputs, 1], steps, 0, y_at)]
    weights = problem.taps.T.cast(y.dtype)  # (KH·KW·C/groups, O)
    args: list[object] = [
        x, weights, problem.bias, problem.residual or y, y,
        *problem.sizes, *problem.window, problem.groups,
    ]  # fmt: skip
    residual = "#define RESIDUAL" if problem.residual is not None else ""
    return [*before, _launch(args, y, problem.act, (outputs, m), residual), *after]


def product(
    step: Step,
    profile: DeviceProfile,
    a: PlanTensor | Scratch,
    b: PlanTensor | Scratch,
    y: PlanTensor,
    sizes: tuple[int, int, int, int],
    planes: tuple[int, int],
) -> list[Launch]:
    """y (batch,M,N) = a (…,M,K) · b (…,K,N), both computed: planes become groups of channels.
    `sizes` (batch, M, N, K); `planes` how many a and b have, 1 or batch."""
    batch, m, n, k = sizes
    beside = Scratch(m * batch * k * a.dtype.itemsize, a.dtype)
    below = Scratch(k * batch * n * b.dtype.itemsize, b.dtype)
    made = Scratch(m * batch * n * y.dtype.itemsize, y.dtype)
    apart = [0 if p == 1 else size for p, size in zip(planes, (m * k, k * n))]
    shape = (batch, m, n)
    return [
        _turned(profile, a, beside, (m, batch, k), [k, apart[0], 1]),
        _turned(profile, b, below, (k, batch, n), [n, apart[1], 1]),
        _launch(
            [beside, below, Constant.zeros(batch * n), made, made,
             m, m, 1, batch * k, m, 1, batch * n, *POINTWISE, batch],
            y, Activation.of(step), (batch * n, m),
        ),
        strided_copy(profile, made, y, shape, [n, batch * n, 1], strides_of(shape)),
    ]  # fmt: skip


def _turned(
    profile: DeviceProfile,
    x: PlanTensor | Scratch,
    to: Scratch,
    dims: tuple[int, ...],
    steps: list[int],
) -> Launch:
    return strided_copy(profile, x, to, dims, steps, strides_of(dims))


def _launch(
    args: list[object],
    y: PlanTensor | Scratch,
    act: Activation,
    grid: tuple[int, int],
    more: str = "",
) -> Launch:
    options = join(storage_option(y.dtype), more, act.options)
    return Launch("conv_grouped", "conv_grouped", args, grid, options)
