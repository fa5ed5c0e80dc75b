"""Convolutions and Gemm on GPUs: local-memory tiles, split K, Winograd, few rows."""

from __future__ import annotations

import math
from functools import lru_cache

from ...ir import DType
from ...plan import PlanTensor, Step
from . import byte_products as few_bytes
from . import cpu_convolutions as cpu
from . import image_convolutions as image
from . import simple_convolutions as simple
from .constants import Constant
from .launch import Launch, Scratch
from .options import activation_options, join, storage_option, vectors, widest
from .problem import POINTWISE, Convolution
from .profile import DeviceProfile
from .registry import Target
from .variants import (
    DIRECT,
    IN_BYTES,
    LINE,
    SMALLEST,
    Product,
    Tile,
    Variant,
    estimate_s,
    simple_s,
    stages_of,
    variants,
)
from .winograd import WINOGRAD_POINTS, from_points, points_of, suits, tiles_of, to_points

FEW_ROWS = 8
#: Items side by side in a product of few rows, where outputs are enough for all units; and the
#: fewest weights that they read in a run: a sector of memory in fp16, two in fp32.
_GEMV_LANES, _GEMV_RUN = 16, 16
#: Most columns of a window on matrix units, and rows with those beyond, into which the last step
#: may reach: each has a bit in half a word.
_MATRIX_WINDOW = 15
#: Steps of a computed product whose K may be split, and the fewest of a part.
_MANY_STEPS, _FEWEST_STEPS = 8, 4


@lru_cache(maxsize=4096)
def ranked(size: Product, units: int, matrix: int = 0) -> tuple[Variant, ...]:
    return tuple(variants(size, units, matrix))


def with_images(ways: tuple[Variant, ...], first: bool) -> tuple[Variant, ...]:
    """Reading through images as a further way: the first one, or one that any measuring tries."""
    at = 0 if first else 1
    return (*ways[:at], Variant(SMALLEST, image=True), *ways[at:])


def product_of(problem: Convolution) -> Product:
    sizes, groups = problem.of_group, problem.groups
    tiles = tiles_of(sizes) if groups == 1 and suits(problem) else 0
    return Product(sizes[0], sizes[6], problem.taps.shape[1], sizes[3], tiles, groups)


def few_rows(problem: Convolution) -> bool:
    m, height, width = problem.sizes[:3]
    simple = problem.dense and problem.residual is None
    return m < FEW_ROWS and simple and [height, width] == [m, 1]


def tiled(problem: Convolution, target: Target) -> list[Launch]:
    profile = target.profile
    size, dtype = product_of(problem), problem.y.dtype
    in_bytes, kind = few_bytes.ways(problem, profile), few_bytes.shape_key(problem)
    if few_rows(problem):
        way = target.pick(f"{kind}gemv_{dtype.value}_{size}", (*in_bytes, "few rows", "direct"))
        if way == few_bytes.WAY:
            return few_bytes.product(problem, profile)
        return [_gemv(problem, profile)] if way == "few rows" else cpu.direct(problem, profile)
    ways = ranked(size, profile.compute_units, _matrix(problem, profile))
    if image.suits(profile, problem):
        ways = with_images(ways, profile.prefers_images)
    first = (IN_BYTES,) if in_bytes else ()
    variant = target.pick(f"{kind}conv_{dtype.value}_{size}", (*first, *ways, DIRECT))
    if variant.in_bytes:
        return few_bytes.product(problem, profile)
    if variant.image:
        return image.convolved(problem)
    if variant.direct:
        return cpu.direct(problem, profile)
    if variant.winograd:
        return _winograd(problem, profile, variant)
    return _direct(problem, profile, variant)


