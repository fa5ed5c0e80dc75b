"""Integer convolutions on GPUs: tiles of dot products in local memory, NVIDIA's matrix units."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import numpy as np

from .constants import Constant
from .integers import IntegerConvolution, signed_weights, word_of
from .launch import Launch, Scratch
from .options import join
from .profile import DeviceProfile
from .variants import DIRECT, INTEGERS, Product, Tile, Variant, variants

#: BK is in words of four bytes of depth.
TILES = (
    Tile(128, 128, 8, 8, 8), Tile(128, 64, 8, 8, 8), Tile(64, 128, 8, 8, 8),
    Tile(64, 64, 8, 8, 8), Tile(128, 64, 8, 4, 8), Tile(128, 32, 8, 4, 8), Tile(64, 64, 4, 4, 8),
    Tile(64, 32, 4, 4, 8), Tile(32, 64, 4, 4, 8),
)  # fmt: skip
#: Most rows and columns of a window on matrix units: each has a bit in half a word, and so has each
#: row beyond, into which the last steps reach.
_MATRIX_WINDOW = 8
_MOST_ROWS = 16
#: Bytes of a step of theirs, and words.
_STEP = 64
#: Largest window, in bytes, that is gathered byte by byte: a first layer's.
_MOST_BYTES = 4 * _STEP


@lru_cache(maxsize=4096)
def ranked(size: Product, units: int, matrix: bool) -> tuple[Variant, ...]:
    """`size` in words of depth, of which matrix units take as many in a step as of floats."""
    return tuple(variants(size, units, 4 if matrix else 0, TILES, INTEGERS))


def ways(problem: IntegerConvolution, profile: DeviceProfile) -> tuple[Variant, ...]:
    m, channels, outputs = problem.sizes[0], problem.sizes[3], problem.sizes[6]
    depth = -(-problem.weight[0].size // 4)
    size = Product(m, outputs, depth, -(-channels // 4) * 4)
    return (*ranked(size, profile.compute_units, _matrix(problem, profile)), DIRECT)


def _matrix(problem: IntegerConvolution, profile: DeviceProfile) -> bool:
    x_step, x_at, y_step, y_at = problem.places
    even = y_step % 2 == y_at % 2 == 0
    if not (profile.matrix_units and even and max(problem.window[:2]) <= _MATRIX_WINDOW):
        return False
    if any(n % 8 for n in (problem.sizes[3], x_step, x_at)):
        return problem.weight[0].size <= _MOST_BYTES
    deep = -(-problem.weight[0].size // _STEP) * _STEP
    rows = (deep + _STEP) // (problem.sizes[3] * problem.window[1])
    return problem.pointwise or rows < _MOST_ROWS


def convolved(
    problem: IntegerConvolution, profile: DeviceProfile, variant: Variant
) -> list[Launch]:
    """On matrix units or in tiles, whichever `variant` is."""
    m, outputs, tile = problem.sizes[0], problem.sizes[6], variant.tile
    on_matrix = variant.matrix
    signed = problem.of_x.flip == 128 if on_matrix else profile.dot != "qcom"
    x_zero = problem.of_x.zero - (128 if signed else 0)
    taps, zeros, more = signed_weights(problem, x_zero)
    depth = taps.size // outputs
    step = _STEP if on_matrix else tile.bk * 4
    deep, wide = -(-depth // step) * step, -(-outputs // tile.bn) * tile.bn
    packed = taps.reshape(outputs, depth).padded(wide, deep)
    part = -(-(deep // step) // variant.parts) * step
    parts = -(-deep // part)
    ending, shifted = problem.ending, bool(zeros.any())
    places, unit = [problem.sizes[3], *problem.places[:2]], 4
    text = [
        tile.defines(), "#define SPLIT" if parts > 1 else "", "#define W_ZERO" if shifted else ""
    ]  # fmt: skip
    partial = Scratch(parts * m * outputs * 4 if parts > 1 else 4)
    of_channels = [ending.biases(wide, more), ending.scales(wide)]
    w_zero = Constant.of(zeros.astype(np.int32)).padded(wide) if shifted else of_channels[0]
    whole = [*problem.sizes, *problem.window]
    launches: list[Launch] = []
    grid = (wide // tile.bn * tile.items, -(-m // tile.bm), parts)
    if on_matrix:
        read = gcd(16, *places)  # bytes at once
        text += ["#define SIXTEENS" if read != 8 else "", "#define BYTES" if read < 8 else ""]
        text += ["#define POINTWISE" if problem.pointwise and read >= 8 else ""]
        text += ["#define X_SIGNED" if signed else ""]
        text += [f"#define OUT {2 if parts > 1 else gcd(16, outputs, *problem.places[2:])}"]
        fill = word_of(x_zero)
        totals: Scratch | Constant = of_channels[0]
        if shifted:
            totals = Scratch(m * 4)
            args = [problem.x, fill, totals, *whole[:6], *problem.window, *problem.places[:2]]
            launches.append(Launch("i8_mma", "window_sums", args, (m,), join(*text)))
        tensors = [problem.x, packed, fill, *of_channels, w_zero, totals]
        numbers = [deep, deep, part, *problem.places, *problem.finish]
        name = "mma"
    else:
        # (O, K) → words (K/4, O)
        packed = packed.reshape(wide, deep // 4, 4).transpose(1, 0, 2)
        flip = problem.of_x.flip ^ (128 if signed else 0)
        text += ["#define QUADS" if all(n % unit == 0 for n in places) else ""]
        text += [f"#define DOT_{profile.dot.upper()}" if profile.dot else ""]
        tensors = [problem.x, packed, *of_channels, w_zero]
        word = [word_of(flip), word_of(x_zero)]
        numbers = [wide, deep // 4, part // 4, *problem.places, *word, *problem.finish]
        name = "tile"
    args = [*tensors, problem.residual, problem.y, partial, *whole, *numbers]
    options = join(*text)
    launches.append(Launch(f"i8_{name}", name, args, grid, options, (tile.items, 1, 1)))
    if parts > 1:
        n, lie = m * outputs, problem.places[2:]
        args = [partial, *of_channels, problem.residual, problem.y, n, outputs, parts, *lie]
        small = join(TILES[-1].defines())
        launches.append(Launch("i8_tile", "sum", [*args, *problem.finish], (n,), small))
    return launches
