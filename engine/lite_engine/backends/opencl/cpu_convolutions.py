"""Convolutions and products on CPU devices: sums in vector registers, no barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...ir import DType
from ...plan import PlanTensor, Step
from . import byte_products as few_bytes
from . import simple_convolutions as simple
from .constants import Constant
from .launch import Launch, Scratch
from .options import IDENTITY, Activation, join, storage_option, vector
from .problem import POINTWISE, Convolution
from .profile import DeviceProfile
from .registry import Target
from .winograd import WINOGRAD_POINTS, from_points, points_of, suits, tiles_of, to_points

#: Vectors of a block and most pixels of a tile by the floats that a register holds: compilers keep
#: a pixel's factor in a register of its own beside its sums, so 3·TM + 2 of them must do.
_REGISTERS = {16: (2, 9), 8: (2, 4), 4: (2, 4)}
#: Pixels of a tile to choose from: each is a program that a first run has to build.
_PIXELS = (1, 2, 4, 7, 8, 9)
#: A tile's cost beside its pixels, in pixels: its start and its end.
_TILE_COST = 1.5
#: KH, KW, SH, SW, DH and DW of one tap, as conv.cl wants them.
_ONE_TAP = [1] * 6
#: Below so many output pixels, 36 small products lose to one.
_MIN_WINOGRAD_PIXELS = 100


@dataclass(frozen=True)
class Block:
    """TM pixels x NV vectors of V channels in registers."""

    v: int
    nv: int
    tm: int

    @property
    def channels(self) -> int:
        return self.v * self.nv

    def defines(self) -> str:
        return f"#define V {self.v}\n#define NV {self.nv}\n#define TM {self.tm}"


def block_of(profile: DeviceProfile, width: int, outputs: int) -> Block:
    """For rows of `width` pixels and so many output channels."""
    lanes = profile.lanes
    nv, most = _REGISTERS[lanes]
    if outputs <= lanes:
        nv = 1
        while lanes > 4 and outputs <= lanes // 2:
            lanes //= 2
    sizes = [tm for tm in _PIXELS if tm <= min(most, width)]
    return Block(lanes, nv, min(sizes, key=lambda tm: -(-width // tm) * (tm + _TILE_COST)))


def packed(taps: Constant, channels: int) -> Constant:
    """(…, O, K) as (…, blocks, K, channels), zeros beyond O."""
    *planes, count, depth = taps.shape
    blocks = -(-count // channels)
    rows = taps.padded(*planes, blocks * channels, depth)
    last = len(planes)
    by_block = rows.reshape(*planes, blocks, channels, depth)
    return by_block.transpose(*range(last + 1), last + 2, last + 1)


def tiled(problem: Convolution, target: Target) -> list[Launch]:
    profile = target.profile
    ways = [*few_bytes.ways(problem, profile), *(["Winograd"] if _wants_winograd(problem) else [])]
    ways += ["direct", "simple"]
    kind = few_bytes.shape_key(problem)
    way = target.pick(f"{kind}conv_{problem.y.dtype.value}_{problem.key}", ways)
    if way == few_bytes.WAY:
        return few_bytes.product(problem, profile)
    if way == "Winograd":
        return _winograd(problem, profile)
    return (direct if way == "direct" else simple.convolved)(problem, profile)


def grouped(problem: Convolution, target: Target) -> list[Launch]:
    kinds = {"direct": direct, "simple": simple.convolved}
    size = f"grouped_{problem.y.dtype.value}_{problem.key}_{problem.groups}"
    return kinds[target.pick(size, list(kinds))](problem, target.profile)


def direct(problem: Convolution, profile: DeviceProfile) -> list[Launch]:
    """Needs neither local memory nor barriers: any device can run it."""
    m, height, width, channels, out_h, out_w, outputs = problem.sizes
    kh, kw, sh, sw, top, left, dh, dw = problem.window
    x, y, images, lie = problem.x, problem.y, problem.images, problem.places
    # What the window of the last output needs; more of the input is not looked at.
    tall = max((out_h - 1) * sh + (kh - 1) * dh + 1, top + height)
    wide = max((out_w - 1) * sw + (kw - 1) * dw + 1, left + width)
    launches = []
    source: PlanTensor | Scratch = x
    if (tall, wide) != (height, width) or x.dtype is not DType.F32:
        source = Scratch(images * tall * wide * channels * 4)
        frame = (top, left, tall, wide)
        launches.append(_surround(x, source, images, problem.sizes, frame, lie[:2], profile))
        lie[:2] = [channels, 0]
    rows = images * out_h
    if (kh, kw, sh, sw) == (1, 1, 1, 1) and (tall, wide) == (height, width) == (out_h, out_w):
        rows, out_w, wide = 1, m, m  # every pixel lies a constant step after the one before
        out_h = tall = 1
    groups, own = problem.groups, outputs // problem.groups
    block = block_of(profile, out_w, own)
    options = join(storage_option(y.dtype), problem.act.rest)
    weights = packed(problem.taps.reshape(groups, own, -1), block.channels)
    _, blocks, depth, count = weights.shape
    bias = problem.bias.reshape(groups, own).padded(groups, blocks * count)
    tensors = [source, weights, bias, problem.residual or y, y]
    inside = [tall, wide, channels // groups, out_h, out_w, own]
    steps = [kh, kw, sh, sw, dh, dw]
    planes = [channels // groups, blocks * depth * count, blocks * count, own]
    more = [*lie, outputs, *planes, *problem.ending]
    sums = _sums(profile, block, tensors, inside, steps, (rows, blocks, groups), options, more)
    return [*launches, sums]


def product(
    step: Step,
    target: Target,
    a: PlanTensor | Scratch,
    b: PlanTensor | Scratch,
    y: PlanTensor,
    sizes: tuple[int, int, int, int],
    planes: tuple[int, int],
) -> list[Launch]:
    """y (batch,M,N) = a (…,M,K) · b (…,K,N), both computed. `sizes` (batch, M, N, K); `planes` how
    many a and b have, 1 or batch."""
    profile = target.profile
    batch, m, n, k = sizes
    size = f"matmul_{y.dtype.value}_{batch}_{m}_{n}_{k}"
    if not profile.local_tiles and target.pick(size, ("direct", "simple")) == "simple":
        return simple.product(step, profile, a, b, y, sizes, planes)
    block = block_of(profile, m, n)
    blocks = -(-n // block.channels)
    weights = Scratch(planes[1] * blocks * k * block.channels * 4)
    layout = join(storage_option(b.dtype), f"#define WIDTH {block.channels}")
    launches = [Launch("pack", "pack", [b, weights, k, n, blocks], (k, blocks, planes[1]), layout)]
    source: PlanTensor | Scratch = a
    if a.dtype is not DType.F32:
        source = Scratch(planes[0] * m * k * 4)
        whole = [1, planes[0] * m, 1, k]
        frame = (0, 0, planes[0] * m, 1)
        launches.append(_surround(a, source, 1, whole, frame, [k, 0], profile))
    steps = [0 if p == 1 else count for p, count in zip(planes, (m * k, blocks * k))]
    apart = (steps[0], steps[1] * block.channels, 0, m * n)
    act = Activation.of(step)
    text = join(storage_option(y.dtype), act.rest)
    tensors = [source, weights, Constant.zeros(blocks * block.channels), y, y]
    inside = [1, m, k, 1, m, n]
    more = [k, 0, n, 0, n, *apart, *act.arguments, 0]
    sums = _sums(profile, block, tensors, inside, _ONE_TAP, (1, blocks, batch), text, more)
    return [*launches, sums]


def scattered(
    step: Step,
    target: Target,
    x: PlanTensor,
    y: PlanTensor,
    w: Constant,
    bias: Constant,
) -> list[Launch]:
    """ConvTranspose with stride = kernel and no padding: one product whose columns are (ky, kx, o),
    then its rows in their places. w (C, O, KH, KW). Nothing where another way was chosen."""
    cin, cout, kh, kw = w.shape
    size = f"deconv_{y.dtype.value}_{'_'.join(map(str, (*x.dims, *w.shape)))}"
    if target.pick(size, ("scattered", "direct")) == "direct":
        return []
    taps = w.transpose(2, 3, 1, 0).reshape(kh * kw * cout, cin)
    n, height, width, _ = x.dims
    m = n * height * width
    made = Scratch(m * taps.shape[0] * y.dtype.itemsize, y.dtype)
    sizes = [m, m, 1, cin, m, 1, taps.shape[0]]
    tiled_bias, act = Constant.of(np.tile(bias.value, kh * kw)), Activation.of(step)
    inner = Convolution(x, made, sizes, POINTWISE, taps, tiled_bias, act=act)
    text = join(storage_option(y.dtype), f"#define V {target.profile.lanes}\n#define WIDTH 1")
    args = [made, y, n * height, width, kh, kw * cout]
    return [
        *direct(inner, target.profile),
        Launch("pack", "spread", args, (n * height, kh), text, (1, 1)),
    ]


def _sums(
    profile: DeviceProfile,
    block: Block,
    tensors: Sequence[object],
    sizes: list[int],
    steps: list[int],
    grid: tuple[int, int, int],
    options: str,
    more: Sequence[object],
) -> Launch:
    """The sums of conv.cl. `tensors` are x, w, bias, residual and y, `sizes` H, W, C, OH, OW and O,
    `steps` KH, KW, SH, SW, DH and DW, `grid` rows of outputs, blocks of channels and planes,
    `more` the places of x and y (problem.places), the elements from pixel to pixel of the residual,
    those from plane to plane of x, w, bias and y, and what a layer ends with (problem.ending)."""
    fma = "#define FAST_FMA" if profile.fast_fma else ""
    text = join(options, fma, block.defines())
    items = (grid[0] * -(-sizes[4] // block.tm), *grid[1:])
    return Launch("conv", "conv", [*tensors, *sizes, *steps, *more], items, text, (1, 1, 1))


def _surround(
    x: PlanTensor | Scratch,
    target: Scratch,
    images: int,
    sizes: list[int],
    frame: tuple[int, int, int, int],
    lie: list[int],
    profile: DeviceProfile,
) -> Launch:
    """x as floats with its padding. `frame` is (top, left, height, width) of the padded image and
    `lie` the elements from pixel to pixel of x and before the first."""
    _, height, width, channels = sizes[:4]
    top, left, tall, wide = frame
    rows = images * tall
    args = [x, target, rows, height, width, channels, top, left, tall, wide, *lie]
    text = join(storage_option(x.dtype), f"#define V {profile.lanes}\n#define WIDTH 1")
    return Launch("pack", "surround", args, (rows,), text, (1,))


def _wants_winograd(problem: Convolution) -> bool:
    m, outputs = problem.sizes[0], problem.sizes[6]
    return suits(problem) and outputs % 4 == 0 and m >= _MIN_WINOGRAD_PIXELS


def _winograd(problem: Convolution, profile: DeviceProfile) -> list[Launch]:
    channels, outputs, tiles = problem.sizes[3], problem.sizes[6], tiles_of(problem.sizes)
    points = points_of(problem.taps, channels)
    block = block_of(profile, tiles, outputs)
    weights = packed(points.transpose(0, 2, 1), block.channels)
    before = Scratch(WINOGRAD_POINTS * tiles * channels * 4)
    after = Scratch(WINOGRAD_POINTS * tiles * outputs * 4)
    blocks = weights.shape[1]
    apart = (tiles * channels, blocks * channels * block.channels, 0, tiles * outputs)
    tensors = [before, weights, Constant.zeros(blocks * block.channels), after, after]
    inside, grid = [1, tiles, channels, 1, tiles, outputs], (1, blocks, WINOGRAD_POINTS)
    text = join(storage_option(problem.y.dtype), problem.act.rest)
    more = [channels, 0, outputs, 0, outputs, *apart, *IDENTITY.arguments, 0]
    group = (1, 8)
    v, u = vector(profile, DType.F32, channels), vector(profile, DType.F32, outputs)
    return [
        to_points(problem, before, text, v, group),
        _sums(profile, block, tensors, inside, _ONE_TAP, grid, "", more),
        from_points(problem, after, text, u, group),
    ]