def grouped(problem: Convolution, target: Target) -> list[Launch]:
    """Groups are planes of one launch. Groups of few channels would leave most of a tile empty:
    there, a work-item computes one output."""
    profile, size = target.profile, product_of(problem)
    units = profile.compute_units
    ranking = ranked(size, units, _matrix(problem, profile))
    sooner = [v for v in ranking if estimate_s(size, v, units) < simple_s(size, units)]
    rest = ranking[len(sooner) :]
    name = f"grouped_{problem.y.dtype.value}_{problem.key}_{problem.groups}"
    ways: list[Variant | str] = [*sooner, "simple", *rest, "direct"]
    way = target.pick(name, ways)
    if isinstance(way, Variant):
        return _direct(problem, profile, way)
    return (simple.convolved if way == "simple" else cpu.direct)(problem, profile)


def _matrix(problem: Convolution, profile: DeviceProfile) -> int:
    """Bytes of a number for matrix units, 0 where they cannot be used."""
    x_step, x_at, y_step, y_at = problem.places
    even = x_step % 4 == x_at % 4 == y_step % 2 == y_at % 2 == 0
    rows, columns = problem.window[:2]
    itemsize = problem.y.dtype.itemsize
    beyond = 0 if problem.pointwise else (LINE // itemsize - 1) // (problem.of_group[3] * columns)
    fits = even and max(rows + beyond, columns) <= _MATRIX_WINDOW
    return itemsize if profile.matrix_units and fits else 0


def _finish(problem: Convolution) -> list[str]:
    """Options of whatever writes y."""
    options = [problem.act.options]
    options += ["#define RESIDUAL"] if problem.residual is not None else []
    options += ["#define WIDE_OUT"] if problem.of_group[6] % 4 == 0 else []
    options += ["#define GROUPED"] if problem.groups > 1 else []
    return options


def _direct(problem: Convolution, profile: DeviceProfile, variant: Variant) -> list[Launch]:
    y, sizes, lie, groups = problem.y, problem.of_group, problem.places, problem.groups
    m, channels, outputs = sizes[0], sizes[3], sizes[6]
    tile, parts = variant.tile, variant.parts
    taps = problem.taps.reshape(groups, outputs, -1) if groups > 1 else problem.taps
    packed, deep, wide = _packed(_turned(taps), tile, y.dtype)
    row = wide
    if variant.matrix:
        packed, row = _turned(packed), deep
    part = -(-(deep // tile.bk) // parts) * tile.bk
    parts = -(-deep // part)
    if groups > 1:  # their K is not split: from the weights of one to those of the next
        part = deep * wide
    options = [*_finish(problem), _storage(profile, y.dtype)]
    fours, eights = (all(n % v == 0 for n in (channels, *lie[:2])) for v in (4, 8))
    options += ["#define POINTWISE"] if problem.pointwise and fours else []
    options += ["#define QUADS"] if fours else []
    options += ["#define OCTS"] if eights else []
    options += ["#define SPLIT"] if parts > 1 else []
    text = join(*options)
    partial = Scratch(parts * m * outputs * 4 if parts > 1 else 4)
    args: list[object] = [
        problem.x, packed, problem.bias, problem.residual or y, y, partial,
        *sizes, *problem.window, row, deep, part, *lie,
    ]  # fmt: skip
    out = [_tile_launch(profile, args, variant, m, wide, parts * groups, text)]
    if parts > 1:
        ends = problem.bias, problem.residual or y
        out.append(_summed(variant, partial, *ends, y, text, parts, (m, outputs), lie[2:]))
    return out


def _summed(
    variant: Variant,
    partial: Scratch,
    bias: Constant,
    residual: PlanTensor | Scratch,
    y: PlanTensor | Scratch,
    text: str,
    parts: int,
    shape: tuple[int, int],
    lie: list[int],
) -> Launch:
    """The sum of the parts of a split K, into the (rows, columns) of y."""
    n = math.prod(shape)
    sums = [partial, bias, residual, y, n, shape[1], parts, *lie]
    grid = (n // 4 if shape[1] % 4 == 0 else n,)
    # Beside the sums the text has the products of a tile, which matrix units do not use.
    beside = SMALLEST if variant.matrix else variant.tile
    return Launch("conv_tile", "conv_sum", sums, grid, join(text, beside.defines()))


def _storage(profile: DeviceProfile, dtype: DType) -> str:
    half = dtype is DType.F16 and profile.half_math
    return join(storage_option(dtype), "#define HALF_MATH" if half else "")


def _packed(matrix: Constant, tile: Tile, dtype: DType) -> tuple[Constant, int, int]:
    """(…, K, N) with zeros up to whole tiles; the padded K and N."""
    depth, count = matrix.shape[-2:]
    deep, wide = -(-depth // tile.bk) * tile.bk, -(-count // tile.bn) * tile.bn
    return matrix.padded(*matrix.shape[:-2], deep, wide).cast(dtype), deep, wide


def _turned(matrix: Constant) -> Constant:
    """The last two axes exchanged: tiles read weights as (…, K, N), matrix units as (…, N, K)."""
    last = len(matrix.shape) - 1
    return matrix.transpose(*range(last - 1), last, last - 1)


def _tile_launch(
    profile: DeviceProfile,
    args: list[object],
    variant: Variant,
    m: int,
    wide: int,
    planes: int,
    text: str,
) -> Launch:
    tile, name = variant.tile, variant.kernel
    across, down = wide // tile.bn, -(-m // tile.bm)
    text = join(text, tile.defines())
    if variant.matrix:
        groups = across * down
        stages = stages_of(tile, variant.matrix, groups * planes, profile.compute_units)
        text, across, down = join(text, f"#define STAGES {stages}"), groups, 1
    return Launch(name, name, args, (across * tile.items, down, planes), text, (tile.items, 1, 1))


def _winograd(problem: Convolution, profile: DeviceProfile, variant: Variant) -> list[Launch]:
    """Transforms and products are float in fp16 too: half would lose three more bits."""
    channels, outputs = problem.sizes[3], problem.sizes[6]
    tiles, tile = tiles_of(problem.sizes), variant.tile
    packed, deep, wide = _packed(points_of(problem.taps, channels), tile, DType.F32)
    weights = (wide, deep, deep)
    if variant.matrix:
        packed, weights = _turned(packed), (deep, deep, deep * wide)
    before = Scratch(WINOGRAD_POINTS * tiles * channels * 4)
    after = Scratch(WINOGRAD_POINTS * tiles * outputs * 4)
    text = join(storage_option(problem.y.dtype), problem.act.options)
    product = [
        before, packed, before, before, before, after,
        tiles, tiles, 1, channels, tiles, 1, outputs, *POINTWISE, *weights,
        channels, 0, outputs, 0,
    ]  # fmt: skip
    multiplied = join(
        "#define POINTWISE\n#define QUADS\n#define BATCHED",
        "#define WIDE_OUT" if outputs % 4 == 0 else "",
    )  # fmt: skip
    return [
        to_points(problem, before, text),
        _tile_launch(profile, product, variant, tiles, wide, WINOGRAD_POINTS, multiplied),
        from_points(problem, after, text),
    ]


def scattered(
    step: Step,
    target: Target,
    x: PlanTensor,
    y: PlanTensor,
    w: Constant,
    bias: Constant,
) -> list[Launch]:
    """ConvTranspose with stride = kernel and no padding: one product whose columns are (ky, kx, o).

    w (C, O, KH, KW). Nothing where another way was chosen.
    """
    cin, cout, kh, kw = w.shape
    taps = w.transpose(2, 3, 1, 0).reshape(kh * kw * cout, cin)
    m = x.dims[0] * x.dims[1] * x.dims[2]
    size = Product(m, taps.shape[0], cin)
    ways = [v for v in ranked(size, target.profile.compute_units) if v.parts == 1]
    variant = target.pick(f"deconv_{y.dtype.value}_{size}", [*ways, DIRECT])
    if variant.direct:
        return []
    tile = variant.tile
    packed, deep, wide = _packed(taps.T, tile, y.dtype)
    text = join(
        _storage(target.profile, y.dtype), activation_options(step),
        "#define POINTWISE\n#define QUADS",
        f"#define SCATTER {cout}", f"#define DECONV_H {kh}", f"#define DECONV_W {kw}",
        f"#define SCATTER_STEP {4 if cout % 4 == 0 else 1}",
    )  # fmt: skip
    sizes = [m, x.dims[1], x.dims[2], cin, x.dims[1], x.dims[2], taps.shape[0]]
    lie = [cin, 0, taps.shape[0], 0]
    args = [x, packed, bias, y, y, Scratch(4), *sizes, *POINTWISE, wide, deep, deep, *lie]
    return [_tile_launch(target.profile, args, variant, m, wide, 1, text)]


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
    size = Product(m, n, k)
    matrix = y.dtype.itemsize if profile.matrix_units and n % 4 == k % 4 == 0 else 0
    ways = [v for v in ranked(size, profile.compute_units, matrix) if v.parts == 1]
    variant = target.pick(f"matmul_{y.dtype.value}_{batch}_{size}", [*ways, DIRECT])
    if variant.direct:
        return cpu.product(step, target, a, b, y, sizes, planes)
    tile = variant.tile
    deep, wide = -(-k // tile.bk) * tile.bk, -(-n // tile.bn) * tile.bn
    groups = -(-m // tile.bm) * (wide // tile.bn) * batch
    part = _part_of(deep // tile.bk, groups, profile.compute_units) * tile.bk
    parts = -(-deep // part)
    text = join(
        _storage(profile, y.dtype), activation_options(step), "#define POINTWISE\n#define MATMUL",
        "#define QUADS" if k % 4 == 0 else "",
        "#define OCTS" if k % 8 == 0 else "",
        "#define WIDE_OUT" if n % 4 == 0 else "",
        f"#define SPLIT\n#define PLANES {batch}\n#define PART {part}" if parts > 1 else "",
    )  # fmt: skip
    apart = [0 if p == 1 else count for p, count in zip(planes, (m * k, k * n))]
    sizes_and_window = [m, m, 1, k, m, 1, n, *POINTWISE]
    lie = [apart[1], deep, apart[0], k, 0, n, 0]
    partial = Scratch(parts * batch * m * n * 4 if parts > 1 else 4)
    args: list[object] = [a, b, a, y, y, partial, *sizes_and_window, *lie]
    out = [_tile_launch(profile, args, variant, m, wide, parts * batch, text)]
    if parts > 1:
        zeros = Constant.zeros(n)
        out.append(_summed(variant, partial, zeros, y, y, text, parts, (batch * m, n), [n, 0]))
    return out


def _part_of(steps: int, groups: int, units: int) -> int:
    """Steps of K that a group makes of a product of so many groups: all, unless these leave most
    units idle for longer than a second launch takes (a step of an H200 takes 2 µs)."""
    if steps < _MANY_STEPS or groups * 4 > units:
        return steps
    return -(-steps // min(units // groups, steps // _FEWEST_STEPS))


def _gemv(problem: Convolution, profile: DeviceProfile) -> Launch:
    m, y, (outputs, depth) = problem.sizes[0], problem.y, problem.taps.shape
    v = widest(profile, y.dtype)
    lanes = _GEMV_LANES
    while lanes * v > _GEMV_RUN and lanes > 1 and outputs < lanes * v * profile.compute_units:
        lanes //= 2
    groups = -(-outputs // (lanes * v))
    wide = groups * lanes * v
    packed = problem.taps.T.padded(depth, wide).cast(y.dtype)
    args = [problem.x, packed, problem.bias, y, outputs, depth, wide]
    text = join(storage_option(y.dtype), vectors(profile, v), f"#define LANES {lanes}")
    return Launch("gemv", "gemv", args, (groups * 256, m), join(text, *_finish(problem)), (256, 1))
